package analysis

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/results/resultstest"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/monitor"
	"weir/storage"
)

// AnalyzeWithSeries ends may differ by a little in a second or two, and a few bytes prove nothing.
func TestShortRunsAreNotProvenWrong(t *testing.T) {
	for name, c := range map[string]struct {
		hold        int
		moved       float64
		state, want string
	}{
		"long":               {8, 2, Fail, "-50.00%"},
		"short":              {2, 2, Fail, "-50.00%"},
		"short, and by less": {2, 1.08, Warn, "-7"},
		"long, and by less":  {8, 1.08, Fail, "-7"},
		"little":             {8, 1e-6, Skipped, "at least 1.00 MB"},
	} {
		t.Run(name, func(t *testing.T) {
			s := resultstest.Typical()
			s.Clients, s.Duration = s.Clients[:1], c.hold
			s.Interval = func(iv *measure.Interval) {
				iv.Moved = int64(float64(iv.Moved) * c.moved)
				iv.Wire = int64(float64(iv.Wire) * c.moved)
			}
			if got := find(t, of(t, s), "both ends agree"); got.Status != c.state || !strings.Contains(got.Detail, c.want) {
				t.Errorf("%+v, want %s, %q", got, c.state, c.want)
			}
		})
	}
}

// What other programs send has nothing to do with files of this machine.
func TestFilesOfThisMachineCrossNoNetwork(t *testing.T) {
	p := resultstest.Typical().Plan()
	p.Driver = "local"
	d := &data{plan: p, down: 1 << 30}
	d.watching()
	d.watch(&monitor.Sample{Time: time.Now(), Seconds: 1, Nets: []monitor.Net{{Name: "lo", Sent: 1 << 40}}})
	if c := d.checkBytes(); c.Status != Skipped || !strings.Contains(c.Detail, "not cross a network") {
		t.Errorf("%+v", c)
	}
}

// The first error of each class is told in its own words, once.
func TestFirstErrorsAreTold(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	s := resultstest.Typical()
	w, err := results.Create(dir, s.Plan(), results.About{Weir: "test", Run: "20260301-120000-abcdef", Start: resultstest.Start()})
	require.NoError(t, err)
	for _, e := range []measure.Event{
		{Class: storage.Busy, Text: "read /a: HTTP status 503"},
		{Class: storage.Busy, Text: "read /b: HTTP status 503"},
		{Class: storage.NotFound, Text: "read /c: HTTP status 404"},
	} {
		e.Time, e.Kind, e.Step = time.Now(), "error", 1
		require.NoError(t, w.Event(e))
	}
	require.NoError(t, w.Close())
	run, err := results.Open(dir)
	require.NoError(t, err)
	f, err := Analyze(run)
	require.NoError(t, err)
	said := strings.Join(f.Warnings, "\n")
	for text, n := range map[string]int{"/a: HTTP status 503": 1, "/b": 0, "/c: HTTP status 404": 1} {
		if strings.Count(said, text) != n {
			t.Errorf("%q is told %d times, want %d:\n%s", text, strings.Count(said, text), n, said)
		}
	}
}

func TestALevelCurveDoesNotGrow(t *testing.T) {
	f := &Findings{Measure: Throughput, Curve: []Step{{Step: 3, Clients: 1, Throughput: 1.41e10}, {Step: 7, Clients: 10, Throughput: 1.42e10}}}
	f.understand()
	if got := placed(f); got != (turned{clients: 1, low: 1, high: 10}) {
		t.Errorf("%+v", got)
	}
	f.Curve[0].Throughput = 1e10
	f.understand()
	if got := placed(f); got != (turned{clients: 10, low: 10, high: 10}) {
		t.Errorf("%+v", got)
	}
}

// Arrivals that wait because all clients wait for the service are not late by
// the generator's fault.
func TestOverloadIsNotTheGeneratorsFault(t *testing.T) {
	late, cpu := 1.2, 0.1
	s := Step{Rate: 20000, Clients: 1000, ActiveClients: 999.9, Done: 16000, Missed: 5000, LateP99: &late, timedStarts: 16000, ClientCPU: &cpu}
	if status, reasons := judge(&s); status != Warn || len(reasons) != 1 || !strings.Contains(reasons[0], "max_clients") {
		t.Errorf("%s, %q", status, reasons)
	}
	s.ActiveClients = 500
	if status, _ := judge(&s); status != Fail {
		t.Errorf("%s with idle clients, want fail", status)
	}
	if at := (&Findings{Model: "open"}).at(&s); at != "20000 arrivals/s" {
		t.Error(at)
	}
}

