package main

import (
	"compress/gzip"
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A packageFile is a file in packages. Its path is relative to the root.
type packageFile struct {
	file
	kind string // of nfpm: "", or config|noreplace
	only string // deb, rpm, or "" for both
}

// packages writes the packages for Debian and RPM systems.
func (r *release) packages(ctx context.Context, t target, files []file) error {
	var all []packageFile
	for _, f := range files {
		if strings.HasPrefix(f.path, "share/man/") {
			packed, err := gzipOf(f.data, gzip.BestCompression)
			if err != nil {
				return err
			}
			f.path, f.data = f.path+".gz", packed
		}
		f.path = "usr/" + f.path
		p := packageFile{file: f}
		switch path.Base(f.path) {
		case "_weir":
			p.path = "usr/share/zsh/vendor-completions/_weir"
		case "LICENSE": // Debian has it once for all packages
			p.only = "rpm"
		}
		all = append(all, p)
	}
	for _, d := range deployed() {
		files, err := readFolder(filepath.Join(r.source, "deploy", d.from), d.to)
		if err != nil {
			return err
		}
		for _, f := range files {
			all = append(all, packageFile{file: f, kind: d.kind})
		}
	}
	copyright, err := r.copyright(ctx, t)
	if err != nil {
		return err
	}
	changelog, err := r.debianChangelog()
	if err != nil {
		return err
	}
	packed, err := gzipOf(changelog, gzip.BestCompression)
	if err != nil {
		return err
	}
	all = append(all, packageFile{file: file{path: "usr/share/doc/weir/copyright", mode: 0o644, data: copyright}},
		packageFile{file: file{path: "usr/share/doc/weir/changelog.gz", mode: 0o644, data: packed}, only: "deb"},
		packageFile{file: file{path: "usr/share/lintian/overrides/weir", mode: 0o644, data: []byte(lintianOverrides)}, only: "deb"})
	return r.nfpmPackages(ctx, t, all)
}

// lintianOverrides has the reasons for the remarks of Debian's checker that stay.
const lintianOverrides = `# One file for every Linux, which batch systems copy to machines with other libraries
weir: statically-linked-binary [usr/bin/weir]
# The same scripts are in the RPM package, whose systems have no deb-systemd-invoke
weir: maintainer-script-calls-systemctl *
`

// stage writes the files of a package into a folder, and returns them as contents of nfpm.
func (r *release) stage(dir string, files []packageFile) (string, error) {
	var contents strings.Builder
	for _, folder := range ownFolders(files) {
		fmt.Fprintf(&contents, "  - {dst: %q, type: dir, packager: rpm, file_info: {mode: 0755, mtime: %s}}\n", "/"+folder,
			r.at.Format(time.RFC3339))
	}
	for _, f := range files {
		staged := filepath.Join(dir, f.path)
		if err := os.MkdirAll(filepath.Dir(staged), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(staged, f.data, os.FileMode(f.mode)); err != nil {
			return "", err
		}
		if err := os.Chtimes(staged, r.at, r.at); err != nil {
			return "", err
		}
		for _, packager := range []string{"deb", "rpm"} {
			if f.only == "" || f.only == packager {
				fmt.Fprintf(&contents, "  - {src: %q, dst: %q, type: %q, packager: %s, file_info: {mode: 0%o, mtime: %s}}\n", staged, "/"+f.path,
					f.kindFor(packager), packager, f.mode, r.at.Format(time.RFC3339))
			}
		}
	}
	return contents.String(), nil
}

// ownFolders returns the folders that only this package has. RPM removes folders that a package names.
func ownFolders(files []packageFile) []string {
	own := map[string]bool{}
	for _, f := range files {
		for dir := path.Dir(f.path); strings.Contains("/"+dir+"/", "/weir/"); dir = path.Dir(dir) {
			own[dir] = true
		}
	}
	return slices.Sorted(maps.Keys(own))
}

// kindFor returns the kind of the file for nfpm. Only RPM has kinds for documentation.
func (f packageFile) kindFor(packager string) string {
	switch {
	case packager != "rpm" || f.kind != "":
		return f.kind
	case path.Base(f.path) == "LICENSE" || path.Base(f.path) == "copyright":
		return "license"
	case strings.HasPrefix(f.path, "usr/share/doc/") || strings.HasPrefix(f.path, "usr/share/man/"):
		return "doc"
	}
	return ""
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
		{from: "etc", to: "etc/weir", kind: "config|noreplace"},
	}
}

// nfpmPackages runs nfpm to write the Debian and the RPM package:
// https://nfpm.goreleaser.com/configuration/
func (r *release) nfpmPackages(ctx context.Context, t target, files []packageFile) error {
	contents, err := r.stage(filepath.Join(r.work, t.String(), "stage"), files)
	if err != nil {
		return err
	}
	script := func(name string) string { return filepath.Join(r.source, "deploy", "package", name) }
	conf := fmt.Sprintf(`name: weir
arch: %s
platform: linux
version: %s
maintainer: %q
vendor: %q
homepage: %q
description: |
  load tests of scientific storage and verified transfers of datasets
  weir measures how much load a data service carries, what limits it, and
  whether the result can be trusted. It also moves datasets between sites and
  verifies every file. The package contains the program, its documentation and
  the services weir-coordinator, weir-agent and weir-serve, which it does not
  start.
license: Apache-2.0
section: net
priority: optional
mtime: %s
deb: {compression: gzip}
rpm: {compression: gzip, buildhost: weir, group: Applications/Internet, summary: Load tests of scientific storage and verified transfers of datasets}
scripts: {postinstall: %q, preremove: %q, postremove: %q}
contents:
%s`, t.arch, r.version, r.maintainer, r.maintainer, r.homepage, r.at.Format(time.RFC3339), script("postinstall"), script("preremove"),
		script("postremove"), contents)
	changes := filepath.Join(r.work, t.String(), "changes.yaml")
	text, err := r.rpmChangelog()
	if err != nil {
		return err
	}
	if err := os.WriteFile(changes, text, 0o644); err != nil {
		return err
	}
	// /bin/sh runs the scripts; on Debian it is always there.
	for kind, more := range map[string]string{"deb": "", "rpm": fmt.Sprintf("changelog: %q\ndepends: [/bin/sh]\n", changes)} {
		file := filepath.Join(r.work, t.String(), "nfpm-"+kind+".yaml")
		if err := os.WriteFile(file, []byte(more+conf), 0o644); err != nil {
			return err
		}
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
