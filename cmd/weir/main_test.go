package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The command is this test binary under the name weir, so that what it starts
// (its server, its workers) is this binary, too.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"weir": main})
}

func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("WEIR_UPDATE") != "",
		Setup: func(e *testscript.Env) error {
			e.Setenv("SCENARIOS", scenarios(t))
			return nil
		},
	})
}

func scenarios(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../scenarios")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
