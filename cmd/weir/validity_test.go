package main

import (
	"testing"

	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/analysis"
)

// Healthy servers cause no warnings from the checks that a busy machine cannot disturb, for all
// kinds of load and any share of verified operations. The bytes that checks read back, and the
// bytes that the server reads for checksums, count as expected traffic.
func TestHealthyServersRaiseNoAlarm(t *testing.T) {
	tier.Quiet(t, "the verdict on servers with a known limit")
	t.Parallel()
	nginx := labtest.Start(t, lab.NginxConfig{Workers: 2})
	xrootd := labtest.Start(t, lab.XRootDConfig{})
	writes := []string{"workload={kind: write, size: 1MiB, verify: 100%}"}
	parts := []string{"files.make={count: 5, size: 1MiB}", "workload={kind: read, part: {size: 10KiB, count: 4}, verify: 10%}"}
	mix := []string{"files.make={count: 20, size: 64KiB}", "workload={kind: mix, mix: {read: 6, write: 2, stat: 1, remove: 1}, size: " +
		"64KiB, verify: 10%}"}
	for _, c := range []struct {
		name, target string
		sets         []string
	}{
		{"writes to nginx", nginx.URL, writes},
		{"parts of nginx", nginx.URL, parts},
		{"mix at nginx", nginx.URL, mix},
		{"writes to xrootd", xrootd.URLs["root"], writes},
		{"writes to xrootd over http", xrootd.URLs["http"], writes},
		{"writes to the built-in server", "built-in", writes},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := []string{"--target", c.target, "--clients", "4", "--duration", "3s", "--set", "load.ramp=100ms", "--set", "load.warmup=200ms"}
			for _, set := range c.sets {
				args = append(args, "--set", set)
			}
			f := measureFor(t, args...)
			for _, name := range []string{"data", "errors", "verification", "both ends agree", "monitoring"} {
				if state, detail := status(f, name); state == analysis.Warn || state == analysis.Fail {
					t.Errorf("%s: %s (%s)", name, state, detail)
				}
			}
		})
	}
}

// Six operations are too few for a valid result.
func TestSixOperationsAreNotValid(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	t.Parallel()
	f := measureFor(t, "--target", "simulated://x?servers=1&service=500ms", "--clients", "1", "--duration", "3s", "--set", "load.ramp=0s",
		"--set", "load.warmup=0s")
	want(t, f, "enough data", analysis.Warn)
	if f.Validity.Status == analysis.Valid {
		t.Errorf("%+v", f.Validity)
	}
}
