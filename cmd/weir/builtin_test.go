package main

import "testing"

// The contents of files of weir's own server are known, also the contents of parts of files.
func TestPartsOfBuiltin(t *testing.T) {
	t.Parallel()
	f := measureFor(t, "--target", "built-in", "--clients", "2", "--duration", "500ms", "--set", "load.ramp=0s", "--set", "load.warmup=0s",
		"--set", "workload.part={size: 8KiB, count: 2}", "--set", "workload.verify=100%")
	clean(t, f)
	if c := f.Curve[0]; c.Verified == 0 {
		t.Errorf("%+v", c)
	}
}
