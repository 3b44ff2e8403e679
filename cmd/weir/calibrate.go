package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weir/results"
	"weir/run"
	"weir/run/calibration"
	"weir/scenario"
	"weir/storage/all"
)

// calibrateFlags are the flags of weir calibrate.
type calibrateFlags struct {
	client, kind, clients, hold, size, list, out string
	rounds, files                                int
	plain, json                                  bool
	sets                                         []string
}

func calibrateCommand(s streams, signals signalSource) *cobra.Command {
	var f calibrateFlags
	c := &cobra.Command{
		Use:   "calibrate TARGET",
		Short: "Hold weir's clients against the real program: what does a virtual client stand for?",
		Long: `Runs the real client program (xrdcp, curl or gfal-copy: one process for each file)
and weir's own clients on the same service, files and number of clients, in short
steps that take turns, and says how the two differ: throughput, files/s, transfer
time, CPU of the clients and of the server for each file and byte, and what is
asked for on the wire. Weir's clients run at full speed and, with pauses, at the
program's pace: a server that is busy needs less CPU for a file than an idle one.

It reads 16 files that it makes for the purpose and removes afterwards, or those
of --list, or, where it may not write, what it finds below the target. Where the
target speaks without encryption, three files of each side go through a relay on
this machine that counts the requests.

What they did is kept in run directories with their reports, beside
calibration.json and calibration.txt. Ctrl-C ends early and compares what there
is. Any key of a scenario can be set, for both sides: workload.think, auth.method.`,
		Example: `  weir calibrate root://127.0.0.1:1094//data
  weir calibrate root://redirector.example.org//store/test --clients 1,10,50 --hold 5s
  weir calibrate root://127.0.0.1:1094//data --kind write --size 10MiB
  weir calibrate root://127.0.0.1:1094//data --plain --rounds 5
  weir calibrate http://127.0.0.1:8080/data --client gfal-copy
  weir calibrate https://se.example.org/data --list files.txt --set auth.method=token --set auth.token_file=t`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(args[0]); err != nil {
				return exit{exitUsage, err}
			}
			in, release := interruptible(c.Context(), signals.listen(), s.err)
			defer release()
			return afterSignal(in.Finish, calibrate(in, args[0], f, s))
		},
	}
	fs := c.Flags()
	fs.StringVar(&f.client, "client", "", "the real `PROGRAM`: xrdcp, curl or gfal-copy (default: xrdcp for root://, curl for http://)")
	fs.StringVar(&f.kind, "kind", "read", "what clients do: `read` or write")
	fs.StringVar(&f.clients, "clients", "1,8", "clients of each side, as in `1,8`")
	fs.StringVar(&f.hold, "hold", "2s", "how long each step counts, as in `2s`")
	fs.IntVar(&f.rounds, "rounds", 3, "each side takes its turn with each number of clients `N` times")
	fs.StringVar(&f.size, "size", "1MiB", "`SIZE` of the files that are made or written")
	fs.IntVar(&f.files, "files", 16, "make `N` files for reading")
	fs.StringVar(&f.list, "list", "", "read the files whose paths below the target stand in `FILE`, one a line")
	fs.BoolVar(&f.plain, "plain", false, "root://: both sides read and write without page checksums (xrdcp with XRD_CPUSEPGWRTRD=0)")
	setFlag(c, &f.sets)
	outFlag(c, &f.out, "calibrate-NAME-TIME")
	jsonFlag(c, &f.json, "print calibration.json instead of the text")
	quietFlag(c, &s.quiet)
	return c
}

