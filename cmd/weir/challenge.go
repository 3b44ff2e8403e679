package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"weir/internal/unit"
	"weir/loadtest/challenge"
	"weir/loadtest/results"
	"weir/loadtest/run"
	"weir/loadtest/run/live"
	"weir/monitor"
)

// challengeFlags are the flags of weir challenge.
type challengeFlags struct {
	runFlags
	ceiling unit.Bitrate
	demo    bool
	watched func(monitor.Sink) // of the lines of the demo; nil: there are no lines
}

func challengeCommand(s streams) *cobra.Command {
	var f challengeFlags
	f.failOn = failOnInvalid
	c := command("challenge [PLAN.yaml]", cobra.MaximumNArgs(1), func(c *cobra.Command, args []string) (err error) {
		s := f.withStream(s)
		defer func() { err = s.stream.Close(err) }()
		switch {
		case f.resume != "":
			return f.resumeChallenge(c, args, s)
		case f.demo:
			return f.runDemo(c, args, s)
		case len(args) == 0:
			return usageError(c, errors.New("name the file of the challenge, or try it on this machine with --demo"))
		}
		if isLoadTest(args[0]) {
			return usagef("%s is the scenario of a load test, not of a data challenge: use weir run", args[0])
		}
		of, err := f.challenge(args[0])
		if err != nil {
			return err
		}
		return f.newChallenge(c, of, s)
	})
	flagVars{
		"ceiling": into(&f.ceiling, parseCeiling), "demo": &f.demo, "set": &f.Sets, "var": f.setVar(),
		"out/o": &f.out, "resume": &f.resume, "json": &f.json, "json-stream": &f.stream, "fail-on": &f.failOn,
		"quiet/q": &s.quiet, "verbose": &s.verbose, "watch": &f.watch.address, "watch-token-file": &f.watch.tokenFile, "junit": &f.junit,
	}.add(c)
	c.Flags().Lookup("watch").NoOptDefVal = watchHere
	return c
}

// parseCeiling is the parser of --ceiling.
func parseCeiling(text string) (unit.Bitrate, error) {
	rate, err := unit.ParseBitrate(text)
	if err == nil && rate <= 0 {
		err = errors.New("use a rate above 0, such as 10Gbit/s")
	}
	return rate, err
}

// newChallenge carries out a challenge in a new run directory.
func (f *challengeFlags) newChallenge(c *cobra.Command, of *challenge.Challenge, s streams) error {
	if _, err := of.Credentials(time.Now(), true); err != nil { // warnings are events of the challenge
		return usage(err)
	}
	for _, text := range of.Warnings() {
		s.printErr("warning: %s\n", text)
	}
	f.effects = run.ChallengeEffects()
	return f.interruptible(c.Context(), s, func(in run.Interrupts) error {
		return f.conduct(in, run.NewDir(f.out, of.Name, time.Now()), of, s)
	})
}

// resumeChallenge continues the challenge in a run directory.
func (f *challengeFlags) resumeChallenge(c *cobra.Command, args []string, s streams) error {
	if err := f.onlyResume(c, args, "set", "var", "out", "demo"); err != nil {
		return err
	}
	f.effects = run.ChallengeEffects()
	return f.interruptible(c.Context(), s, func(in run.Interrupts) error { return f.conduct(in, f.resume, nil, s) })
}

// conduct carries out a challenge, or continues the challenge of the run directory if of is nil, and
// shows the result.
func (f *challengeFlags) conduct(in run.Interrupts, dir string, of *challenge.Challenge, s streams) error {
	f.page.show(dir)
	var verdict error
	err := run.Challenge(run.ChallengeConfig{
		Challenge: of, Dir: dir, Ceiling: f.ceiling, Version: version(), Console: s.console(), Interrupts: in, Watched: f.watched,
		View: func(dir string, c *challenge.Challenge) run.ChallengeView {
			return live.NewChallenge(live.ChallengeOptions{
				Out: s.progress(), Challenge: c, Dir: dir, Finish: in.Finish, Stream: s.stream, Secrets: s.secrets,
			})
		},
		Report: func(r run.Result) error {
			verdict = f.failOn.verdict(r.Findings)
			return errors.Join(writeJUnit(f.junit, f.failOn, r.Findings), show(r, f.json, s))
		},
	})
	if err != nil {
		return err
	}
	return verdict
}

// isChallengeRun reports whether dir is the run directory of a data challenge.
func isChallengeRun(dir string) bool {
	r, err := results.Open(dir)
	return err == nil && r.Plan.Challenge != nil
}

// asChallenge returns the flags of weir run in the form of weir challenge. It refuses flags that
// a challenge does not have.
func (f *runFlags) asChallenge(c *cobra.Command) (*challengeFlags, error) {
	for _, name := range []string{"target", "clients", "duration", "repeat", "on", "workers", "include", "exclude", "sample", "threshold",
		"processes"} {
		if c.Flags().Changed(name) {
			return nil, usagef("--%s: a data challenge has no such setting; change keys of its file with --set", name)
		}
	}
	return &challengeFlags{runFlags: *f}, nil
}

// runChallenge is weir run of the file of a data challenge.
func (f *runFlags) runChallenge(c *cobra.Command, path string, s streams) error {
	as, err := f.asChallenge(c)
	if err != nil {
		return err
	}
	of, err := as.challenge(path)
	if err != nil {
		return err
	}
	return as.newChallenge(c, of, s)
}

// resumeAsChallenge is weir run --resume of the run directory of a data challenge.
func (f *runFlags) resumeAsChallenge(c *cobra.Command, args []string, s streams) error {
	as, err := f.asChallenge(c)
	if err != nil {
		return err
	}
	return as.resumeChallenge(c, args, s)
}
