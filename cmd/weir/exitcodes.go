package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"weir/loadtest/analysis"
	"weir/loadtest/measure"
	"weir/loadtest/run"
)

// An exitCode is the exit code of the command. docs/seeing.md has the same table.
type exitCode int

// Exit codes. The code of a signal is 128 plus the signal's number, as in shells.
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

// An exitMeaning explains an exit code in the help, the manual and the docs.
type exitMeaning struct {
	code  exitCode
	means string
}

func exitCodes() []exitMeaning {
	return []exitMeaning{
		{exitFine, "The command did what it was asked for. A run came to its end, and its result is valid or suspect."},
		{exitError, "An error, which standard error names."},
		{exitUsage, "A wrong call, a file that does not exist, or a mistake in a scenario or a configuration. Nothing was done."},
		{exitMissed, "A threshold was not met, a regression was found (compare --regress), or files of a transfer are missing."},
		{exitInvalid, "The result is invalid, for example because the service was lost or the best step failed; with --fail-on suspect " +
			"also if it is suspect. The report gives the reason."},
		{exitStopped, "A rule of the plan ended the run: stop.error_ratio, or a threshold with \"or stop\"."},
		{exitHangup, "The terminal was closed (SIGHUP). As after SIGINT, the measurements are kept."},
		{exitInterrupt, "Interrupted by Ctrl-C (SIGINT). A run has written its report and keeps its measurements."},
		{exitTerminated, "Terminated (SIGTERM). As after SIGINT, the measurements are kept."},
	}
}

// worse returns c or other, whichever demands more attention. It computes the exit code of several
// runs.
func (c exitCode) worse(other exitCode) exitCode {
	order := []exitCode{exitFine, exitMissed, exitInvalid, exitStopped, exitUsage, exitError, exitHangup, exitInterrupt, exitTerminated}
	if slices.Index(order, other) > slices.Index(order, c) {
		return other
	}
	return c
}

// exitCodeRules returns paragraphs on the choice of an exit code.
func exitCodeRules() []string {
	return []string{
		"If several apply, the exit code is that of the signal, then 1, 5, 4 and 3, in this order. A campaign has that of its worst run.",
		"With --fail-on suspect, run, find, report, merge and compare also exit with 4 for suspect results; with --fail-on never for none.",
		"watch, serve, agent, coordinator and lab up serve until they are interrupted, which ends them with 0. A command whose output " +
			"has lost its reader (weir report | head) ends by SIGPIPE (141 in shells); run, find and calibrate continue, " +
			"and exit according to their result.",
	}
}

// exitCodesTopic is a help topic.
func exitCodesTopic() *cobra.Command {
	text := "Explain the exit codes.\n"
	for _, c := range exitCodes() {
		text += fmt.Sprintf("\n  %3d  %s", c.code, c.means)
	}
	text += "\n\n" + strings.Join(exitCodeRules(), "\n\n")
	return &cobra.Command{Use: "exit-codes", Short: "Explain the exit codes", Long: text}
}

// An exit is an error with its exit code. A nil err has been reported already.
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

// usage returns err as a usage error, nil if err is nil.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return exit{exitUsage, err}
}

// outcome returns the text of err that is still to be reported, and its exit code.
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

// A failOn is the state of a result at which a command fails: --fail-on.
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
	if !slices.Contains([]failOn{failOnSuspect, failOnInvalid, failOnNever}, failOn(text)) {
		return errors.New("use suspect, invalid or never")
	}
	*f = failOn(text)
	return nil
}

// status returns the exit code of a result's state, nil if it passes.
func (f failOn) status(state string) error {
	switch {
	case state == analysis.Invalid && f != failOnNever:
		return exit{code: exitInvalid}
	case state == analysis.Suspect && f == failOnSuspect:
		return exit{exitInvalid, errors.New("the result is suspect, and --fail-on suspect was given")}
	}
	return nil
}

// verdict returns the exit code of a run's result, nil if it passes. The report gives
// the reason.
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
