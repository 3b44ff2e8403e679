package main

import (
	"errors"
	"os/exec"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"
)

// compared runs weir compare. Like measured, it accepts invalid runs as well.
func compared(ts *testscript.TestScript, neg bool, args []string) {
	measured(ts, neg, append([]string{"compare"}, args...))
}

// comparesTo runs weir compare and fails unless its exit code is the expected code or the code of
// invalid runs.
func comparesTo(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := exitFine
	var exited *exec.ExitError
	if err := ts.Exec("weir", append([]string{"compare"}, args[1:]...)...); errors.As(err, &exited) {
		code = exitCode(exited.ExitCode())
	} else {
		ts.Check(err)
	}
	if code != exitCode(want) && code != exitInvalid {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}
