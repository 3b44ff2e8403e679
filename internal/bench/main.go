// Command bench measures weir beside the programs that it must not fall
// behind (curl, iperf3, wrk, nginx) and writes what it found as a page:
//
//	go run ./internal/bench -weir bin/weir -out docs/benchmarks.md
//
// Each run is a process of its own. The sides of a comparison take turns, and
// what counts is the ratio of two runs of the same round, so that a machine
// that becomes slower or faster meanwhile does not decide.
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
	"strings"
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
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

// beChild is what this program does where a case runs it as a process of its
// own, and returns false where it does not.
func beChild() bool {
	if len(os.Args) < 2 {
		return false
	}
	child := map[string]func(args []string, out io.Writer) error{
		bareWord: runBare, controllerWord: runController, crowdWord: runCrowd, loadedWord: runLoaded, moverWord: runMover,
	}[os.Args[1]]
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
	weir, out   string
	keep        string
	only        *regexp.Regexp
	rounds      int
	quick, list bool
}

func parse(args []string, log io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.StringVar(&o.weir, "weir", "bin/weir", "the weir to measure")
	flags.StringVar(&o.out, "out", "", "`FILE` to write the page to (default: standard output)")
	flags.StringVar(&o.keep, "keep", "", "`FILE` with the cases measured so far: they are not measured again, and new ones are added")
	only := flags.String("case", "", "measure only the cases whose name matches this `REGEXP`")
	flags.IntVar(&o.rounds, "rounds", 5, "how often each comparison is repeated")
	flags.BoolVar(&o.quick, "quick", false, "one short round: shows that everything works, not how fast")
	flags.BoolVar(&o.list, "list", false, "print the names of the cases")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q: no argument is expected; see -h", flags.Arg(0))
	}
	if o.rounds < 1 {
		return o, fmt.Errorf("-rounds %d: at least 1 is needed", o.rounds)
	}
	if o.only, err = regexp.Compile(*only); err != nil {
		return o, fmt.Errorf("-case: %w", err)
	}
	if o.quick {
		o.rounds = 1
	}
	o.weir, err = filepath.Abs(o.weir)
	return o, err
}

// run is the whole program; progress goes to log.
func run(ctx context.Context, args []string, log io.Writer) (err error) {
	o, err := parse(args, log)
	if err != nil {
		return err
	}
	s := fullScale()
	if o.quick {
		s = quickScale()
	}
	if o.list {
		for _, c := range cases(s) {
			_, _ = fmt.Fprintln(log, c.name)
		}
		return nil
	}
	rig, err := newRig(o.weir, s, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rig.close()) }()
	load, _ := os.ReadFile("/proc/loadavg") // without it the page does not tell
	busy, _, _ := strings.Cut(string(load), " ")
	k, err := readKept(o.keep)
	if err != nil {
		return fmt.Errorf("-keep: %w", err)
	}
	found, err := compare(ctx, rig, o.only, o.rounds, k)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("-case %q matches none; -list names them", o.only)
	}
	return writePage(ctx, o.out, page{results: found, rounds: o.rounds, quick: o.quick, only: o.only.String(), weir: o.weir, load: busy})
}

// writePage replaces the file out, or writes to standard output.
func writePage(ctx context.Context, out string, p page) error {
	text := p.render(ctx)
	if out == "" {
		_, err := io.WriteString(os.Stdout, text)
		return err
	}
	return os.WriteFile(out, []byte(text), 0o644)
}
