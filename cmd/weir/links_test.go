package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/link/emulator"
	"weir/loadtest/analysis"
	"weir/loadtest/results"
)

// linkNeeds skips t if this machine cannot make links over which TCP behaves as over a real link,
// unless they are required.
func linkNeeds(t *testing.T) {
	t.Helper()
	if why := emulator.Probe(); why != "" {
		tier.Without(t, "links", "no links of network namespaces: "+why)
	}
}

func scenarioOf(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "links.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// linkHost returns the figures of a link in the first step.
func linkHost(t *testing.T, f *analysis.Findings, name string) *analysis.LinkFigure {
	t.Helper()
	for _, h := range f.Curve[0].Hosts {
		if h.Host == name {
			return h.Link
		}
	}
	t.Fatalf("no host %q", name)
	return nil
}

// A job that reads one page after the other takes one round trip for each page, not two.
func TestAPageTakesARoundTrip(t *testing.T) {
	linkNeeds(t)
	xrootd := labtest.Start(t, lab.XRootDConfig{})
	const pages, rtt = 40, 0.051
	const least = pages * rtt
	for name, target := range map[string]string{"http": "built-in", "root": xrootd.URL + "\nfiles: {make: {count: 2, size: 400KiB}}"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := measureFor(t, scenarioOf(t, "target: "+target+`
link: {rate: 100Mbit/s, rtt: 51ms, congestion: cubic}
workload: {kind: job, verify: 0, job: {events: 8, event_size: 40KiB, page: 8KiB}}
load: {clients: [1, 1, 1], jobs: 2, duration: 60s, ramp: 0, warmup: 0, cooldown: 100ms}
`))
			took := 1e9 // the shortest, since other work of the machine may delay some jobs
			for _, s := range f.Curve {
				took = min(took, s.JobSeconds.P50)
			}
			t.Logf("a job takes %.3f s, %.3f at least", took, least)
			if took < 0.995*least || took > 1.5*least {
				t.Errorf("%.3f s for %d pages of %v s round trip", took, pages, rtt)
			}
		})
	}
}

// Jobs share the rate of their link, and each of several links has its own rate.
func TestJobsShareTheirLink(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	linkNeeds(t)
	file := scenarioOf(t, `target: built-in
link:
  far: {rate: 2Mbit/s, rtt: 51ms, congestion: cubic}
  near: {rate: 8Mbit/s, rtt: 7ms, congestion: cubic}
workload: {kind: job, verify: 0, job: {events: 10, page: 8KiB}}
load: {clients: 24, duration: 6s, ramp: 0, warmup: 2s, graceful_stop: 1s}
`)
	f := measureFor(t, file)
	want(t, f, "workers", analysis.OK)
	payload := 0.0
	for name, rate := range map[string]float64{"link far": 2e6, "link near": 8e6} {
		l := linkHost(t, f, name)
		share := 8 * l.ToClients.Carried / rate
		t.Logf("%s carried %.1f%% of its rate, late by %v s", name, 100*share, l.ToClients.Late)
		if share < 0.95 || share > 1.005 {
			t.Errorf("%s carried %.1f%% of its rate", name, 100*share)
		}
		payload += rate * 1448 / 1500 // full packets, with TCP's time stamps
	}
	if got := 8 * f.Curve[0].Throughput; got < 0.93*payload || got > 1.01*payload {
		t.Errorf("%.2f Mbit/s of payload, %.2f are possible", got/1e6, payload/1e6)
	}
	if b := f.Bottleneck; len(b) > 0 && b[0].Resource != analysis.ResourceNetwork {
		t.Errorf("the links are full, and what limits is said to be %s", b[0].Text())
	}
}

