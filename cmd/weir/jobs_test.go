package main

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/loadtest/analysis"
	"weir/loadtest/analysis/campaign"
	"weir/loadtest/results"
)

// byLevel runs a campaign of one factor and returns the findings of each level.
func byLevel(t *testing.T, file, factor string, args ...string) (f map[string]*analysis.Findings, dir, said string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "campaign")
	args = append([]string{"run", filepath.Join(scenarios(t), "jobs", file), "--quiet", "--out", dir}, args...)
	code, said := started(t, args...).ended() // in its own process, to tell it apart from other tests' runs
	if code != exitFine && code != exitInvalid && code != exitMissed {
		t.Fatalf("exit code %d:\n%s", code, said)
	}
	c, err := campaign.Read(dir)
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	f = map[string]*analysis.Findings{}
	for _, r := range c.Runs {
		f[r.Levels[factor]] = findings(t, filepath.Join(dir, r.Dir))
	}
	return f, dir, said
}

// heaviest returns the step with the most clients.
func heaviest(t *testing.T, f *analysis.Findings) *analysis.Step {
	t.Helper()
	if f == nil || len(f.Curve) == 0 || f.Curve[len(f.Curve)-1].Jobs == nil || f.Curve[len(f.Curve)-1].CPUEfficiency == nil {
		t.Fatalf("no jobs were measured: %+v", f)
	}
	return &f.Curve[len(f.Curve)-1]
}

// The results of the Objectivity note of 1999 are reproduced: at 2 and 10 Mbit/s the network is the
// bottleneck, at 1000 Mbit/s a CPU. Over the WAN jobs have an efficiency of a few percent.
func TestLANAndWAN(t *testing.T) {
	tier.Quiet(t, "the tests of the five reports, small")
	linkNeeds(t)
	runs, dir, said := byLevel(t, "lan-wan-small.yaml", "network", "--clients", "1,4,20", "--duration", "2s", "--set", "load.warmup=500ms")
	for network, want := range map[string][]string{
		"LAN 1000 Mbit/s": {analysis.ResourceCPU, analysis.ResourceCore},
		"LAN 10 Mbit/s":   {analysis.ResourceNetwork},
		"WAN 2 Mbit/s":    {analysis.ResourceNetwork},
	} {
		f := runs[network]
		if len(f.Bottleneck) > 0 && f.Bottleneck[0].Reason == analysis.ReasonForeign { // correct if other programs use all of this machine
			t.Logf("%s: %s", network, f.Bottleneck[0].Text())
			continue
		}
		if len(f.Bottleneck) == 0 || !slices.Contains(want, f.Bottleneck[0].Resource) ||
			want[0] == analysis.ResourceNetwork != (f.Bottleneck[0].Host == "link") {
			t.Errorf("%s: %+v limits it, want %v\n%s", network, f.Bottleneck, want, said)
		}
	}
	for network, most := range map[string]float64{"LAN 10 Mbit/s": 10e6, "WAN 2 Mbit/s": 2e6, "four sites": 8e6, "four clients": 100e6} {
		s := heaviest(t, runs[network])
		if got := 8 * s.Throughput; got > most || got < 0.2*most || s.Jobs.Failed+s.Jobs.Crashed > 0 {
			t.Errorf("%s: %.3g bit/s, %+v", network, got, s.Jobs)
		}
	}
	wan := heaviest(t, runs["WAN 2 Mbit/s"])
	if e := *wan.CPUEfficiency; e > 0.02 { // 2 Mbit/s carry 6 events/s of 5 ms each, for 20 jobs
		t.Errorf("20 jobs over the WAN have an efficiency of %v", e)
	}
	if len(runs["four sites"].Curve) != 3 {
		t.Fatalf("four sites: %d steps", len(runs["four sites"].Curve))
	}
	four := &runs["four sites"].Curve[1] // "higher is the line speed and smaller is the MWT of the job"; with 20 jobs the trunk is full
	milano, cern, padova := four.Site("milano"), four.Site("cern"), four.Site("padova")
	if milano == nil || cern == nil || padova == nil || len(four.Sites) != 4 || milano.EventRate < 1.5*cern.EventRate ||
		milano.EventRate < 1.2*padova.EventRate {
		t.Errorf("four sites: milano %+v\ncern %+v\npadova %+v", milano, cern, padova)
	}
	trunk, over := linkHost(t, runs["four sites"], "link cnaf").ToClients, 0.0
	for _, site := range []string{"padova", "genova", "milano"} {
		over += linkHost(t, runs["four sites"], "link "+site).ToClients.Carried
	}
	if 8*trunk.Carried > 6e6*1.02 || trunk.Busy == nil || math.Abs(over-trunk.Carried) > 0.05*trunk.Carried {
		t.Errorf("four sites: the trunk carried %.0f B/s, the links over it %.0f: %+v", trunk.Carried, over, trunk)
	}
	page, err := os.ReadFile(filepath.Join(dir, "compare.html"))
	if err != nil || !strings.Contains(said, "cluster throughput") {
		t.Fatalf("%v\n%s", err, said)
	}
	charted(t, string(page), "Cluster throughput</h3>", "CPU efficiency of jobs</h3>", "Mean wall clock time</h3>")
}

