package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"weir/analysis"
	"weir/internal/say"
	"weir/measure"
	"weir/run"
)

// An exitCode is how a command ends. docs/seeing.md has the same table.
type exitCode int

// Exit codes. Those of signals are 128 and the signal's number, as shells have it.
const (
	exitFine       exitCode = 0
	exitError      exitCode = 1
	exitUsage      exitCode = 2
	exitMissed     exitCode = 3
	exitInvalid    exitCode = 4
	exitStopped    exitCode = 5
	exitHangup     exitCode = 129
	exitInterrupt  exitCode = 130
	exitTerminated exitCode = 143
)

// exitCodes are all exit codes with what they mean, as the help, the manual and the
// docs have it.
func exitCodes() []struct {
	code  exitCode
	means string
} {
	return []struct {
		code  exitCode
		means string
	}{
		{exitFine, "The command did what it was asked for. Of a run: it came to its end, and the result is valid or suspect."},
		{exitError, "An error, which standard error names."},
		{exitUsage, "A wrong call, or a mistake in a scenario. Nothing was done."},
		{exitMissed, "A threshold was not met, a regression was found (compare --regress), or files of a transfer are missing."},
		{exitInvalid, "The result is invalid, as it is where the service was lost or the best step failed; with --fail-on suspect also a suspect one. The report gives the reason."},
		{exitStopped, "A rule of the plan ended the run: stop.error_ratio, or a threshold with \"or stop\"."},
		{exitHangup, "The terminal was closed (SIGHUP). As after SIGINT, what was measured is kept."},
		{exitInterrupt, "Interrupted by Ctrl-C (SIGINT). A run has written its report, and what was measured is kept."},
		{exitTerminated, "Terminated (SIGTERM). As after SIGINT, what was measured is kept."},
	}
}

// rank orders exit codes by how much they demand attention: of several runs the
// highest counts.
func (c exitCode) rank() int {
	return slices.Index([]exitCode{exitFine, exitMissed, exitInvalid, exitStopped, exitUsage, exitError, exitHangup, exitInterrupt, exitTerminated}, c)
}

// worse returns the one of c and other that has the higher rank.
func (c exitCode) worse(other exitCode) exitCode {
	if other.rank() > c.rank() {
		return other
	}
	return c
}

// exitCodesTopic is the help topic of that name.
func exitCodesTopic() *cobra.Command {
	text := "How a command ended:\n"
	for _, c := range exitCodes() {
		for i, line := range say.Wrap(c.means, 72) {
			head := ""
			if i == 0 {
				head = fmt.Sprint(int(c.code))
			}
			text += fmt.Sprintf("\n  %3s  %s", head, line)
		}
	}
	for _, p := range []string{
		"Of several that hold, the exit code is that of the signal, then 1, 5, 4 and 3, in this order. A campaign has that of its worst run.",
		"--fail-on suspect has run, find, report, merge and compare end with 4 for suspect results, too; --fail-on never has them end so for none.",
		"watch, serve, agent, coordinator and lab up serve until they are interrupted, which is their end: 0. A command whose output is no longer read (weir report | head) ends by SIGPIPE (141 for shells); run, find and calibrate go on, and end as their result says.",
	} {
		text += "\n\n" + strings.Join(say.Wrap(p, 78), "\n")
	}
	return &cobra.Command{Use: "exit-codes", Short: "What exit codes mean", Long: text}
}

// An exit is an error with its exit code. A nil err, which has been reported
// already, has no text.
type exit struct {
	code exitCode
	err  error
}

func (e exit) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e exit) Unwrap() error { return e.err }

// outcome is what is still to be reported of err, and its exit code.
func outcome(err error) (text string, code exitCode) {
	code = exitError
	var e exit
	switch {
	case errors.As(err, &e):
		code = e.code
	case errors.As(err, new(*run.UsageError)):
		code = exitUsage
	}
	return strings.TrimSpace(err.Error()), code
}

// An interruption is the signal that ended a command, as the cause of its context.
type interruption struct{ signal os.Signal }

func (i interruption) Error() string { return run.ErrInterrupted.Error() }

// Is makes every interruption a run.ErrInterrupted.
func (i interruption) Is(err error) bool { return err == run.ErrInterrupted }

// SignalName returns the signal's name, as in kill -l.
func (i interruption) SignalName() string {
	return map[os.Signal]string{os.Interrupt: "SIGINT", syscall.SIGTERM: "SIGTERM", syscall.SIGHUP: "SIGHUP"}[i.signal]
}

func (i interruption) code() exitCode {
	switch i.signal {
	case syscall.SIGTERM:
		return exitTerminated
	case syscall.SIGHUP:
		return exitHangup
	}
	return exitInterrupt
}

// afterSignal gives err the exit code of the signal that ended ctx; it returns err
// itself if none did. Of an error that only says that ctx ended nothing is left to report.
func afterSignal(ctx context.Context, err error) error {
	var by interruption
	if !errors.As(context.Cause(ctx), &by) {
		return err
	}
	if errors.Is(err, context.Canceled) && !errors.Is(err, run.ErrInterrupted) {
		err = nil
	}
	return exit{by.code(), err}
}

// A failOn is the state of a result from which on a command fails: --fail-on.
type failOn string

// States of --fail-on.
const (
	failOnSuspect failOn = analysis.Suspect
	failOnInvalid failOn = analysis.Invalid
	failOnNever   failOn = "never"
)

// String implements pflag.Value.
func (f *failOn) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *failOn) Type() string { return "STATE" }

// Set implements pflag.Value.
func (f *failOn) Set(text string) error {
	switch failOn(text) {
	case failOnSuspect, failOnInvalid, failOnNever:
		*f = failOn(text)
		return nil
	}
	return errors.New("use suspect, invalid or never")
}

func failOnFlag(c *cobra.Command, to *failOn) {
	*to = failOnInvalid
	c.Flags().Var(to, "fail-on", "exit code 4 if the result is of this `STATE` or worse: suspect, invalid or never")
	_ = c.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions([]string{string(failOnSuspect), string(failOnInvalid), string(failOnNever)}, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
}

// status turns the state of a result into its exit code, nil if it passes.
func (f failOn) status(state string) error {
	switch {
	case state == analysis.Invalid && f != failOnNever:
		return exit{code: exitInvalid}
	case state == analysis.Suspect && f == failOnSuspect:
		return exit{exitInvalid, errors.New("the result is suspect, and --fail-on suspect was given")}
	}
	return nil
}

// verdict turns what a run showed into its exit code, nil if it passes. The report
// has told why.
func (f failOn) verdict(found *analysis.Findings) error {
	if found.Ending != nil && found.Ending.Outcome == measure.StoppedByRule {
		return exit{code: exitStopped}
	}
	if err := f.status(found.Validity.Status); err != nil {
		return err
	}
	if found.Missed() {
		return exit{code: exitMissed}
	}
	return nil
}
