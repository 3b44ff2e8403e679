package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
)

// A bill is a software bill of materials: https://cyclonedx.org/docs/1.6/json/
type bill struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type       string `json:"type"`
	Ref        string `json:"bom-ref"`
	Name       string `json:"name"`
	Version    string `json:"version"`
	PURL       string `json:"purl,omitempty"`
	Hashes     []sum  `json:"hashes,omitempty"`
	Properties []prop `json:"properties,omitempty"`
}

type sum struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type prop struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// billOf returns the bill of a Go program: its modules, as the linker has recorded them, and Go itself.
func billOf(program, version, commit string, at time.Time) ([]byte, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, err
	}
	b := bill{Format: "CycloneDX", Spec: "1.6", Version: 1}
	b.Metadata = metadata{at.Format(time.RFC3339), component{Type: "application", Ref: "weir", Name: "weir", Version: version}}
	about := []prop{{"build:commit", commit}}
	for _, s := range info.Settings {
		if s.Key == "GOOS" || s.Key == "GOARCH" {
			about = append(about, prop{"build:" + s.Key, s.Value})
		}
	}
	b.Metadata.Component.Properties = about
	goVersion := strings.TrimPrefix(info.GoVersion, "go")
	b.Components = []component{{Type: "library", Ref: "std", Name: "std", Version: goVersion, PURL: "pkg:golang/std@" + goVersion}}
	for _, m := range info.Deps {
		c, err := componentOf(m)
		if err != nil {
			return nil, err
		}
		b.Components = append(b.Components, c)
	}
	text, err := json.MarshalIndent(b, "", "  ")
	return append(text, '\n'), err
}

// componentOf returns a module as a component. Its hash is that of go.sum: SHA-256 of the list of its files.
func componentOf(m *debug.Module) (component, error) {
	if m.Replace != nil {
		m = m.Replace
	}
	c := component{Type: "library", Name: m.Path, Version: m.Version, PURL: "pkg:golang/" + m.Path + "@" + m.Version}
	c.Ref = c.PURL
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
	if err != nil || len(raw) != 32 {
		return c, fmt.Errorf("module %s has no checksum: %q", m.Path, m.Sum)
	}
	c.Hashes = []sum{{"SHA-256", hex.EncodeToString(raw)}}
	return c, nil
}
