package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// packages writes the packages for Debian and RPM systems.
func (r *release) packages(ctx context.Context, t target, files []file) error {
	stage := filepath.Join(r.work, t.String(), "stage")
	var contents strings.Builder
	add := func(f file, kind string) error {
		staged := filepath.Join(stage, f.path)
		if err := os.MkdirAll(filepath.Dir(staged), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(staged, f.data, os.FileMode(f.mode)); err != nil {
			return err
		}
		fmt.Fprintf(&contents, "  - {src: %q, dst: %q%s, file_info: {mode: 0%o, mtime: %s}}\n", staged, "/"+f.path, kind, f.mode,
			r.at.Format(time.RFC3339))
		return os.Chtimes(staged, r.at, r.at)
	}
	for _, f := range files {
		if strings.HasPrefix(f.path, "share/man/") {
			packed, err := gzipOf(f.data)
			if err != nil {
				return err
			}
			f.path, f.data = f.path+".gz", packed
		}
		f.path = "usr/" + f.path
		if strings.HasSuffix(f.path, "/site-functions/_weir") {
			f.path = "usr/share/zsh/vendor-completions/_weir"
		}
		if err := add(f, ""); err != nil {
			return err
		}
	}
	for _, d := range deployed() {
		files, err := readFolder(filepath.Join(r.source, "deploy", d.from), d.to)
		if err != nil {
			return err
		}
		for _, f := range files {
			if err := add(f, d.kind); err != nil {
				return err
			}
		}
	}
	return r.nfpmPackages(ctx, t, contents.String())
}

// A deployedFolder is a folder of deploy/ whose files packages install.
type deployedFolder struct{ from, to, kind string }

func deployed() []deployedFolder {
	return []deployedFolder{
		{from: "systemd", to: "usr/lib/systemd/system"}, {from: "sysusers.d", to: "usr/lib/sysusers.d"},
		{from: "tmpfiles.d", to: "usr/lib/tmpfiles.d"}, {from: "sysctl.d", to: "usr/share/doc/weir/sysctl.d"},
		{from: "grafana", to: "usr/share/weir/grafana"}, {from: "../loadtest/export/grafana", to: "usr/share/weir/grafana"},
		{from: "prometheus", to: "usr/share/weir/prometheus"},
		{from: "../client/python", to: "usr/share/weir/python"},
		{from: "etc", to: "etc/weir", kind: ", type: config|noreplace"},
	}
}

// nfpmPackages runs nfpm to write the Debian and the RPM package:
// https://nfpm.goreleaser.com/configuration/
func (r *release) nfpmPackages(ctx context.Context, t target, contents string) error {
	script := func(name string) string { return filepath.Join(r.source, "deploy", "package", name) }
	conf := fmt.Sprintf(`name: weir
arch: %s
platform: linux
version: %s
maintainer: weir <weir@localhost>
description: |
  Load tests of scientific data storage, and verified transfer of datasets.
  The package contains the program, manual pages, completions, and the services
  weir-coordinator, weir-agent and weir-serve, which are not started by it.
license: Apache-2.0
section: net
priority: optional
mtime: %s
deb: {compression: gzip}
rpm: {compression: gzip, buildhost: weir, group: Applications/Internet}
scripts: {postinstall: %q, preremove: %q, postremove: %q}
contents:
%s`, t.arch, r.version, r.at.Format(time.RFC3339), script("postinstall"), script("preremove"), script("postremove"), contents)
	file := filepath.Join(r.work, t.String(), "nfpm.yaml")
	if err := os.WriteFile(file, []byte(conf), 0o644); err != nil {
		return err
	}
	for _, kind := range []string{"deb", "rpm"} {
		if _, err := r.command(ctx, nil, r.nfpm, "package", "--config", file, "--packager", kind, "--target", r.out+"/"); err != nil {
			return err
		}
	}
	return nil
}

// components writes weir-VERSION-OS-ARCH.cdx.json, the list of the program's components, in
// CycloneDX 1.6.
func (r *release) components(t target, program string) error {
	text, err := billOf(program, r.version, r.commit, r.at)
	if err != nil {
		return err
	}
	return r.write("weir-"+r.version+"-"+t.String()+".cdx.json", text)
}
