package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/analysis"
	"weir/lab"
	"weir/results"
	"weir/results/campaign"
)

// weir calls the command in this process and returns its exit code and what
// it said.
func weir(t *testing.T, args ...string) (code int, said string) {
	t.Helper()
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	code = run(ctx, args, streams{strings.NewReader(""), &out, &out}, nil)
	return code, out.String()
}

// measureFor calls weir run and returns what it found. A result may be invalid for
// reasons of this machine, or miss the thresholds of a full-size scenario; the caller looks at the checks that it means.
func measureFor(t *testing.T, args ...string) *analysis.Findings {
	t.Helper()
	all := measureAll(t, args...)
	if len(all) != 1 {
		t.Fatalf("%d runs, want one", len(all))
	}
	return all[0]
}

// measureAll does the same for all runs of a campaign.
func measureAll(t *testing.T, args ...string) []*analysis.Findings {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	code, said := weir(t, append([]string{"run", "--quiet", "--out", dir}, args...)...)
	if code != exitFine && code != exitInvalid && code != exitMissed {
		t.Fatalf("exit code %d:\n%s", code, said)
	}
	t.Log(said)
	if !campaign.Is(dir) {
		return []*analysis.Findings{findings(t, dir)}
	}
	c, err := campaign.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []*analysis.Findings
	for _, r := range c.Runs {
		all = append(all, findings(t, filepath.Join(dir, r.Dir)))
	}
	return all
}

func findings(t *testing.T, dir string) *analysis.Findings {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, results.FindingsFile))
	if err != nil {
		t.Fatal(err)
	}
	f := &analysis.Findings{}
	if err := json.Unmarshal(b, f); err != nil {
		t.Fatal(err)
	}
	return f
}

// want fails t unless the named check has the given status.
func want(t *testing.T, f *analysis.Findings, name, status string) {
	t.Helper()
	for _, c := range f.Validity.Checks {
		if c.Name == name {
			if c.Status != status {
				t.Errorf("check %q: %s (%s), want %s", name, c.Status, c.Detail, status)
			}
			return
		}
	}
	t.Errorf("no check %q", name)
}

// clean fails t unless all went well: no error, payloads verified, both ends
// agree on the bytes within 1%.
func clean(t *testing.T, f *analysis.Findings) {
	t.Helper()
	for _, s := range f.Curve {
		if s.Errors > 0 || s.Done == 0 || s.Unverified > 0 {
			t.Errorf("step %d: %d done, %d errors (%v), %d unverifiable", s.Step, s.Done, s.Errors, s.ErrorsBy, s.Unverified)
		}
	}
	want(t, f, "verification", analysis.OK)
	want(t, f, "data", analysis.OK)
}

func TestReadNginx(t *testing.T) {
	s := lab.StartNginx(t, lab.NginxConfig{Workers: 2})
	f := measureFor(t, "--target", s.URL, "--clients", "1,8", "--hold", "4s", "--set", "files.make={count: 40, size: 1MiB}", "--set", "workload.verify=5%")
	clean(t, f)
	want(t, f, "both ends agree", analysis.OK)
	if f.Curve[0].Discarded == 0 {
		t.Error("no payload was dropped in the kernel")
	}
	empty(t, s.Data)
}

// empty fails t if something of a run is left in dir.
func empty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "weir-") {
			t.Errorf("%s was left behind", e.Name())
		}
	}
}

func TestWriteMixAndMetadataNginx(t *testing.T) {
	s := lab.StartNginx(t, lab.NginxConfig{})
	for name, sets := range map[string][]string{
		"write":    {"workload.kind=write", "workload.size=256KiB", "workload.verify=10%"},
		"mix":      {"workload={kind: mix, mix: {read: 6, write: 2, stat: 1, remove: 1}, size: 64KiB, verify: 10%}", "files.make={count: 20, size: 64KiB}"},
		"metadata": {"workload={kind: metadata, mix: {stat: 4, list: 2, mkdir: 2, remove: 1}}", "files.make={count: 20, size: 1KiB}"},
		"login":    {"workload={kind: login}"},
		"part":     {"workload={kind: read, part: {size: 10KiB, count: 4}, verify: 10%}", "files.make={count: 5, size: 1MiB}"},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"--target", s.URL, "--clients", "4", "--hold", "2s"}
			for _, set := range sets {
				args = append(args, "--set", set)
			}
			f := measureFor(t, args...)
			for _, c := range f.Curve {
				if c.Errors > 0 || c.Done < 20 {
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
	s := lab.StartXRootD(t, lab.XRootDConfig{})
	fill(t, s.Data, 20, 1<<20)
	f := measureFor(t, "--target", s.URLs["http"], "--clients", "1,8", "--hold", "4s", "--set", "workload.verify=5%")
	clean(t, f)
	want(t, f, "both ends agree", analysis.OK)
}

// fill puts files with unlike content into dir.
func fill(t *testing.T, dir string, count, size int) {
	t.Helper()
	for i := range count {
		b := bytes.Repeat([]byte(fmt.Sprintf("file %d of a set\n", i)), size/16+1)[:size]
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("data-%02d.dat", i)), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// The real clients of the field, each against the service that speaks its
// protocol; the service's own checksums prove a sample.
func TestRealClients(t *testing.T) {
	xrd := lab.StartXRootD(t, lab.XRootDConfig{})
	fill(t, xrd.Data, 10, 1<<20)
	ftp := lab.StartGridFTP(t, lab.GridFTPConfig{})
	for _, c := range []struct{ client, target string }{
		{"xrdcp", xrd.URLs["root"]},
		{"gfal-copy", xrd.URLs["root"]},
		{"curl", xrd.URLs["http"]},
		{"globus-url-copy", ftp.URL},
		{"gfal-copy", ftp.URL},
	} {
		t.Run(c.client+" "+c.target[:4], func(t *testing.T) {
			lab.Need(t, c.client)
			files := "files.listing=true"
			if c.target == ftp.URL || c.client == "curl" {
				files = "files.make={count: 10, size: 1MiB}" // no listing, or none with checksums
			}
			f := measureFor(t, "--target", c.target, "--clients", "2", "--hold", "8s", "--set", "client="+c.client, "--set", files, "--set", "workload.verify=50%")
			clean(t, f)
			if f.Curve[0].ExternalCores == 0 {
				t.Error("the programs' CPU time was not counted")
			}
		})
	}
}

// A service that dies in the middle of a step and comes back: the run goes on,
// the errors are classed, the later step is good.
func TestServerKilledInTheMiddle(t *testing.T) {
	s := lab.StartNginx(t, lab.NginxConfig{})
	fill(t, s.Data, 10, 64<<10)
	dir := filepath.Join(t.TempDir(), "run")
	ended := make(chan int, 1)
	go func() {
		code, said := weir(t, "run", "-q", "--out", dir, "--target", s.URL, "--clients", "4,4", "--hold", "6s", "--set", "load.settle=2s")
		t.Log(said)
		ended <- code
	}()
	waitFor(t, func() bool { return grows(filepath.Join(dir, results.IntervalsFile), 2000) })
	s.Kill()
	waitFor(t, func() bool { return contains(filepath.Join(dir, results.EventsFile), `"refused"`) })
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
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

func grows(path string, size int64) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() > size
}

func contains(path, text string) bool {
	b, err := os.ReadFile(path)
	return err == nil && strings.Contains(string(b), text)
}

// waitFor waits until ok, at most a minute.
func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(time.Minute); !ok(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("waited a minute in vain")
		}
	}
}
