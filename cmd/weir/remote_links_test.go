package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/analysis"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/results"
)

// behindLinks is the configuration of two sites over a shared line, in one line of YAML.
const behindLinks = "{line: {rate: 40Mbit/s}, far: {rtt: 30ms, trunk: line}, near: {rate: 10Mbit/s, rtt: 4ms, trunk: line}}"

// nothingPast fails t if the run reports that clients bypassed the links. Late packets may be
// caused by other tests.
func nothingPast(t *testing.T, f *analysis.Findings) {
	t.Helper()
	for _, c := range f.Validity.Checks {
		if c.Name == "links" {
			if c.Status != analysis.OK {
				t.Log(c.Detail)
			}
			if fact.Has(c.Facts, "check.links.past") {
				t.Error(c.Detail)
			}
			return
		}
	}
	t.Error("the links were not checked")
}

// carriedAll fails t unless the links carried the bytes that the clients counted, and the trunk no
// more than the links over it.
func carriedAll(t *testing.T, f *analysis.Findings) {
	t.Helper()
	nothingPast(t, f)
	for i := range f.Curve {
		s, over, trunk := &f.Curve[i], 0.0, 0.0
		for k := range s.Hosts {
			h := &s.Hosts[k]
			switch {
			case h.Link == nil:
			case len(h.Link.Over) > 0:
				trunk += h.Link.ToClients.Carried + h.Link.FromClients.Carried
			default:
				over += h.Link.ToClients.Carried + h.Link.FromClients.Carried
			}
		}
		// Seconds at the start and the end of the hold are weighted.
		if over < 0.8*s.Throughput || over > 1.5*s.Throughput || trunk < 0.9*over || trunk > 1.1*over || s.Errors > 0 || s.Done == 0 {
			t.Errorf("%d clients: the links carried %.0f B/s, the trunk %.0f, of %.0f of payload; %d operations, errors %v", s.Clients, over, trunk,
				s.Throughput, s.Done, s.ErrorsBy)
		}
	}
}

// Workers elsewhere reach real servers over the links of their sites: with redirects, with data
// connections of their own, with a name that TLS verifies, and with an external client program.
func TestWorkersBehindLinks(t *testing.T) {
	tier.Full(t, "workers behind links, against each kind of server")
	linkNeeds(t)
	ftp := labtest.Start(t, lab.GridFTPConfig{Auth: "gsi", Servers: 2, Loopback: true})
	auth, err := json.Marshal(ftp.Settings)
	require.NoError(t, err)
	secure := labtest.Start(t, lab.XRootDConfig{Config: lab.Config{TLS: true}})
	for name, args := range map[string][]string{
		"built-in":   {"--target", "built-in", "--set", "workload={kind: job, job: {events: 5, page: 8KiB}}"},
		"redirector": {"--target", labtest.Start(t, lab.XRootDConfig{Servers: 2}).URL, "--set", "files.make={count: 8, size: 256KiB}"},
		"https": {"--target", secure.URLs["https"], "--set", "auth.ca_file=" + secure.CAFile, "--set",
			"files.make={count: 8, size: 256KiB}"},
		"writes": {"--target", labtest.Start(t, lab.NginxConfig{}).URL, "--set", "workload={kind: write, size: 64KiB}", "--set",
			"files.make=null"},
		"gsiftp": append(behindBalancer(ftp), "--set", "auth="+string(auth), "--set", "files.make={count: 8, size: 256KiB}", "--set",
			"workload.session=fresh"),
		"curl": {"--target", labtest.Start(t, lab.NginxConfig{}).URL, "--set", "client=curl", "--set", "files.make={count: 8, size: 256KiB}"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "curl" {
				labtest.Need(t, "curl")
			}
			r := newRemote(t)
			code, said := r.local(t, append(args, "--clients", "4", "--duration", "4s", "--set", "load={ramp: 0, warmup: 1s}", "--set",
				"link="+behindLinks)...).ended()
			if code != exitFine && code != exitInvalid {
				t.Fatalf("exit code %d\n%s", code, said)
			}
			f := findings(t, r.run())
			carriedAll(t, f)
			if len(f.Workers) != 2 {
				t.Errorf("workers %+v", f.Workers)
			}
			if s := &f.Curve[0]; name == "built-in" && (len(s.Sites) != 2 || s.Site("near").EventRate < 2*s.Site("far").EventRate) {
				t.Errorf("sites %+v", s.Sites)
			}
			r.left(t)
		})
	}
}