// check refuses what cannot be, and chooses the program.
func (f *calibrateFlags) check(target string) error {
	u, err := url.Parse(target)
	if err != nil || u.Host == "" {
		return fmt.Errorf("target %q: name the service, as in root://127.0.0.1:1094//data or http://127.0.0.1:8080/data", line(target))
	}
	root := slices.Contains([]string{"root", "roots", "xroot", "xroots"}, u.Scheme)
	web := slices.Contains([]string{"http", "https", "dav", "davs"}, u.Scheme)
	if !root && !web {
		return fmt.Errorf("target %s://: calibrate compares with xrdcp, curl and gfal-copy: use root(s):// or http(s)://, dav(s)://", u.Scheme)
	}
	if f.client == "" {
		f.client = "curl"
		if root {
			f.client = "xrdcp"
		}
	}
	switch {
	case !slices.Contains([]string{"xrdcp", "curl", "gfal-copy"}, f.client):
		return fmt.Errorf("--client %s: use xrdcp, curl or gfal-copy", f.client)
	case f.client == "curl" && !web, f.client == "xrdcp" && !root:
		return fmt.Errorf("--client %s cannot speak %s://: leave it out, or use gfal-copy", f.client, u.Scheme)
	case f.kind != "read" && f.kind != "write":
		return fmt.Errorf("--kind %s: use read or write", f.kind)
	case f.rounds < 1 || f.rounds > 100:
		return fmt.Errorf("--rounds %d: use 1 to 100", f.rounds)
	case f.files < 1 || f.files > 100_000:
		return fmt.Errorf("--files %d: use 1 to 100000", f.files)
	case f.plain && !root:
		return errors.New("--plain is for root://: there are no page checksums elsewhere")
	case f.list != "" && f.kind == "write":
		return errors.New("--list is for --kind read")
	}
	return f.installed()
}

// installed looks for the program, and says where it is to be had.
func (f *calibrateFlags) installed() error {
	programs := map[string][]string{"xrdcp": {"xrdcp", "xrdfs"}, "curl": {"curl"}, "gfal-copy": {"gfal-copy"}}
	packages := map[string]string{
		"xrdcp":     "the package xrootd-client (Debian, EL with EPEL)",
		"curl":      "the package curl",
		"gfal-copy": "the packages gfal2-util-scripts with gfal2-plugin-http and gfal2-plugin-xrootd (Debian), gfal2-util with gfal2-plugin-http and gfal2-plugin-xrootd (EL with EPEL)",
	}
	for _, p := range programs[f.client] {
		if _, err := exec.LookPath(p); err != nil {
			return fmt.Errorf("%s is not installed: it is in %s; or choose another one with --client", p, packages[f.client])
		}
	}
	return nil
}

// plans returns the plan of weir's own clients and that of the program: the
// same but for who does the work.
func (f *calibrateFlags) plans(target string) (own, program *scenario.Plan, err error) {
	sets := []string{
		"workload.kind=" + f.kind, "workload.session=fresh", "workload.verify=0%",
		"load.clients=[" + f.clients + "]", "load.hold=" + f.hold, "load.ramp=0s", "load.settle=500ms", "load.drain=60s",
	}
	switch {
	case f.kind == "write":
		sets = append(sets, "workload.size="+f.size)
	case f.list != "":
		sets = append(sets, "files.list="+f.list)
	default:
		sets = append(sets, fmt.Sprintf("files.make={count: %d, size: %s}", f.files, f.size))
	}
	sets = append(sets, f.sets...)
	if own, err = f.plan(target, slices.Concat(sets, []string{fmt.Sprintf("workload.plain=%v", f.plain)})); err != nil {
		return nil, nil, err
	}
	program, err = f.plan(target, slices.Concat(sets, []string{"client=" + f.client, "workload.verify=0%"}))
	return own, program, err
}

func (f *calibrateFlags) plan(target string, sets []string) (*scenario.Plan, error) {
	sc, err := scenario.DefaultWith(target, sets)
	if err != nil {
		return nil, exit{exitUsage, err}
	}
	p, err := sc.Plan(all.Drivers())
	if err != nil {
		return nil, exit{exitUsage, err}
	}
	switch {
	case p.Model == scenario.OpenModel:
		return nil, exit{exitUsage, errors.New("calibrate compares numbers of clients: use --clients, not load.rate")}
	case string(p.Work.Kind) != f.kind:
		return nil, exit{exitUsage, errors.New("use --kind instead of --set workload.kind")}
	case len(p.Steps) > 20:
		return nil, exit{exitUsage, fmt.Errorf("--clients: %d numbers; use up to 20", len(p.Steps))}
	}
	p.Steps = f.steps(p.Steps)
	return p, nil
}