// The page server of 1999 had one thread. This thread is the limit, and its CPU time is measured
// separately from the CPU time of the clients. With two threads twice as much CPU time is used, if
// the machine has it.
func TestPageServer(t *testing.T) {
	tier.Quiet(t, "the tests of the five reports, small")
	if runtime.NumCPU() < 2 {
		t.Skip("this machine has one core")
	}
	const cost = 4e-3
	for try := range 3 {
		var f [2]*analysis.Findings
		right := true
		for i := range f {
			dir := filepath.Join(t.TempDir(), "run")
			code, said := started(t, "run", filepath.Join(scenarios(t), "jobs", "lan-wan-small.yaml"), "--quiet", "--out", dir, "--set",
				"matrix=null",
				"--set", "link=null", "--set", "workload.job={events: 2, event_size: 40kB, page: 8KiB}", "--clients", "1,4,16", "--duration", "3s",
				"--set", "server={cpu_per_page: 4ms, threads: "+strconv.Itoa(i+1)+"}").ended()
			if code != exitFine && code != exitInvalid {
				t.Fatalf("exit code %d:\n%s", code, said)
			}
			f[i] = findings(t, dir)
			for _, s := range f[i].Curve {
				pages := s.Throughput / (40e3 / 5)                 // an event is five pages, and the last page is shorter
				if used := pages * cost; used > float64(i+1)*1.1 { // pages served before may count in a step
					t.Errorf("%d threads: pages of %.2f s of CPU time each second", i+1, used)
				}
				if s.ServerCores == nil || s.ClientCPU == nil || s.ServerCPU == nil {
					t.Fatalf("%d threads: the CPU time of server and clients is not known apart: %+v", i+1, s)
				}
				if *s.ServerCores < 0.9*pages*cost {
					t.Errorf("%d threads: the server used %.2f cores for pages of %.2f s a second", i+1, *s.ServerCores, pages*cost)
				}
			}
			report := require.File(t, filepath.Join(dir, "report.html"))
			charted(t, string(report), "CPU against load</h3>")
			if b := f[i].Bottleneck; i == 0 && (len(b) == 0 || b[0].Resource != analysis.ResourceCore ||
				!strings.HasPrefix(b[0].Text(), "the server's CPU (1 thread)") || !strings.Contains(unwrapped(said), "the server's CPU (1 thread)")) {
				t.Logf("try %d: %+v\n%s", try, b, said)
				right = crowded(f[i]) || len(b) > 0 && b[0].Reason == analysis.ReasonForeign
			}
		}
		one, two := f[0].Curve[len(f[0].Curve)-1], f[1].Curve[len(f[1].Curve)-1]
		t.Logf("try %d: 1 thread %.0f pages/s, 2 threads %.0f; server %.2f and %.2f cores", try, one.Throughput/8000, two.Throughput/8000,
			*one.ServerCores, *two.ServerCores)
		if right && (two.Throughput > 1.5*one.Throughput || crowded(f[1])) {
			return
		}
	}
	t.Error("one thread is not the limit, or two threads are no more, three times")
}

