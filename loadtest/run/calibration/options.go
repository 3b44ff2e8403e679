package calibration

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"weir/internal/say"
	"weir/loadtest/run"
	"weir/loadtest/scenario"
	"weir/storage/all"
)

// Options select the sides of the comparison. Errors refer to them as flags of weir calibrate.
type Options struct {
	Target   string
	Client   string // the real program: xrdcp, curl or gfal-copy; "": the program of the protocol
	Kind     string // read or write
	Clients  string // of each step
	Duration string // measurement time of a step
	Rounds   int
	Size     string // of the files that are made or written
	Files    int    // that are made
	List     string // file with the paths to read; "": no list
	Plain    bool   // without page checksums
	Sets     []string
	Dir      string // for the run directories and the result; "": a new one below runs
}

// Check refuses options that cannot be combined, and chooses the program.
func (o *Options) Check() error {
	u, err := url.Parse(o.Target)
	if err != nil || u.Host == "" {
		return fmt.Errorf("target %q: use the URL of the service, as in root://127.0.0.1:1094//data or http://127.0.0.1:8080/data",
			say.Plain(o.Target))
	}
	root := slices.Contains([]string{"root", "roots", "xroot", "xroots"}, u.Scheme)
	web := slices.Contains([]string{"http", "https", "dav", "davs"}, u.Scheme)
	if !root && !web {
		return fmt.Errorf("target %s://: calibrate compares with xrdcp, curl and gfal-copy: use root(s):// or http(s)://, dav(s)://", u.Scheme)
	}
	if o.Client == "" {
		o.Client = "curl"
		if root {
			o.Client = "xrdcp"
		}
	}
	switch {
	case !slices.Contains([]string{"xrdcp", "curl", "gfal-copy"}, o.Client):
		return fmt.Errorf("--client %s: use xrdcp, curl or gfal-copy", o.Client)
	case o.Client == "curl" && !web, o.Client == "xrdcp" && !root:
		return fmt.Errorf("--client %s cannot speak %s://: leave it out, or use gfal-copy", o.Client, u.Scheme)
	case o.Kind != "read" && o.Kind != "write":
		return fmt.Errorf("--kind %s: use read or write", o.Kind)
	case o.Rounds < 1 || o.Rounds > 100:
		return fmt.Errorf("--rounds %d: use 1 to 100", o.Rounds)
	case o.Files < 1 || o.Files > 100_000:
		return fmt.Errorf("--files %d: use 1 to 100000", o.Files)
	case o.Plain && !root:
		return errors.New("--plain is for root://: other protocols have no page checksums")
	case o.List != "" && o.Kind == "write":
		return errors.New("--list is for --kind read")
	}
	return o.installed()
}

// installed looks for the program.
func (o *Options) installed() error {
	programs, packages := []string{o.Client}, map[string]string{
		"xrdcp": "the package xrootd-client (Debian, EL with EPEL)",
		"curl":  "the package curl",
		"gfal-copy": "the packages gfal2-util-scripts with gfal2-plugin-http and gfal2-plugin-xrootd (Debian), " +
			"gfal2-util with gfal2-plugin-http and gfal2-plugin-xrootd (EL with EPEL)",
	}
	if o.Client == "xrdcp" {
		programs = append(programs, "xrdfs")
	}
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			return fmt.Errorf("%s is not installed: it is in %s; or choose another one with --client", p, packages[o.Client])
		}
	}
	return nil
}

// plans returns the plan of weir's clients and the plan of the program, which differ only in the
// client.
func (o *Options) plans() (own, program *scenario.Plan, err error) {
	sets := []string{
		"workload.kind=" + o.Kind, "workload.session=fresh", "workload.verify=0%",
		"load.clients=[" + o.Clients + "]", "load.duration=" + o.Duration, "load.ramp=0s", "load.warmup=500ms", "load.graceful_stop=60s",
	}
	switch {
	case o.Kind == "write":
		sets = append(sets, "workload.size="+o.Size)
	case o.List != "":
		sets = append(sets, "files.list="+o.List)
	default:
		sets = append(sets, fmt.Sprintf("files.make={count: %d, size: %s}", o.Files, o.Size))
	}
	sets = append(sets, o.Sets...)
	if own, err = o.plan(slices.Concat(sets, []string{fmt.Sprintf("workload.plain=%v", o.Plain)})); err != nil {
		return nil, nil, err
	}
	program, err = o.plan(slices.Concat(sets, []string{"client=" + o.Client, "workload.verify=0%"}))
	return own, program, err
}

func (o *Options) plan(sets []string) (*scenario.Plan, error) {
	sc, err := scenario.DefaultWith(o.Target, sets)
	if err != nil {
		return nil, &run.UsageError{Err: err}
	}
	p, err := sc.Plan(all.Drivers())
	if err == nil {
		switch {
		case p.Model == scenario.OpenModel:
			err = errors.New("calibrate compares numbers of clients: use --clients, not load.rate")
		case string(p.Work.Kind) != o.Kind:
			err = errors.New("use --kind instead of --set workload.kind")
		case len(p.Steps) > 20:
			err = fmt.Errorf("--clients: %d numbers; use up to 20", len(p.Steps))
		}
	}
	if err != nil {
		return nil, &run.UsageError{Err: err}
	}
	var steps []scenario.Step // of all rounds, in the order in which they are taken
	for range o.Rounds {
		for _, s := range p.Steps {
			s.Number = len(steps) + 1
			steps = append(steps, s)
		}
	}
	p.Steps = steps
	return p, nil
}

// setEnvironment makes the program work like weir's clients. restore undoes it.
func (o *Options) setEnvironment(p *scenario.Plan) (restore func()) {
	env := map[string]string{}
	if o.Client != "curl" {
		if o.Plain {
			env["XRD_CPUSEPGWRTRD"] = "0"
		}
		if p.Work.Chunk > 0 {
			env["XRD_CPCHUNKSIZE"] = fmt.Sprint(int64(p.Work.Chunk))
		}
		if p.Work.InFlight > 0 {
			env["XRD_CPPARALLELCHUNKS"] = fmt.Sprint(p.Work.InFlight)
		}
	}
	var undo []func()
	for name, value := range env {
		if old, ok := os.LookupEnv(name); ok {
			undo = append(undo, func() { _ = os.Setenv(name, old) })
		} else {
			undo = append(undo, func() { _ = os.Unsetenv(name) })
		}
		_ = os.Setenv(name, value) // fails only for invalid names
	}
	return func() {
		for _, f := range undo {
			f()
		}
	}
}

// release returns the program's version.
func (o *Options) release(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	text, _ := exec.CommandContext(ctx, o.Client, "--version").CombinedOutput()
	first, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	return say.Plain(first[:min(len(first), 60)])
}

// planned returns the planned duration of all steps: of both sides, and of weir at the
// program's rate.
func planned(steps []scenario.Step) time.Duration {
	var sum time.Duration
	for _, s := range steps {
		sum += 3 * time.Duration(s.Ramp+s.Warmup+s.Duration)
	}
	return sum.Round(time.Second)
}