// steps are those of all rounds, numbered in the order in which they are taken.
func (f *calibrateFlags) steps(one []scenario.Step) []scenario.Step {
	var steps []scenario.Step
	for range f.rounds {
		for _, s := range one {
			s.Number = len(steps) + 1
			steps = append(steps, s)
		}
	}
	return steps
}

// environment is what the program is told by its environment so that it does
// the same as weir.
func (f *calibrateFlags) environment(p *scenario.Plan) map[string]string {
	env := map[string]string{}
	if f.client == "curl" {
		return env
	}
	if f.plain {
		env["XRD_CPUSEPGWRTRD"] = "0"
	}
	if p.Work.Chunk > 0 {
		env["XRD_CPCHUNKSIZE"] = fmt.Sprint(int64(p.Work.Chunk))
	}
	if p.Work.InFlight > 0 {
		env["XRD_CPPARALLELCHUNKS"] = fmt.Sprint(p.Work.InFlight)
	}
	return env
}

// release asks the program what it is.
func (f *calibrateFlags) release(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	said, _ := exec.CommandContext(ctx, f.client, "--version").CombinedOutput()
	first, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
	return line(first[:min(len(first), 60)])
}

// spent is how long all steps are planned to take: of both sides, and of weir
// at the program's pace.
func spent(steps []scenario.Step) time.Duration {
	var sum time.Duration
	for _, s := range steps {
		sum += 3 * time.Duration(s.Ramp+s.Settle+s.Hold)
	}
	return sum.Round(time.Second)
}

// calibrate measures both sides, and shows how they compare.
func calibrate(in run.Interrupts, target string, f calibrateFlags, s streams) error {
	own, program, err := f.plans(target)
	if err != nil {
		return err
	}
	defer setEnv(f.environment(own))()
	dir := run.NewDir(f.out, "calibrate-"+own.Name, time.Now())
	s.say("%s: weir and %s take turns, %d rounds with %s clients, about %v; Ctrl-C finishes early and still compares\nmeasuring into %s\n",
		line(target), f.client, f.rounds, f.clients, spent(own.Steps), dir)
	r, sides, err := calibration.Run(calibration.Config{
		Own: own, Program: program, Client: f.client, Release: f.release(in.Stop), Rounds: f.rounds,
		Dir: dir, Version: version(), Console: s.console(), Interrupts: in,
	})
	if r == nil {
		return err
	}
	if f.json {
		err = errors.Join(err, ignoreUnread(r.WriteJSON(s.out)))
	} else {
		err = errors.Join(err, ignoreUnread(r.WriteText(s.out, width(s.out))))
		_, unread := fmt.Fprintf(s.out, "\ndirectory  %s\nreports    %s, %s\n", dir, filepath.Join(sides[0], results.ReportFile), filepath.Join(sides[1], results.ReportFile))
		err = errors.Join(err, ignoreUnread(unread))
	}
	if err == nil && !r.Valid {
		return exit{code: exitInvalid}
	}
	return err
}

// setEnv sets variables for the programs that are started; the function that
// it returns puts the old ones back.
func setEnv(env map[string]string) func() {
	old := map[string]string{}
	for name, value := range env {
		if was, ok := os.LookupEnv(name); ok {
			old[name] = was
		}
		_ = os.Setenv(name, value) // fails only for names that are none
	}
	return func() {
		for name := range env {
			if was, ok := old[name]; ok {
				_ = os.Setenv(name, was)
			} else {
				_ = os.Unsetenv(name)
			}
		}
	}
}
