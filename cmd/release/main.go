// Command release builds the files of a release: static programs, packages for Debian and RPM
// systems, an OCI image, lists of their components, and the notes. `make release VERSION=1.2.3`
// calls it. The same commit and the same version of Go give the same bytes: all times are the
// commit's, and no file contains a path of the machine.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// A release is the version and the commit to build, and the folders of the build.
type release struct {
	version string
	source  string // folder of the sources, a checkout of git
	out     string // folder of the files
	nfpm    string // the program that makes packages

	maintainer string // of packages, as in "weir <weir@example.org>"
	homepage   string // URL in packages

	commit string
	at     time.Time // time of the commit, which all files get
	work   string    // folder for temporary files
}

// A target is a system that programs are built for.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "-" + t.arch }

// run builds a release according to the arguments, and lists its files on out.
func run(ctx context.Context, args []string, out io.Writer) (err error) {
	var r release
	var list string
	fs := flag.NewFlagSet("release", flag.ContinueOnError)
	fs.StringVar(&r.version, "version", "", "version of the release, as in 1.2.3 or 1.2.3-rc1")
	fs.StringVar(&r.source, "source", ".", "folder of the sources")
	fs.StringVar(&r.out, "out", "dist", "folder for the files; it must be new or empty")
	fs.StringVar(&r.nfpm, "nfpm", "bin/nfpm", "the program that makes packages")
	fs.StringVar(&r.maintainer, "maintainer", "weir <weir@example.org>", "NAME <ADDRESS> of the packages' maintainer")
	fs.StringVar(&r.homepage, "homepage", "https://weir.example.org/", "URL of weir in packages")
	fs.StringVar(&list, "targets", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64", "systems, with commas")
	if err := fs.Parse(args); err != nil {
		return err
	}
	targets, err := readTargets(list)
	if err != nil {
		return err
	}
	for _, path := range []*string{&r.source, &r.out, &r.nfpm} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	if r.work, err = os.MkdirTemp("", "weir-release-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.work)) }()
	if _, err := mail.ParseAddress(r.maintainer); err != nil {
		return fmt.Errorf("-maintainer: %q: use NAME <ADDRESS>: %w", r.maintainer, err)
	}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	if err := r.build(ctx, targets); err != nil {
		return err
	}
	if err := r.unchanged(ctx); err != nil { // files may have changed while they were compiled
		return errors.Join(err, os.Remove(filepath.Join(r.out, "SHA256SUMS")))
	}
	return r.list(out)
}

func readTargets(list string) (all []target, err error) {
	for _, text := range strings.Split(list, ",") {
		system, arch, ok := strings.Cut(text, "/")
		if !ok || system == "" || arch == "" {
			return nil, fmt.Errorf("-targets: %q: use OS/ARCH, as in linux/amd64", text)
		}
		all = append(all, target{system, arch})
	}
	return all, nil
}

var goodVersion = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[a-z0-9]+(\.[a-z0-9]+)*)?$`)

// prepare checks the version and the folders, and reads the commit.
func (r *release) prepare(ctx context.Context) error {
	if !goodVersion.MatchString(r.version) {
		return fmt.Errorf("version %q: use MAJOR.MINOR.PATCH, as in 1.2.3 or 1.2.3-rc1", r.version)
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	if there, err := os.ReadDir(r.out); err != nil || len(there) > 0 {
		return errors.Join(err, fmt.Errorf("%s is not empty: remove it first", r.out))
	}
	if err := r.unchanged(ctx); err != nil {
		return err
	}
	last, err := r.command(ctx, nil, "git", "log", "-1", "--format=%H %ct")
	if err != nil {
		return err
	}
	commit, seconds, _ := strings.Cut(strings.TrimSpace(last), " ")
	n, err := strconv.ParseInt(seconds, 10, 64)
	r.commit, r.at = commit, time.Unix(n, 0).UTC()
	return err
}

// unchanged returns an error if files differ from the commit.
func (r *release) unchanged(ctx context.Context) error {
	changed, err := r.command(ctx, nil, "git", "status", "--porcelain")
	if err == nil && changed != "" {
		err = fmt.Errorf("a release is built from a commit, and these files are not committed:\n%s", changed)
	}
	return err
}

// build builds the files of all targets.
func (r *release) build(ctx context.Context, targets []target) error {
	shared, err := r.sharedFiles(ctx)
	if err != nil {
		return err
	}
	var layers []layer
	for _, t := range targets {
		program, err := r.compile(ctx, t)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(program)
		if err != nil {
			return err
		}
		files := append([]file{{path: "bin/weir", mode: 0o755, data: data}}, shared...)
		if err := r.tarball(t, files); err != nil {
			return err
		}
		if err := r.components(t, program); err != nil {
			return err
		}
		if t.os != "linux" {
			continue
		}
		if err := r.packages(ctx, t, files); err != nil {
			return err
		}
		layers = append(layers, layer{arch: t.arch, program: data})
	}
	if len(layers) > 0 {
		if err := r.image(layers); err != nil {
			return err
		}
	}
	if err := r.notes(); err != nil {
		return err
	}
	return r.sums()
}

// compile builds the program for a system, unless it is built already.
func (r *release) compile(ctx context.Context, t target) (string, error) {
	program := filepath.Join(r.work, t.String(), "weir")
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	env := []string{"CGO_ENABLED=0", "GOFLAGS=", "GOOS=" + t.os, "GOARCH=" + t.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT="}
	about := r.version + "/" + r.commit + "/" + r.at.Format(time.RFC3339)
	_, err := r.command(ctx, env, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid= -X main.release="+about,
		"-o", program, "./cmd/weir") // Go records no commit in a second work tree of git, and so other bytes
	return program, err
}

// host is the system that this program runs on.
func host() target { return target{runtime.GOOS, runtime.GOARCH} }

// command runs a program in the folder of the sources and returns its output.
func (r *release) command(ctx context.Context, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var said strings.Builder
	cmd.Dir, cmd.Stderr = r.source, &said
	cmd.Env = append(append(os.Environ(), "SOURCE_DATE_EPOCH="+strconv.FormatInt(r.at.Unix(), 10), "TZ=UTC"), env...)
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, args[0], err, said.String())
	}
	return string(out), nil
}
