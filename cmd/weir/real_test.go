package main

import (
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/analysis"
	"weir/loadtest/results"
)

// clean fails t unless the run was successful: no errors, payloads verified, and client and server
// agree on the bytes within 1%. At most 1% of the payloads to be verified may lack a reference: a
// service may refuse a checksum or take too long to compute it, which weir counts as unverifiable.
func clean(t *testing.T, f *analysis.Findings) {
	t.Helper()
	for _, s := range f.Curve {
		if s.Errors > 0 || s.Done == 0 || s.Unverified*100 > s.Verified {
			t.Errorf("step %d: %d done, %d errors (%v), %d verified, %d unverifiable", s.Step, s.Done, s.Errors, s.ErrorsBy,
				s.Verified, s.Unverified)
		}
	}
	want(t, f, "verification", analysis.OK)
	want(t, f, "data", analysis.OK)
}

func TestReadNginx(t *testing.T) {
	s := labtest.Start(t, lab.NginxConfig{Workers: 2})
	f := measureFor(t, "--target", s.URL, "--clients", "1,8", "--duration", "4s", "--set", "load.ramp=100ms", "--set", "load.warmup=500ms",
		"--set", "files.make={count: 40, size: 1MiB}", "--set", "workload={verify: 5%, think: 5ms}")
	clean(t, f)
	want(t, f, "both ends agree", analysis.OK)
	if f.Curve[0].Discarded == 0 {
		t.Error("no payload was dropped in the kernel")
	}
	empty(t, s.Data)
}

func TestWriteMixAndMetadataNginx(t *testing.T) {
	t.Parallel()
	s := labtest.Start(t, lab.NginxConfig{})
	for name, sets := range map[string][]string{
		"write": {"workload={kind: write, size: 256KiB, verify: 100%, think: 5ms}"},
		"mix": {"workload={kind: mix, mix: {read: 6, write: 2, stat: 1, remove: 1}, size: 64KiB, verify: 100%, think: 5ms}",
			"files.make={count: 20, size: 64KiB}"},
		"metadata": {"workload={kind: metadata, mix: {stat: 4, list: 2, mkdir: 2, remove: 1}, think: 5ms}", "files.make={count: 20, size: 1KiB}"},
		"login":    {"workload={kind: login, think: 5ms}"},
		"part":     {"workload={kind: read, part: {size: 10KiB, count: 4}, verify: 100%, think: 5ms}", "files.make={count: 5, size: 1MiB}"},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"--target", s.URL, "--clients", "4", "--duration", "2s", "--set", "load.ramp=100ms", "--set", "load.warmup=500ms"}
			for _, set := range sets {
				args = append(args, "--set", set)
			}
			f := measureFor(t, args...)
			for _, c := range f.Curve {
				if c.Errors > 0 || c.Done < 4 { // one operation of each client
					t.Errorf("%d done, %d errors %v", c.Done, c.Errors, c.ErrorsBy)
				}
				if strings.Contains(strings.Join(sets, " "), "verify") && (c.Verified == 0 || c.Unverified > c.Verified) {
					t.Errorf("%d verified, %d unverifiable", c.Verified, c.Unverified)
				}
			}
			empty(t, s.Data)
		})
	}
}

func TestReadXRootDOverHTTP(t *testing.T) {
	s := labtest.Start(t, lab.XRootDConfig{})
	fill(t, s.Data, 20, 1<<20)
	f := measureFor(t, "--target", s.URLs["http"], "--clients", "1,8", "--duration", "4s", "--set", "load.ramp=100ms", "--set",
		"load.warmup=500ms", "--set", "workload={verify: 5%, think: 5ms}")
	clean(t, f)
	want(t, f, "both ends agree", analysis.OK)
}

// The client programs in common use run against the services of their protocols. The service's own
// checksums verify a sample.
func TestRealClients(t *testing.T) {
	t.Parallel()
	xrd := labtest.Start(t, lab.XRootDConfig{})
	fill(t, xrd.Data, 10, 1<<20)
	ftp := labtest.Start(t, lab.GridFTPConfig{})
	for _, c := range []struct{ client, target string }{
		{"xrdcp", xrd.URLs["root"]},
		{"gfal-copy", xrd.URLs["root"]},
		{"curl", xrd.URLs["http"]},
		{"globus-url-copy", ftp.URL},
		{"gfal-copy", ftp.URL},
	} {
		t.Run(c.client+" "+c.target[:4], func(t *testing.T) {
			labtest.Need(t, c.client)
			if c.client == "gfal-copy" {
				tier.Full(t, "gfal-copy as the client of a run")
			}
			files := "files.listing=true"
			if c.target == ftp.URL || c.client == "curl" {
				files = "files.make={count: 10, size: 1MiB}" // the service has no listing, or its listing has no checksums
			}
			f := measureFor(t, "--target", c.target, "--clients", "2", "--duration", "8s", "--set", "load.ramp=100ms", "--set", "load.warmup=500ms",
				"--set", "client="+c.client, "--set", files, "--set", "workload.verify=50%")
			clean(t, f)
			if f.Curve[0].ExternalCores == 0 {
				t.Error("the programs' CPU time was not counted")
			}
		})
	}
}

// A service is killed in the middle of a step and restarted. The run goes on, the errors are
// classified, and the later step is good.
func TestServerKilledInTheMiddle(t *testing.T) {
	t.Parallel()
	s := labtest.Start(t, lab.NginxConfig{})
	fill(t, s.Data, 10, 64<<10)
	dir := filepath.Join(t.TempDir(), "run")
	ended := make(chan exitCode, 1)
	go func() {
		code, said := weir(t, "run", "-q", "--out", dir, "--target", s.URL, "--clients", "4,4", "--duration", "5s", "--set", "load.ramp=100ms",
			"--set", "load.warmup=500ms", "--set", "workload.think=5ms")
		t.Log(said)
		ended <- code
	}()
	untilHeld(t, dir, 1)
	s.Kill()
	require.Eventually(t, "a refused operation", func() bool { return contains(filepath.Join(dir, results.EventsFile), `"refused"`) })
	require.NoError(t, s.Restart(t.Context()))
	if code := <-ended; code != exitFine && code != exitInvalid {
		t.Fatalf("exit code %d", code)
	}
	f := findings(t, dir)
	if len(f.Curve) != 2 {
		t.Fatalf("%d steps, want 2", len(f.Curve))
	}
	if f.Curve[1].Errors > 0 || f.Curve[1].Done == 0 {
		t.Errorf("the step after the restart: %d done, %d errors %v", f.Curve[1].Done, f.Curve[1].Errors, f.Curve[1].ErrorsBy)
	}
}
