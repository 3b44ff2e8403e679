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

// The command is this test binary under the name weir, so that what it starts
// (its server, its workers) is this binary as well.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "4"); err != nil { // most of them wait: -parallel says otherwise
		panic(err)
	}
	if strings.HasPrefix(filepath.Base(os.Args[0]), ".weir-") { // as it travels with Slurm
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

// measured runs weir as exec does, but takes a result that the run itself calls
// invalid (exit code 4) as well: on a machine that is busy with other tests the
// generator may well have been held up, and says so.
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