// The results of the HammerCloud tests of 2009 are reproduced: the throughput of jobs that stage
// their files levels off with fewer jobs, and at a lower value, than the throughput of jobs that
// read directly.
func TestDirectAndStaged(t *testing.T) {
	tier.Quiet(t, "the tests of the five reports, small")
	linkNeeds(t)
	for try := range 3 {
		runs, dir, said := byLevel(t, "direct-vs-staged-small.yaml", "access", "--clients", "20", "--duration", "4s", "--set", "load.warmup=1s")
		direct, staged := heaviest(t, runs["direct"]), heaviest(t, runs["staged"])
		for access, s := range map[string]*analysis.Step{"direct": direct, "staged": staged} {
			if s.Jobs.Done == 0 || s.Jobs.Failed+s.Jobs.Crashed > 0 || (s.Staged > 0) != (access == "staged") {
				t.Errorf("%s: %+v, %d bytes staged", access, s.Jobs, s.Staged)
			}
		}
		for _, w := range []string{"Cluster throughput, staged against direct", "CPU efficiency, staged against direct", "Failed jobs",
			"Crashed jobs"} {
			if !strings.Contains(said, w) {
				t.Errorf("the comparison does not say %q:\n%s", w, said)
			}
		}
		page := require.File(t, filepath.Join(dir, "compare.html"))
		charted(t, string(page), "Cluster throughput</h3>", "CPU efficiency of jobs</h3>")
		// Four links carry the copies for 8 jobs' work, one link the pages for 17 jobs' work.
		if *direct.ClusterThroughput > 1.15**staged.ClusterThroughput && *staged.ClusterThroughput < 12 || t.Failed() {
			return
		}
		t.Logf("try %d: 20 jobs did the work of %.1f directly and of %.1f staged", try+1, *direct.ClusterThroughput, *staged.ClusterThroughput)
	}
	t.Error("jobs that stage did as well as those that read directly, three times")
}

// If a link is cut for longer than the timeout of requests, jobs that send requests meanwhile
// crash. With a longer timeout they go on when the link is back. The run with the short timeout
// does not meet a threshold of crashes, and the run with the long timeout meets it.
func TestCutLink(t *testing.T) {
	t.Parallel()
	linkNeeds(t)
	runs, dir, said := byLevel(t, "cut-link.yaml", "workload.timeout", "--duration", "7s", "--set", "load.warmup=0s", "--set", "load.ramp=0s",
		"--set", "link.outages=[{after: 1500ms, for: 2s}]", "--set", "matrix.workload.timeout=[1s, 30s]", "--set", "workload.job.events=2",
		"--set", "thresholds=[crash_ratio < 1%]")
	short, long := heaviest(t, runs["1s"]), heaviest(t, runs["30s"])
	if short.Jobs.Crashed < 5 || *short.CrashRatio == 0 {
		t.Errorf("with a timeout of 1 s, %+v", short.Jobs)
	}
	if long.Jobs.Crashed+long.Jobs.Failed > 0 || long.Jobs.Done < 5 {
		t.Errorf("with a timeout of 30 s, %+v", long.Jobs)
	}
	for level, met := range map[string]bool{"1s": false, "30s": true} {
		if th := runs[level].Thresholds; len(th) != 1 || th[0].Met != met {
			t.Errorf("timeout %s: %+v", level, th)
		}
	}
	logs, err := filepath.Glob(filepath.Join(dir, "0*", results.EventsFile))
	if err != nil || len(logs) != 2 {
		t.Fatal(logs, err)
	}
	for _, log := range logs {
		if !contains(log, "link is down for 2 s") || !contains(log, "link is up again") {
			t.Errorf("%s does not tell of the cut", log)
		}
	}
	if !strings.Contains(said, "Crashed jobs, 30s against 1s") {
		t.Errorf("the comparison does not tell of crashed jobs:\n%s", said)
	}
}