// A payload that could not be judged is no evidence against the others, also
// where all should have been checked.
func TestUnverifiablePayloadsAreNoted(t *testing.T) {
	make100 := &scenario.Make{Count: 100}
	for name, c := range map[string]struct {
		kind   storage.Kind
		make   *scenario.Make
		part   *workload.Part
		remedy string
	}{
		"existing files": {storage.Read, nil, nil, "files.make"},
		"parts of them":  {storage.Read, nil, &workload.Part{Size: 10}, "files.make"},
		"made files":     {storage.Read, make100, nil, "workload.verify"},
		"writes":         {storage.Write, nil, nil, "workload.verify"},
	} {
		p := resultstest.Typical().Plan()
		p.Work.Verify, p.Work.Part, p.Files.Make = 1, c.part, c.make
		d := &data{plan: p, moved: 1, kinds: map[string]*total{c.kind.String(): {Sum: measure.Sum{Done: 50, Unverifiable: 10}}}}
		got := d.checkVerification(&Findings{Curve: []Step{{Done: 50, Verified: 40, Unverified: 10}}})
		if got.Status != OK || len(got.notes) != 1 || !strings.Contains(got.notes[0].Remedy, c.remedy) {
			t.Errorf("%s: %+v", name, got)
		}
		got = d.checkVerification(&Findings{Curve: []Step{{Done: 50, Unverified: 50}}})
		if got.Status != Skipped || len(got.notes) != 1 {
			t.Errorf("%s, none checked: %+v", name, got)
		}
	}
}

// Operations without payload are none that should have been checked.
func TestOnlyPayloadsAreToBeChecked(t *testing.T) {
	d := &data{plan: resultstest.Typical().Plan(), moved: 71, kinds: map[string]*total{"read": {Sum: measure.Sum{Done: 2}},
		"stat": {Sum: measure.Sum{Done: 4882}}}}
	c := d.checkVerification(&Findings{Curve: []Step{{Done: 4884}}})
	if c.Status != Skipped || !strings.Contains(c.Detail, "none of 2 ") {
		t.Errorf("%+v", c)
	}
}

// In a mix with next to no payload operations count: 736 bit/s says nothing of names.
func TestMeasureOfSmallPayload(t *testing.T) {
	for size, want := range map[int64]string{0: Rate, 1: Rate, 511: Rate, 512: Throughput, 1 << 20: Throughput} {
		s := resultstest.Typical()
		s.File, s.Clients = size, []int{1, 2}
		run := written(t, s)
		run.Plan.Work.Kind = "mix"
		f, err := Analyze(run)
		require.NoError(t, err)
		if _, measure, err := Curve(run); f.Measure != want || measure != want || err != nil {
			t.Errorf("files of %d bytes: by %s and %s (%v), want %s", size, f.Measure, measure, err, want)
		}
	}
}

// Closing sessions is a part of the clients' time: of 8 clients for 5 s, 15% here.
func TestLittlesLawKnowsClosingSessions(t *testing.T) {
	d := &data{plan: &scenario.Plan{}}
	s := &Step{Duration: 5, ActiveClients: 8, Done: 10_000, busySeconds: 34, closingSeconds: 6}
	if n := d.little(s); n == nil || *n != 1 {
		t.Errorf("%v of the clients' time is explained, want all", n)
	}
}

func TestLittlesLawJudges(t *testing.T) {
	for little, want := range map[float64]struct{ status, why string }{
		1.04: {OK, ""}, 1.1: {Warn, "overlapped"}, 1.2: {Fail, "overlapped"},
		0.96: {OK, ""}, 0.9: {Warn, "delayed them"}, 0.8: {Fail, "delayed them"},
	} {
		if status, why := judgeLittle(&Step{Little: &little}); status != want.status || !strings.Contains(why, want.why) {
			t.Errorf("%g: %s, %q; want %s, %q", little, status, why, want.status, want.why)
		}
	}
}

// What an operation takes counts while it takes it: few that last long are as good as many. Pauses count where they begin.
func TestLittlesLawNeedsManyPauses(t *testing.T) {
	d := &data{plan: &scenario.Plan{}}
	for name, c := range map[string]struct {
		s      Step
		judged bool
	}{
		"one long operation each": {Step{Duration: 5, ActiveClients: 8, Done: 8, busySeconds: 40}, true},
		"none ended":              {Step{Duration: 5, ActiveClients: 8, busySeconds: 40}, true},
		"few pauses":              {Step{Duration: 5, ActiveClients: 8, Done: 8, busySeconds: 20, thinkSeconds: 20}, false},
		"many pauses":             {Step{Duration: 5, ActiveClients: 8, Done: 160, busySeconds: 20, thinkSeconds: 20}, true},
		"not recorded":            {Step{Duration: 5, ActiveClients: 8, Done: 160, latencySeconds: 40}, false},
	} {
		if n := d.little(&c.s); (n != nil) != c.judged || n != nil && *n != 1 {
			t.Errorf("%s: %v, judged: want %v", name, n, c.judged)
		}
	}
}
