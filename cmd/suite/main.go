// Command suite runs the tests of a tier and reports their cost: the CPU time of each package, children included, and the slowest
// tests. `make test`, `make test-full` and `make test-changed` call it.
//
// Packages whose tests mostly wait run six at a time. Packages that measure this machine run afterwards, one at a time.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == "exec" {
		os.Exit(execTest(os.Args[2:], grace))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		os.Exit(1)
	}
}

// options are the flags of a run.
type options struct {
	full      bool          // the full tier
	changed   string        // test only packages that changed since this commit, "auto" of changedPackages
	limit     time.Duration // after this time no package is begun and running packages are ended; 0: no limit
	out       string        // folder for the records of the run
	gotestsum string
	phase     string   // WEIR_PHASE of the tests: "waiting" or "measuring", "" with a limit
	args      []string // for go test
}

func run(ctx context.Context, args []string, to io.Writer) error {
	var o options
	flags := flag.NewFlagSet("suite", flag.ContinueOnError)
	flags.BoolVar(&o.full, "full", false, "run the full tier; a failed test is repeated once and listed")
	flags.StringVar(&o.changed, "changed", "", "test only packages that changed since this commit (auto: in the last 3 hours of work)")
	flags.DurationVar(&o.limit, "limit", 0, "stop after this time and list the packages that were not tested")
	flags.StringVar(&o.out, "out", "build/suite", "folder for test output and records")
	flags.StringVar(&o.gotestsum, "gotestsum", "bin/gotestsum", "path of gotestsum")
	packages := flags.String("packages", "./...", "packages to test, separated by spaces")
	if err := flags.Parse(args); err != nil {
		return err
	}
	o.args = flags.Args()
	all, err := listPackages(ctx, strings.Fields(*packages))
	if err != nil {
		return err
	}
	if o.changed != "" {
		if all, err = changedPackages(ctx, o.changed, all); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(to, "%d changed packages: %s\n", len(all), strings.Join(all, " "))
	}
	if o.out, err = filepath.Abs(o.out); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(o.out), os.MkdirAll(o.out, 0o755)); err != nil {
		return err
	}
	begin := time.Now()
	untested, err := o.phases(ctx, all)
	if ctx.Err() != nil {
		err = errors.Join(err, errors.New("interrupted"))
	}
	r, errRead := readResults(o.out)
	if errRead != nil {
		return errors.Join(err, errRead)
	}
	r.Wall, r.Untested = time.Since(begin), untested
	text := r.text()
	_, _ = io.WriteString(to, text)
	return errors.Join(err, os.WriteFile(filepath.Join(o.out, "summary.txt"), []byte(text), 0o644))
}

// listPackages returns the import paths, without the module's name, of the packages that have tests.
func listPackages(ctx context.Context, patterns []string) ([]string, error) {
	args := []string{"list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}"}
	cmd := exec.CommandContext(ctx, "go", append(args, patterns...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	var all []string
	for _, path := range strings.Fields(string(out)) {
		all = append(all, "./"+strings.TrimPrefix(strings.TrimPrefix(path, "weir"), "/"))
	}
	return all, nil
}