// Jobs of a real pool act as a remote pool: all their traffic passes one line, whether a job has
// several clients or each client is a job.
func TestHTCondorBehindALink(t *testing.T) {
	tier.Full(t, "runs on batch systems by the command; cluster/batch has them in the first tier")
	linkNeeds(t)
	pool := labtest.Start(t, lab.HTCondorConfig{Slots: 8})
	labtest.Use(t, pool)
	ftp := labtest.Start(t, lab.GridFTPConfig{Servers: 2, Loopback: true})
	for name, more := range map[string][]string{
		"workers":         {"--workers", "2", "--clients", "4,8", "--set", "link=" + behindLinks},
		"jobs of clients": {"--set", "on.job_per_client=true", "--clients", "3,6", "--set", "link=" + behindLinks},
		"one link":        {"--workers", "2", "--clients", "4", "--set", "link={rate: 20Mbit/s, rtt: 40ms}"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRemote(t)
			args := append([]string{"run", "--on", "htcondor", "--out", "run", "--duration", "8s",
				"--set", "load={ramp: 0, warmup: 0, cooldown: 1s}", "--set", "on.submit=[transfer_executable = False]", "--set", "on.wait=2m",
				"--set", "files.make={count: 8, size: 100kB}", "--set",
				"workload={session: fresh, think: 20ms}"}, append(behindBalancer(ftp), more...)...)
			code, said := r.start(t, args...).ended()
			if code != exitFine && code != exitInvalid {
				t.Fatalf("exit code %d\n%s", code, said)
			}
			f := findings(t, r.run())
			for i := range f.Curve {
				s := &f.Curve[i]
				if s.Errors > 0 || s.Done == 0 || s.Clients != s.Planned && s.Planned > 0 {
					t.Errorf("%d of %d clients: %d files, errors %v", s.Clients, s.Planned, s.Done, s.ErrorsBy)
				}
			}
			nothingPast(t, f)
			want(t, f, "workers", analysis.OK)
			r.left(t)
		})
	}
}

// Without privileges, workers elsewhere use links in a network of their own, or the run is refused.
func TestWorkersBehindLinksWithoutPrivileges(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("this test becomes somebody without privileges, which only root can")
	}
	labtest.Need(t, "setpriv")
	dir, program := forOthers(t)
	file := filepath.Join(dir, "on.yaml")
	text := "target: built-in\non: {batch: local}\nlink: " + behindLinks + `
workload: {kind: job, verify: 0, job: {events: 20, page: 8KiB, read_ahead: 64KiB}}
load: {clients: 8, duration: 4s, ramp: 0, warmup: 1s, graceful_stop: 2s}
`
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	out := filepath.Join(dir, "run")
	code, said := start(t, dir, "env", "XDG_STATE_HOME="+filepath.Join(dir, "state"), "setpriv", "--reuid", "65534", "--regid", "65534",
		"--clear-groups", program, "run", "--quiet", "--out", out, file).ended()
	if code == exitError && strings.Contains(said, "links cannot be emulated here: ") {
		t.Log(said)
		return
	}
	if code != exitFine && code != exitInvalid {
		t.Fatalf("exit code %d:\n%s", code, said)
	}
	run, err := results.Open(out)
	require.NoError(t, err)
	how := run.About.Links
	if how == nil || !how.Isolated || !strings.Contains(fmt.Sprint(how.Blind), "the clients are elsewhere") {
		t.Errorf("links are made as %+v", how)
	}
	f := findings(t, out)
	trunk := linkHost(t, f, "link line")
	if carried := 8 * trunk.ToClients.Carried; carried > 1.01*40e6 || carried < 0.3*40e6 || f.Curve[0].Errors > 0 {
		t.Errorf("the trunk carried %.1f of 40 Mbit/s, errors %v", carried/1e6, f.Curve[0].ErrorsBy)
	}
}

// forOthers returns a folder that every user may use, with this program in it.
func forOthers(t *testing.T) (dir, program string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "weir-links-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	own, err := exec.LookPath("weir")
	require.NoError(t, err)
	b := require.File(t, own)
	program = filepath.Join(dir, "weir")
	for _, err := range []error{os.Chmod(dir, 0o777), os.WriteFile(program, b, 0o755), os.Chmod(program, 0o755)} {
		require.NoError(t, err)
	}
	return dir, program
}
