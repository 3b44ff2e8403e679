// Command rigs plays situations whose truth is known to weir, the whole program with real servers
// wherever possible, and writes what it said of each as a page:
//
//	go run ./internal/rigs -weir bin/weir -out docs/truth.md
//
// A rig is a server, a schedule of faults, a scenario, what is true of it by construction, and what
// findings.json and the exit code must say. Rigs run one after the other. What is true is defined
// by ratios inside a rig, never by absolute speed, so that a busy machine can play them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
)

func main() {
	if beChild() {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "rigs: %v\n", err)
		os.Exit(1)
	}
}

// beChild is what this program does where a rig runs it as a process of its own. It returns false
// where it is not a child.
func beChild() bool {
	if len(os.Args) < 2 {
		return false
	}
	child := map[string]func(args []string, out io.Writer) error{faultyWord: runFaulty, busyWord: runBusy}[os.Args[1]]
	if child == nil {
		return false
	}
	if err := child(os.Args[2:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
	return true
}

// options are what the command line says.
type options struct {
	weir, out, keep string
	only            *regexp.Regexp
	healthy         int
	short, list     bool
}

func parse(args []string, log io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("rigs", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.StringVar(&o.weir, "weir", "bin/weir", "the weir to try")
	flags.StringVar(&o.out, "out", "", "`FILE` to write the page to (default: standard output)")
	flags.StringVar(&o.keep, "keep", "", "`DIR` to keep the run directories of missed rigs in")
	only := flags.String("rig", "", "play only the rigs whose name matches this `REGEXP`")
	flags.IntVar(&o.healthy, "healthy", 200, "how many healthy runs are tried for false alarms")
	flags.BoolVar(&o.short, "short", false, "only the rigs of the tests, without other programs beside weir")
	flags.BoolVar(&o.list, "list", false, "print the names of the rigs")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q: no argument is expected; see -h", flags.Arg(0))
	}
	if o.healthy < 0 {
		return o, fmt.Errorf("-healthy %d: must not be negative", o.healthy)
	}
	if o.only, err = regexp.Compile(*only); err != nil {
		return o, fmt.Errorf("-rig: %w", err)
	}
	o.weir, err = filepath.Abs(o.weir)
	return o, err
}

// run is the whole program; progress goes to log.
func run(ctx context.Context, args []string, log io.Writer) error {
	o, err := parse(args, log)
	if err != nil {
		return err
	}
	if o.list {
		for _, r := range rigs() {
			_, _ = fmt.Fprintln(log, r.name)
		}
		return nil
	}
	if _, err := os.Stat(o.weir); err != nil {
		return fmt.Errorf("-weir: %w (make build makes it)", err)
	}
	p := page{about: aboutMachine(ctx)}
	for _, r := range rigs() {
		if o.only.MatchString(r.name) && (r.short || !o.short) && ctx.Err() == nil {
			p.results = append(p.results, play(ctx, &r, o, log))
		}
	}
	if p.healthy, err = tryHealthy(ctx, o, log); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	caught, missed := p.count()
	_, _ = fmt.Fprintf(log, "%d of %d rigs caught; %d healthy runs, %d false alarms\n", caught, caught+missed, len(p.healthy), p.alarms())
	if o.out == "" {
		_, err = io.WriteString(os.Stdout, p.render())
		return err
	}
	return os.WriteFile(o.out, []byte(p.render()), 0o644)
}
