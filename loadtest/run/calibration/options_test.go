package calibration

import (
	"os"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/loadtest/scenario"
)

// A program that is not installed is an error with the package to install.
func TestNotInstalled(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if err := (&Options{Client: "xrdcp"}).installed(); err == nil || !strings.Contains(err.Error(), "xrootd-client") {
		t.Error(err)
	}
}

// The environment of the program is set for the calibration only.
func TestTheEnvironmentIsRestored(t *testing.T) {
	t.Setenv("XRD_CPUSEPGWRTRD", "old")
	t.Setenv("XRD_CPCHUNKSIZE", "")
	require.NoError(t, os.Unsetenv("XRD_CPCHUNKSIZE"))
	p := &scenario.Plan{}
	p.Work.Chunk = 1
	restore := (&Options{Client: "xrdcp", Plain: true}).setEnvironment(p)
	if os.Getenv("XRD_CPUSEPGWRTRD") != "0" || os.Getenv("XRD_CPCHUNKSIZE") != "1" {
		t.Error("the variables are not set")
	}
	if restore(); os.Getenv("XRD_CPUSEPGWRTRD") != "old" {
		t.Error("a variable has another value")
	}
	if _, ok := os.LookupEnv("XRD_CPCHUNKSIZE"); ok {
		t.Error("a variable is left")
	}
}
