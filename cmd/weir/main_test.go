package main

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"weir/internal/require"
)

// The command is this test binary under the name weir, so that the processes that it starts (its
// server, its workers) run this binary as well.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "4"); err != nil { // most tests wait; -parallel overrides it
		panic(err)
	}
	if strings.HasPrefix(filepath.Base(os.Args[0]), ".weir-") { // its name when Slurm copies it
		os.Args[0] = "weir"
	}
	testscript.Main(m, map[string]func(){"weir": main, "rigserver": rigServer})
}

func TestScript(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("WEIR_UPDATE") != "",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"measure": measured, "compare": compared,
			"gated": comparesTo},
		Setup: func(e *testscript.Env) error {
			e.Setenv("SCENARIOS", scenarios(t))
			command, err := exec.LookPath("weir") // for scripts that change PATH
			e.Setenv("WEIR", command)
			return err
		},
	})
}

func scenarios(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../scenarios")
	require.NoError(t, err)
	return dir
}

// measured runs weir like exec, but also accepts a result that the run itself reports as invalid
// (exit code 4). On a machine that is busy with other tests the generator may have been delayed,
// and then reports it.
func measured(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("measure: use ! exec weir")
	}
	err := ts.Exec("weir", args...)
	var exited *exec.ExitError
	invalid := errors.As(err, &exited) && exitCode(exited.ExitCode()) == exitInvalid
	if err != nil && !invalid {
		ts.Fatalf("weir %v: %v", args, err)
	}
}
