package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"weir/internal/say"
)

// copyright returns the copyright file of packages: the license of weir, and those of everything that
// is linked into the program. https://www.debian.org/doc/debian-policy/ch-docs.html#copyright-information
func (r *release) copyright(ctx context.Context, t target) ([]byte, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "weir, %s\n\nCopyright %d the authors of weir\n\n%s\n\nThe program contains the following, under these licenses.\n",
		r.homepage, r.at.Year(), apacheNotice)
	parts, err := r.linked(ctx, t)
	if err != nil {
		return nil, err
	}
	names := map[string][]string{} // by the text of their license
	for name, dir := range parts {
		text, err := licenseIn(dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		names[text] = append(names[text], name)
	}
	for _, all := range names {
		slices.Sort(all)
	}
	for _, text := range slices.SortedFunc(maps.Keys(names), func(a, b string) int { return strings.Compare(names[a][0], names[b][0]) }) {
		fmt.Fprintf(&b, "\n%s\n\n%s\n\n%s\n", strings.Repeat("-", 72), strings.Join(names[text], "\n"), text)
	}
	return []byte(b.String()), nil
}

// apacheNotice stands for the text of the license, which Debian has once for all packages.
const apacheNotice = "Licensed under the Apache License, Version 2.0: http://www.apache.org/licenses/LICENSE-2.0, on Debian systems in\n" +
	"/usr/share/common-licenses/Apache-2.0."

// linked returns the folders of the modules that are linked into the program, and of Go and of the
// pages' scripts.
func (r *release) linked(ctx context.Context, t target) (map[string]string, error) {
	env := []string{"GOOS=" + t.os, "GOARCH=" + t.arch, "CGO_ENABLED=0", "GOFLAGS="}
	list, err := r.command(ctx, env, "go", "list", "-deps", "-f",
		"{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}{{end}}{{end}}", "./cmd/weir")
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for line := range strings.Lines(list) {
		if name, dir, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			all[name] = dir
		}
	}
	root, err := r.command(ctx, nil, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	all["Go and its standard library"] = strings.TrimSpace(root)
	if scripts, err := os.Stat(filepath.Join(r.source, "web", "dist", "live.js")); err == nil && scripts.Size() > 0 {
		all["uplot, in the pages"] = filepath.Join(r.source, "web", "node_modules", "uplot")
	}
	return all, nil
}

// licenseFile matches the names of files with a license or with the notices that it demands to keep.
var licenseFile = regexp.MustCompile(`(?i)^(un)?(licen[sc]e|copying|notice|patents)([.-].*)?$`)

// licenseIn returns the texts of the licenses in a folder.
func licenseIn(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var texts []string
	for _, e := range entries {
		if e.IsDir() || !licenseFile.MatchString(e.Name()) || path.Ext(e.Name()) == ".go" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return "", err
		}
		texts = append(texts, withoutApache(strings.TrimSpace(strings.ReplaceAll(string(text), "\r", ""))))
	}
	if len(texts) == 0 {
		return "", errors.New("there is no file with a license in " + dir)
	}
	return strings.Join(texts, "\n\n"), nil
}

// apacheText matches the terms of the license. A copyright notice behind them stays.
var apacheText = regexp.MustCompile(`(?s) *Apache License\s+Version 2\.0, January 2004\s.*?\n *9\. Accepting Warranty.*?additional\s+liability\.` +
	`(?:\s+END OF TERMS AND CONDITIONS)?`)

// withoutApache replaces the whole text of the Apache license by a notice.
func withoutApache(text string) string { return apacheText.ReplaceAllLiteralString(text, apacheNotice) }

// debianVersion is the version of the Debian package: 1.2.3~rc1 is before 1.2.3.
func (r *release) debianVersion() string { return strings.Replace(r.version, "-", "~", 1) }

// debianChangelog returns the changes of the version in Debian's format. The package has no version of
// Debian's own: https://www.debian.org/doc/debian-policy/ch-source.html#s-dpkgchangelog
func (r *release) debianChangelog() ([]byte, error) {
	text, err := r.changes()
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "weir (%s) unstable; urgency=medium\n\n", r.debianVersion())
	for _, item := range bullets(text) {
		b.WriteString("  * " + strings.Join(say.Wrap(item, 74), "\n    ") + "\n")
	}
	fmt.Fprintf(&b, "\n -- %s  %s\n", r.maintainer, r.at.Format(time.RFC1123Z))
	return []byte(b.String()), nil
}

// rpmChangelog returns the changes of the version as nfpm reads them: https://github.com/goreleaser/chglog
func (r *release) rpmChangelog() ([]byte, error) {
	text, err := r.changes()
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "- semver: %s-1\n  date: %s\n  packager: %q\n  changes:\n", r.version, r.at.Format(time.RFC3339), r.maintainer)
	for _, item := range bullets(text) {
		fmt.Fprintf(&b, "  - note: %q\n", item)
	}
	return []byte(b.String()), nil
}

var markdownLink = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// bullets returns the items of lists in Markdown as plain text.
func bullets(text string) (all []string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch item, isItem := strings.CutPrefix(line, "- "); {
		case isItem:
			all = append(all, item)
		case line != "" && len(all) > 0 && !strings.HasPrefix(line, "#") && !strings.HasSuffix(line, ":"):
			all[len(all)-1] += " " + line
		}
	}
	for i := range all {
		all[i] = strings.ReplaceAll(markdownLink.ReplaceAllString(all[i], "$1"), "`", "")
	}
	return all
}
