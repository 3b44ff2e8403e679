package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A file is an entry of a tarball or a package. Its path is relative to the prefix, which is /usr
// in packages.
type file struct {
	path string
	mode int64
	data []byte
	uid  int // in images
}

// sharedFiles returns the files that are the same for every system: manual pages, completions,
// documentation and examples. The program built for the host writes the first two.
func (r *release) sharedFiles(ctx context.Context) ([]file, error) {
	program, err := r.compile(ctx, host())
	if err != nil {
		return nil, err
	}
	pages := filepath.Join(r.work, "man")
	if _, err := r.command(ctx, nil, program, "man", pages); err != nil {
		return nil, err
	}
	files, err := readFolder(pages, "share/man")
	if err != nil {
		return nil, err
	}
	for i, f := range files {
		files[i].path = path.Join("share/man/man"+path.Ext(f.path)[1:], path.Base(f.path))
	}
	for _, c := range []struct{ shell, path string }{
		{"bash", "share/bash-completion/completions/weir"}, {"zsh", "share/zsh/site-functions/_weir"},
		{"fish", "share/fish/vendor_completions.d/weir.fish"},
	} {
		text, err := r.command(ctx, nil, program, "completion", c.shell)
		if err != nil {
			return nil, err
		}
		files = append(files, file{path: c.path, mode: 0o644, data: []byte(text)})
	}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		text, err := os.ReadFile(filepath.Join(r.source, name))
		if err != nil {
			return nil, err
		}
		files = append(files, file{path: "share/doc/weir/" + name, mode: 0o644, data: text})
	}
	more, err := r.documentation(ctx)
	return append(files, more...), err
}

// documentation returns the site and the scenarios, which are examples.
func (r *release) documentation(ctx context.Context) ([]file, error) {
	site := filepath.Join(r.work, "site")
	if _, err := r.command(ctx, []string{"GOFLAGS="}, "go", "run", "-trimpath", "./cmd/site", "-out", site); err != nil {
		return nil, err
	}
	all, err := readFolder(site, "share/doc/weir/html")
	if err != nil {
		return nil, err
	}
	folders, err := filepath.Glob(filepath.Join(r.source, "scenarios", "*", ""))
	for _, dir := range append(folders, filepath.Join(r.source, "scenarios")) {
		if info, wrong := os.Stat(dir); wrong != nil || !info.IsDir() {
			continue
		}
		files, wrong := readFolder(dir, "share/doc/weir/examples"+filepath.ToSlash(strings.TrimPrefix(dir, filepath.Join(r.source, "scenarios"))))
		err = errors.Join(err, wrong)
		all = append(all, slices.DeleteFunc(files, func(f file) bool { return path.Ext(f.path) == ".go" })...)
	}
	return all, err
}

// readFolder reads the files of a folder and places them below the path to.
func readFolder(dir, to string) (all []file, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() { // such as __pycache__
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, file{path: path.Join(to, e.Name()), mode: 0o644, data: text})
	}
	return all, err
}

// tarball writes weir-VERSION-OS-ARCH.tar.gz, with one folder in it.
func (r *release) tarball(t target, files []file) error {
	name := "weir-" + r.version + "-" + t.String()
	var all []file
	for _, f := range files {
		f.path = name + "/" + f.path
		all = append(all, f)
	}
	archive, err := tarOf(all, r.at)
	if err != nil {
		return err
	}
	packed, err := gzipOf(archive, gzip.DefaultCompression)
	if err != nil {
		return err
	}
	return r.write(name+".tar.gz", packed)
}

// tarOf returns a tar archive of files and the folders that they are in. A path that ends with / is an empty folder.
func tarOf(files []file, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	made := map[string]bool{}
	for _, f := range files {
		for i, c := range f.path {
			if dir := f.path[:i+1]; c == '/' && !made[dir] {
				made[dir] = true
				h := &tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755, ModTime: at, Format: tar.FormatPAX}
				if dir == f.path {
					h.Mode, h.Uid, h.Gid = f.mode, f.uid, f.uid
				}
				if err := w.WriteHeader(h); err != nil {
					return nil, err
				}
			}
		}
		if strings.HasSuffix(f.path, "/") {
			continue
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.path, Mode: f.mode, Size: int64(len(f.data)), ModTime: at, Format: tar.FormatPAX}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

// gzipOf compresses data without a name or a time.
func gzipOf(data []byte, level int) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, level)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

// write writes a file of the release.
func (r *release) write(name string, data []byte) error {
	return os.WriteFile(filepath.Join(r.out, name), data, 0o644)
}

// changes returns the section of the version in CHANGELOG.md or, if it has no such section, the
// section of unreleased changes.
func (r *release) changes() (string, error) {
	text, err := os.ReadFile(filepath.Join(r.source, "CHANGELOG.md"))
	if err != nil {
		return "", err
	}
	for _, name := range []string{r.version, "Unreleased"} {
		if found := section(string(text), name); found != "" {
			return found, nil
		}
	}
	return "", fmt.Errorf("CHANGELOG.md has neither a section %s nor Unreleased", r.version)
}

// notes writes NOTES.md, the changes of the version.
func (r *release) notes() error {
	notes, err := r.changes()
	if err != nil {
		return err
	}
	head := fmt.Sprintf("# weir %s\n\nCommit %s of %s.\n\n", r.version, r.commit, r.at.Format(time.DateOnly))
	return r.write("NOTES.md", []byte(head+notes+"\n"))
}

// section returns the text below the heading "## NAME" in Markdown, "" if there is no such heading.
func section(text, name string) string {
	_, rest, found := strings.Cut("\n"+text, "\n## "+name+"\n")
	if !found {
		return ""
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	return strings.TrimSpace(rest)
}

// sums writes SHA256SUMS of all files, in the format that sha256sum -c reads.
func (r *release) sums() error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(data), e.Name())
	}
	return r.write("SHA256SUMS", []byte(b.String()))
}

// list prints the files of the release with their sizes.
func (r *release) list(out io.Writer) error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%10d  %s\n", info.Size(), filepath.Join(r.out, e.Name())); err != nil {
			return err
		}
	}
	return nil
}