// The scenarios of full size work as well, as far as a short run can show.
func TestFullJobScenarios(t *testing.T) {
	tier.Full(t, "the scenarios on the services that they are for")
	tier.Slow(t, "runs for seconds")
	t.Parallel()
	linkNeeds(t)
	common := []string{"--clients", "1,3", "--set", "load.ramp=0s", "--set", "load.graceful_stop=20s"}
	for name, args := range map[string][]string{
		"lan-wan.yaml": {"--var", "EVENTS=10", "--set", "matrix=null", "--set", "link={a: {rate: 100Mbit/s}, b: {rtt: 5ms}}", "--set",
			"load.cooldown=100ms"},
		"direct-vs-staged.yaml": {"--var", "EVENTS=5", "--set", "matrix={workload.job.access: [direct, staged]}", "--duration", "2s", "--set",
			"load.warmup=500ms"},
		"disks.yaml": {"--set", "files.make.count=3", "--set", "workload.job={events: 5, event_size: 100kB, page: 4KiB, compute: 10ms}",
			"--duration", "2s", "--set", "load.warmup=500ms"},
	} {
		for _, f := range measureAll(t, slices.Concat([]string{"../../scenarios/jobs/" + name}, common, args)...) {
			done := int64(0)
			for _, s := range f.Curve {
				if s.Jobs == nil || s.Jobs.Failed+s.Jobs.Crashed > 0 {
					t.Errorf("%s, step %d: %+v", name, s.Step, s.Jobs)
				} else {
					done += s.Jobs.Done
				}
			}
			if done == 0 {
				t.Errorf("%s: no job was done", name)
			}
		}
	}
}

// Each new scenario must be tested here as well.
func TestAllJobScenariosAreTested(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../scenarios/jobs/*")
	require.NoError(t, err)
	for i := range files {
		files[i] = filepath.Base(files[i])
	}
	tested := []string{
		"analysis.py", "analysis.yaml", // see TestAnalysisByUproot
		"cut-link.yaml", "direct-vs-staged-small.yaml", "direct-vs-staged.yaml", "disks.yaml", "lan-wan-small.yaml", "lan-wan.yaml",
		"make_events.py", "output.yaml", "six-clients.yaml",
	}
	if !slices.Equal(files, tested) {
		t.Errorf("scenarios/jobs has %v, tested are %v", files, tested)
	}
}

// Every weir command of docs/jobs.md works as written, in the order of the page. Long runs are
// shortened, and the scenarios, which other tests run, are only planned.
func TestJobsPage(t *testing.T) {
	tier.Full(t, "the page, line by line")
	t.Parallel()
	page := require.File(t, "../../docs/jobs.md")
	text := strings.NewReplacer("duration 10s", "duration 1s", "duration: 20s", "duration: 1s", "clients 1,10,50", "clients 1,4",
		"clients: [1, 4, 16]", "clients: [1, 2]", "events: 200", "events: 20").Replace(string(page))
	example := regexp.MustCompile("(?s)```yaml\n# my-job.yaml\n(.*?)```").FindStringSubmatch(text)
	if example == nil {
		t.Fatal("the example is not there")
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "my-job.yaml"), []byte(example[1]), 0o600))
	commands := regexp.MustCompile(`(?m)^    weir (.*)$`).FindAllStringSubmatch(text, -1)
	if len(commands) < 10 {
		t.Errorf("only %d commands found", len(commands))
	}
	for _, m := range commands {
		args := shellWords(t, m[1])
		if file, ok := strings.CutPrefix(args[1], "scenarios/"); ok && args[0] == "run" {
			args = append([]string{"plan", filepath.Join(scenarios(t), file)}, args[2:]...)
		} else if args[0] == "run" {
			args = append(args, "--quiet", "--set", "load.ramp=0s", "--set", "load.warmup=100ms")
		}
		if code, said := start(t, dir, "weir", args...).ended(); code != exitFine && code != exitInvalid {
			t.Errorf("weir %s: exit code %d\n%s", m[1], code, said)
		}
	}
}