// Jobs wait until a link is back, unless the timeout of their requests is shorter than the outage.
func TestALinkThatIsDownForAWhile(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	linkNeeds(t)
	for timeout, crashed := range map[string]int64{"30s": 0, "1s": 3} {
		t.Run(timeout, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "run")
			file := scenarioOf(t, `target: built-in
link: {rate: 10Mbit/s, rtt: 20ms, outages: [{after: 1s, for: 3s}]}
workload: {kind: job, verify: 0, timeout: `+timeout+`, job: {events: 20, page: 8KiB}}
load: {clients: 3, jobs: 1, duration: 60s, ramp: 0, warmup: 0}
`)
			if code, said := weir(t, "run", "--quiet", "--out", dir, file); code != exitFine && code != exitInvalid {
				t.Fatalf("exit code %d:\n%s", code, said)
			}
			f := findings(t, dir)
			jobs := f.Curve[0].Jobs
			if jobs.Crashed != crashed || jobs.Done != 3-crashed || jobs.Failed != 0 {
				t.Errorf("%+v, want %d crashed", jobs, crashed)
			}
			if crashed == 0 && f.Curve[0].JobSeconds.Max < 3 {
				t.Errorf("a job took %v s at most over a link that was down for 3", f.Curve[0].JobSeconds.Max)
			}
			events := require.File(t, filepath.Join(dir, results.EventsFile))
			for _, w := range []string{"link is down for 3 s", "link is up again"} {
				if crashed == 0 && !strings.Contains(string(events), w) {
					t.Errorf("no event %q in %s", w, events)
				}
			}
		})
	}
}

// No process of the links remains, in whichever way a run ends. Their devices and namespaces end
// with the processes, which package emulator tests.
func TestLinksLeaveNothing(t *testing.T) {
	linkNeeds(t)
	for _, end := range []string{"interrupt", "terminate twice", "kill", "kill the keeper", "kill the mover"} {
		t.Run(end, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			p := started(t, "run", "--quiet", "--out", dir, scenarioOf(t, `target: built-in
link: {a: {rate: 10Mbit/s}, b: {rate: 10Mbit/s, rtt: 20ms}}
workload: {kind: job, job: {events: 20, page: 8KiB}}
load: {clients: 4, duration: 10m, ramp: 0, warmup: 0, graceful_stop: 1s}
`))
			untilHeld(t, dir, 1)
			family := descendants(p.Process.Pid)
			if len(family) < 5 { // keeper, mover, two workers, the server
				t.Fatalf("processes %v", family)
			}
			switch end {
			case "interrupt":
				p.send(t, os.Interrupt)
			case "terminate twice":
				p.send(t, syscall.SIGTERM)
				require.Eventually(t, "the end of the run", func() bool {
					return contains(filepath.Join(dir, results.EventsFile), "\"end\"") || p.Process.Signal(syscall.SIGTERM) != nil
				})
			case "kill":
				p.send(t, os.Kill)
			case "kill the keeper", "kill the mover":
				_, name, _ := strings.Cut(end, "kill the ")
				for _, pid := range family {
					if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && strings.Contains(string(b), name) {
						if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
							t.Error(err)
						}
					}
				}
			}
			code, said := p.ended()
			why := map[string]string{"kill the keeper": "the process that keeps the links has ended",
				"kill the mover": "the process that carries packets has ended: signal: killed"}[end]
			if why != "" && (code != exitError || !strings.Contains(said, why) ||
				!contains(filepath.Join(dir, results.EventsFile), "broken off: "+why)) {
				t.Errorf("exit code %d:\n%s", code, said)
			}
			require.Eventually(t, "the end of its processes", func() bool { return !slices.ContainsFunc(family, alive) })
		})
	}
}

func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(b), ") Z ")
}

// descendants returns the processes that pid has started, directly or through other processes.
func descendants(pid int) (all []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range files {
		b, err := os.ReadFile(f)
		_, rest, ok := strings.Cut(string(b), ") ")
		fields := strings.Fields(rest)
		if err != nil || !ok || len(fields) < 2 || fields[1] != strconv.Itoa(pid) {
			continue
		}
		if child, err := strconv.Atoi(strings.Split(f, "/")[2]); err == nil {
			all = append(append(all, child), descendants(child)...)
		}
	}
	return all
}

