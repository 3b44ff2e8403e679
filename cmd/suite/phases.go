package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// measuring are the packages whose tests measure this machine or emulated links. They run one at a time, after all others.
//
//nolint:gochecknoglobals // a table
var measuring = []string{"./link/emulator", "./monitor", "./benchmarks", "./benchmarks/rigs", "./internal/burn"}

// longest are the packages that take the most time, in descending order. They begin first, so that
// no long package is left to run alone at the end.
var longest = []string{ //nolint:gochecknoglobals // a table
	"./cmd/weir", "./transfer/coordinator", "./lab", "./cluster/batch/slurm", "./cluster", "./storage/xrootd", "./transfer/queue",
	"./storage/command", "./storage/webdav", "./storage/ftp", "./report", "./engine", "./analysis/theory",
}

// phases tests the packages, and returns the packages that remain untested because of the limit.
func (o options) phases(ctx context.Context, all []string) (untested []string, err error) {
	if o.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.limit)
		defer cancel()
		slices.SortStableFunc(all, func(a, b string) int { return duration(a) - duration(b) })
		for _, p := range all { // one after the other, so that the limit interrupts only one package
			if ctx.Err() == nil {
				err = errors.Join(err, o.test(ctx, outputName(p), []string{p}, "-p", "1", "-parallel", "8"))
			}
			if ctx.Err() != nil {
				untested = append(untested, p)
			}
		}
		return untested, err
	}
	var waiting, measured []string
	for _, p := range longest {
		if slices.Contains(all, p) {
			waiting = append(waiting, p)
		}
	}
	for _, p := range all {
		switch {
		case slices.Contains(measuring, p):
			measured = append(measured, p)
		case !slices.Contains(longest, p):
			waiting = append(waiting, p)
		}
	}
	o.phase = "waiting"
	err = o.test(ctx, "waiting", waiting, "-p", "6", "-parallel", "8")
	o.phase = "measuring"
	err = errors.Join(err, o.test(ctx, "measuring", measured, "-p", "1", "-parallel", "6"))
	if !o.full {
		return nil, err
	}
	for _, p := range waiting {
		quiet, failed := quietTests(p)
		err = errors.Join(err, failed)
		if len(quiet) > 0 {
			only := "^(" + strings.Join(quiet, "|") + ")$"
			err = errors.Join(err, o.test(ctx, "quiet-"+outputName(p), []string{p}, "-p", "1", "-parallel", "1", "-run", only))
		}
	}
	return nil, err
}

// outputName returns the name of a package's output.
func outputName(p string) string { return cmp.Or(strings.ReplaceAll(p[2:], "/", "-"), "root") }

// quietCall finds the tests that begin with a call of tier.Quiet.
var quietCall = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\) \{\n\ttier\.Quiet\(`)

// quietTests returns the tests of a package that need a quiet machine.
func quietTests(dir string) (names []string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		for _, m := range quietCall.FindAllSubmatch(text, -1) {
			names = append(names, string(m[1]))
		}
	}
	return names, nil
}

// duration returns a number that orders packages by their time: 0 for packages that longest does
// not list.
func duration(p string) int {
	if i := slices.Index(longest, p); i >= 0 {
		return len(longest) - i
	}
	return 0
}

// test runs go test on packages; name is the name of its output. A limit that passes meanwhile is
// not an error.
func (o options) test(ctx context.Context, name string, packages []string, args ...string) error {
	if len(packages) == 0 {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	sum := []string{"--format", "pkgname", "--format-hide-empty-pkg", "--jsonfile", filepath.Join(o.out, name+".json")}
	if o.full {
		sum = append(sum, "--rerun-fails=1", "--rerun-fails-max-failures=12", "--rerun-fails-run-root-test",
			"--rerun-fails-report", filepath.Join(o.out, name+".repeated"))
	}
	sum = append(sum, "--packages", strings.Join(packages, " "), "--", "-vet=off", "-ldflags", "-s -w", "-timeout", "60m",
		"-exec", self+" exec")
	cmd := exec.CommandContext(ctx, o.gotestsum, slices.Concat(sum, args, o.args)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), recordsVar+"="+filepath.Join(o.out, "records"), "WEIR_PHASE="+o.phase)
	if o.full {
		cmd.Env = append(cmd.Env, "WEIR_TIER=full")
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	if err := cmd.Run(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("%s tests: %w", name, err)
	}
	return nil
}