// Without privileges links are made in a network of their own, and its limitations are reported; or
// the run is refused with the reason.
func TestLinksWithoutPrivileges(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("this test becomes somebody without privileges, which only root can")
	}
	labtest.Need(t, "setpriv")
	dir, program := forOthers(t)
	for name, link := range map[string]string{"far": "{rate: 20Mbit/s, rtt: 20ms}", "slow": "{rate: 20Mbit/s}"} {
		file := filepath.Join(dir, name+".yaml")
		text := "target: built-in\nlink: " + link + `
workload: {kind: job, verify: 0, job: {events: 20, page: 8KiB, read_ahead: 64KiB}}
load: {clients: 8, duration: 3s, ramp: 0, warmup: 1s, graceful_stop: 2s}
`
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		out := filepath.Join(dir, name)
		p := start(t, dir, "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", program, "run", "--quiet",
			"--out", out, file)
		code, said := p.ended()
		if code == exitError && strings.Contains(said, "links cannot be emulated here: ") && strings.Contains(said, "docs/links.md") {
			t.Log(said)
			continue
		}
		if code != exitFine && code != exitInvalid {
			t.Fatalf("%s: exit code %d:\n%s", name, code, said)
		}
		about, err := results.Open(out)
		require.NoError(t, err)
		how := about.About.Links
		t.Logf("%s: %+v", name, how)
		if how == nil || !how.Isolated || how.Why == "" || len(how.Blind) == 0 {
			t.Errorf("%s: links are made as %+v", name, how)
		}
		f := findings(t, out)
		if carried := 8 * linkHost(t, f, "link").ToClients.Carried; carried > 1.01*20e6 || carried < 0.5*20e6 {
			t.Errorf("%s: the link carried %.1f of 20 Mbit/s", name, carried/1e6)
		}
	}
}

// A target keeps its name for TLS, and servers that it redirects to are reached over the link as
// well. External client programs get an address that they can reach.
func TestLinksReachWhatIsNamed(t *testing.T) {
	linkNeeds(t)
	labtest.Need(t, "curl")
	s, cluster := labtest.Start(t, lab.XRootDConfig{Config: lab.Config{TLS: true}}), labtest.Start(t, lab.XRootDConfig{Servers: 2})
	ng := labtest.Start(t, lab.NginxConfig{})
	for name, c := range map[string]string{
		"roots":      "target: " + s.URLs["roots"] + "\nauth: {ca_file: " + s.CAFile + "}",
		"redirector": "target: " + cluster.URL,
		"https":      "target: " + s.URLs["https"] + "\nauth: {ca_file: " + s.CAFile + "}",
		"curl":       "target: " + ng.URL + "\nclient: curl",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := measureFor(t, scenarioOf(t, c+`
files: {make: {count: 4, size: 256KiB}}
workload: {verify: 0.5}
link: {far: {rate: 40Mbit/s, rtt: 5ms}, near: {rate: 80Mbit/s}}
load: {clients: 6, duration: 3s, ramp: 0, warmup: 500ms}
`))
			clean(t, f)
			carried := linkHost(t, f, "link far").ToClients.Carried + linkHost(t, f, "link near").ToClients.Carried
			// Seconds at the edges of the hold are weighted: the test only requires that no traffic
			// bypasses the links.
			if got := f.Curve[0].Throughput; carried < 0.7*got || carried > 1.6*got {
				t.Errorf("the links carried %.0f B/s of %.0f B/s of payload", carried, got)
			}
		})
	}
}

// The first example of the page is run. The results of its jobs are reported by site.
func TestExampleOfLinks(t *testing.T) {
	tier.Full(t, "the page, line by line")
	tier.Slow(t, "runs for seconds")
	linkNeeds(t)
	page := require.File(t, "../../docs/links.md")
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	example, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("the page has no example")
	}
	f := measureFor(t, scenarioOf(t, example), "--set", "load={clients: [3, 6], duration: 2s, ramp: 0, warmup: 0, graceful_stop: 1s}")
	for _, name := range []string{"link far", "link near"} {
		if l := linkHost(t, f, name); l == nil || l.ToClients.Carried == 0 {
			t.Errorf("%s carried nothing", name)
		}
	}
	for i := range f.Curve {
		s := &f.Curve[i]
		far, near := s.Site("far"), s.Site("near")
		if len(s.Sites) != 2 || far == nil || near == nil || far.Clients != s.Clients/3 || far.Clients+near.Clients != s.Clients {
			t.Fatalf("%d jobs: sites %+v", s.Clients, s.Sites)
		}
		if far.Jobs.Begun+near.Jobs.Begun != s.Jobs.Begun || far.Used+near.Used != s.Used ||
			math.Abs(far.EventRate+near.EventRate-s.EventRate) > 1e-6*s.EventRate {
			t.Errorf("%d jobs: far %+v, near %+v, together %+v", s.Clients, far, near, s.JobFigures)
		}
		farEach, nearEach := far.EventRate/far.RunningJobs, near.EventRate/near.RunningJobs
		if !(nearEach > 2*farEach && farEach > 0) { // a page of the far site takes at least 51 ms
			t.Errorf("%d jobs: a job reads %v events/s over 51 ms, %v over 7 ms", s.Clients, farEach, nearEach)
		}
	}
}
