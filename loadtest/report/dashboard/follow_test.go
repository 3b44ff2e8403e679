package dashboard

import (
	"crypto/rand"
	"encoding/json"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/unit"
	"weir/loadtest/analysis"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/results/resultstest"
	"weir/monitor"
	"weir/storage"
)

// The data that a page receives of a completed run equals the data of the report's plots.
func TestPageHasWhatTheRunHas(t *testing.T) {
	dir := t.TempDir()
	service := resultstest.Typical()
	service.Interval = func(iv *measure.Interval) {
		if iv.Step > 6 {
			iv.Failed = map[storage.Class]int64{storage.Timeout: 3, storage.Canceled: 2}
			iv.Wrong = 1
		}
	}
	require.NoError(t, service.Write(dir))
	run, err := results.Open(dir)
	require.NoError(t, err)
	found, series, err := analysis.AnalyzeWithSeries(run)
	require.NoError(t, err)
	s := serving(t, Config{Dir: dir})
	p := connect(t, s, nil, "")
	p.until("the result", func() bool { return p.last.Now.State == ended && p.found != nil })
	if len(p.at) != len(series.Points) {
		t.Fatalf("%d rows, %d points", len(p.at), len(series.Points))
	}
	for i := range series.Points {
		x := &series.Points[i]
		for name, want := range map[string]float64{"throughput": x.Throughput, "operations": x.Operations, "errors": x.Errors,
			"clients": x.Clients, "class timeout": x.ErrorsBy[storage.Timeout], "class checksum": x.ErrorsBy[storage.Checksummed],
			"step": float64(x.Step), "p50": x.P50, "p99": x.P99, "kind read": x.Operations} {
			got := 0.0
			if v := p.cols[name][i]; v != nil {
				got = *v
			}
			if math.Abs(got-want) > 1e-6*math.Abs(want) {
				t.Errorf("row %d: %s is %v, not %v", i, name, got, want)
			}
		}
		if at := p.at[i] + x.Seconds/2; math.Abs(at-x.At) > 2e-3 {
			t.Errorf("row %d is at %v, not %v", i, at, x.At)
		}
	}
	if p.found.Headline != found.Headline || p.found.Status != found.Validity.Status || !p.found.Final || len(p.found.Curve) == 0 {
		t.Errorf("found %+v", p.found)
	}
	for i := range found.Curve {
		want, got := &found.Curve[i], p.steps[found.Curve[i].Step]
		if got.Clients != want.Clients || got.Done != want.Done || got.Moved != want.Moved || got.Errors < want.Bad() ||
			math.Abs(got.Held-want.Duration) > 1e-6 ||
			want.Latency != nil && (got.P50 != want.Latency.P50 || got.P99 != want.Latency.P99) {
			t.Errorf("step %+v, not %+v", got, want)
		}
	}
	for _, h := range series.Hosts {
		n := 0
		for _, x := range h.Points {
			if x.At >= 0 {
				n++
			}
		}
		if got := p.tracks["host "+h.Host]; got != n {
			t.Errorf("%s: %d samples, not %d", h.Host, got, n)
		}
	}
	if p.errors["timeout"].Count == 0 || p.errors["checksum"].Count == 0 || len(p.errors) != 2 {
		t.Errorf("errors %+v", p.errors)
	}
}

// A pen writes a run second by second.
type pen struct {
	t    *testing.T
	w    *results.Writer
	dir  string
	at   time.Time
	step int
}

// begin begins a run of one step in dir.
func begin(t *testing.T, dir string) *pen {
	t.Helper()
	plan := resultstest.Typical().Plan()
	plan.Steps = plan.Steps[:2]
	w, err := results.Create(dir, plan, results.About{Start: resultstest.Start(), Run: rand.Text()})
	require.NoError(t, err)
	p := &pen{t: t, w: w, dir: dir, at: resultstest.Start(), step: 1}
	t.Cleanup(func() { _ = p.w.Close() })
	p.event("step", "step 1: 1 client")
	return p
}

func (p *pen) check(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *pen) event(kind measure.EventKind, text string) {
	p.t.Helper()
	p.check(p.w.Event(measure.Event{Time: p.at, Kind: kind, Step: p.step, Text: text, Clients: p.step, Duration: 8}))
}

// seconds writes n seconds of two data servers and one host.
func (p *pen) seconds(n int) {
	p.t.Helper()
	for range n {
		for _, server := range []string{"a:1", "b:1"} {
			iv := p.interval(server)
			p.check(p.w.Interval(iv))
		}
		p.at = p.at.Add(time.Second)
		p.check(p.w.Sample(&monitor.Sample{Time: p.at, Seconds: 1, Host: "h", Role: "server", Cores: 2, CPU: &monitor.CPU{User: 0.5, Idle: 0.5}}))
	}
}

func (p *pen) interval(server string) *measure.Interval {
	iv := &measure.Interval{Start: p.at, Seconds: 1, Step: p.step, Phase: measure.Measured, Clients: 1, Server: server,
		Sum: measure.Sum{Moved: 1000, Done: 2}}
	iv.Latency.Record(time.Second)
	return iv
}

// append writes bytes unchanged.
func (p *pen) append(name, text string) {
	p.t.Helper()
	f, err := os.OpenFile(filepath.Join(p.dir, name), os.O_WRONLY|os.O_APPEND, 0)
	p.check(err)
	_, err = f.WriteString(text)
	p.check(err)
	p.check(f.Close())
}

// A page grows with the run; a line is shown when it is complete; and a page that reconnects
// receives exactly the data that it lacks.
func TestPageGrowsAndComesBack(t *testing.T) {
	t.Parallel()
	run := begin(t, t.TempDir())
	s := serving(t, Config{Dir: run.dir})
	p := connect(t, s, nil, "")
	p.until("preparation", p.state(preparing))
	run.seconds(3)
	p.until("three seconds", func() bool { return len(p.at) == 3 && p.tracks["host h"] == 3 })
	if p.last.Now.State != running_ || p.last.Now.Place != 1 || p.last.Now.Of != 2 {
		t.Errorf("%+v", p.last.Now)
	}
	if y := p.cols["throughput"][2]; y == nil || *y != 2000 {
		t.Errorf("two data servers moved %v", y)
	}
	has := p.id

	line, err := marshalLine(run.interval("a:1"))
	run.check(err)
	run.append(results.IntervalsFile, line[:len(line)/2])
	run.event("warning", "half a line is there")
	p.until("the warning", func() bool { return strings.Contains(strings.Join(p.texts, "\n"), "half a line") })
	if len(p.at) != 3 || p.last.Now.Problem != "" {
		t.Errorf("%d rows, problem %q", len(p.at), p.last.Now.Problem)
	}
	run.append(results.IntervalsFile, line[len(line)/2:])
	run.at = run.at.Add(time.Second)
	run.seconds(2)
	p.until("six seconds", func() bool { return len(p.at) == 6 && p.tracks["host h"] == 5 })
	if y := p.cols["throughput"][3]; y == nil || *y != 1000 {
		t.Errorf("the line in two parts says %v", y)
	}

	again := connect(t, s, nil, has)
	if again.at = make([]float64, 3); !again.read() || again.first.Reset || again.first.Run != nil || again.first.Rows == nil ||
		again.first.Rows.From != 3 || len(again.first.Rows.At) != 3 {
		t.Errorf("a page that comes back is told %+v", again.first)
	}
	if y := again.cols["throughput"][2]; y == nil || *y != 2000 {
		t.Errorf("a page that comes back is told %v", y)
	}
	for _, id := range []string{"", "1.1", "x", strings.Split(has, ".")[0] + "1.1"} {
		if other := connect(t, s, nil, id); !other.read() || !other.first.Reset || other.first.Run == nil || len(other.at) != 6 {
			t.Errorf("id %q: a page that has nothing of this is told %+v", id, other.first)
		}
	}
}

func marshalLine(iv *measure.Interval) (string, error) {
	var b strings.Builder
	err := jsonLine(&b, iv)
	return b.String(), err
}

// A run may begin later than its page, be killed, resume, end, and be replaced by another run.
func TestPageOfARunThatComesAndGoes(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	dir := filepath.Join(t.TempDir(), "runs", "later")
	s := serving(t, Config{Dir: dir})
	p := connect(t, s, nil, "")
	p.until("nothing", p.state(waiting))
	run := begin(t, dir)
	p.until("the run", p.state(preparing))
	run.seconds(2)
	p.until("load", func() bool { return p.last.Now.State == running_ && len(p.at) == 2 })
	run.check(run.w.Close()) // as if the run was killed
	p.until("the break", p.state(broken))

	w, _, err := results.Resume(dir)
	run.check(err)
	run.w = w
	run.at = run.at.Add(time.Hour)
	run.event("resume", "resumed")
	run.step = 3
	run.event("step", "step 3: 1 client")
	run.seconds(2)
	p.until("the rest", func() bool { return p.last.Now.State == running_ && len(p.at) == 4 })
	if !p.steps[1].Broken || p.last.Now.Place != 1 || p.at[2] < 3600 {
		t.Errorf("steps %+v, now %+v, at %v", p.steps, p.last.Now, p.at)
	}
	run.event("end", "all steps done")
	run.check(run.w.Close())
	p.until("the end", func() bool { return p.last.Now.State == ended && p.found != nil && p.found.Final })
	if p.last.Now.Last != "all steps done" || p.last.Now.Share != 1 {
		t.Errorf("%+v", p.last.Now)
	}

	resets := p.resets
	run.check(os.RemoveAll(dir))
	other := begin(t, dir)
	other.seconds(1)
	p.until("another run", func() bool { return p.resets > resets && len(p.at) == 1 && p.last.Now.State == running_ })
	run.check(other.w.Event(measure.Event{Kind: measure.EventEnd}))
}

// Unreadable lines are reported with their place; the valid lines are shown.
func TestDamagedLine(t *testing.T) {
	run := begin(t, t.TempDir())
	run.seconds(2)
	s := serving(t, Config{Dir: run.dir})
	p := connect(t, s, nil, "")
	p.until("two seconds", func() bool { return len(p.at) == 2 })
	run.append(results.IntervalsFile, "{\"start\":\"<b>\x1b[31m\n")
	p.until("the problem", func() bool { return strings.Contains(p.last.Now.Problem, results.IntervalsFile+":5") })
	if strings.Contains(p.last.Now.Problem, "\x1b") || len(p.at) != 2 {
		t.Errorf("%q, %d rows", p.last.Now.Problem, len(p.at))
	}
}

// Neighboring rows of a long run are combined: memory and pages stay small.
func TestLongRun(t *testing.T) {
	tier.Slow(t, "follows a long run")
	h := newHistory()
	at := resultstest.Start()
	const n = mostRows + 2000
	for i := range n {
		iv := &measure.Interval{Start: at, Seconds: 1, Step: 1, Phase: measure.Measured, Clients: 4, Server: "s",
			Sum: measure.Sum{Moved: 8, Done: 4}}
		iv.Latency.Record(time.Duration(1+i%2) * time.Second)
		h.interval(iv)
		at = at.Add(time.Second)
		h.sample(&monitor.Sample{Time: at, Seconds: 1, Host: "h", Cores: 1, CPU: &monitor.CPU{User: 0.25}})
	}
	if len(h.rows.at) > mostRows || h.merged != 1 {
		t.Fatalf("%d rows, %d times merged", len(h.rows.at), h.merged)
	}
	span, moved, before := 0.0, 0.0, -1.0
	for i := range h.rows.at {
		if h.rows.at[i] <= before {
			t.Fatalf("row %d is at %v, after %v", i, h.rows.at[i], before)
		}
		before = h.rows.at[i]
		span += float64(h.rows.cols[colSeconds][i])
		moved += float64(h.rows.cols[colMoved][i] * h.rows.cols[colSeconds][i])
	}
	if span != n || moved != 8*n || math.Abs(float64(h.rows.cols[colP99][0])-2) > 0.02 || h.rows.cols[colClients][0] != 4 {
		t.Errorf("%v seconds, %v bytes, p99 %v, clients %v", span, moved, h.rows.cols[colP99][0], h.rows.cols[colClients][0])
	}
	if got := len(h.hosts["h"].track.at); got > n*2/3 || h.hosts["h"].track.cols[hostCPU][0] != 0.25 {
		t.Errorf("%d samples of a host, %v", got, h.hosts["h"].track.cols[hostCPU][0])
	}
}

// After a clock is set back, seconds are still inserted at their time.
func TestClockSetBack(t *testing.T) {
	h := newHistory()
	epoch := uint32(0)
	for i, second := range []int{10, 11, 12, 5, 6, 13} {
		if i == 3 {
			epoch = h.epoch
		}
		h.interval(&measure.Interval{Start: resultstest.Start().Add(time.Duration(second) * time.Second), Seconds: 1, Step: 1,
			Phase: measure.Measured, Sum: measure.Sum{Moved: int64(second)}})
	}
	for i, want := range []float64{5, 6, 10, 11, 12, 13} {
		if got := float64(h.rows.cols[colMoved][i]); got != want || h.rows.at[i] != want-10 {
			t.Errorf("row %d at %v: %v, not %v", i, h.rows.at[i], got, want)
		}
	}
	if h.epoch == epoch {
		t.Error("pages are not told")
	}
}

// Each population has columns of its own, whose sums are the values of all clients; a damaged run
// with thousands of names stays small.
func TestPopulations(t *testing.T) {
	h := newHistory()
	at := func(second int, name string, n int64) {
		h.interval(&measure.Interval{Start: resultstest.Start().Add(time.Duration(second) * time.Second), Seconds: 1, Step: 1,
			Phase: measure.Measured, Population: name, Sum: measure.Sum{Moved: 100 * n, Done: n}})
	}
	for second := range 3 {
		at(second, "readers", 5)
		at(second, "readers", 2) // of another data server
		if second == 1 {
			at(second, "writers", 3)
		}
	}
	for name, want := range map[string][]float32{"moved readers": {700, 700, 700}, "done readers": {7, 7, 7}, "moved writers": {0, 300, 0},
		"done writers": {0, 3, 0}} {
		c, ok := h.column[name]
		if !ok || !slices.Equal(h.rows.cols[c], want) {
			t.Errorf("%s: %v, want %v", name, h.rows.cols[c], want)
		}
	}
	if got := h.rows.cols[colMoved]; !slices.Equal(got, []float32{700, 1000, 700}) {
		t.Errorf("all: %v", got)
	}
	for i := range 5000 {
		at(4+i%7, "p"+strconv.Itoa(i), 1)
	}
	if n := len(h.rows.cols); n > 4*mostPopulations {
		t.Errorf("%d columns", n)
	}
}

// A run of many data servers and hosts stays small; see docs/seeing.md.
func TestManyHosts(t *testing.T) {
	h := newHistory()
	for i := range 3 * mostStores {
		h.interval(&measure.Interval{Start: resultstest.Start(), Seconds: 1, Step: 1, Phase: measure.Measured, Server: unit.Count(float64(i)),
			Sum: measure.Sum{Moved: 1}})
		h.sample(&monitor.Sample{Time: resultstest.Start().Add(time.Second), Seconds: 1, Host: unit.Count(float64(i)), Cores: 1})
	}
	if len(h.stores) != mostStores+1 || h.stores[othersName].moved != 2*mostStores {
		t.Errorf("%d data servers, others moved %d", len(h.stores), h.stores[othersName].moved)
	}
	list := newPicks(url.Values{})
	if blocks := list.blocks(h, time.Now()); len(blocks) != usualHosts+usualStores {
		t.Errorf("%d tracks are sent", len(blocks))
	}
	if len(h.hostsNow()) != mostNow || len(h.storesNow()) != mostStores+1 {
		t.Errorf("%d hosts, %d data servers are listed", len(h.hostsNow()), len(h.storesNow()))
	}
}

// FuzzRun reads damaged runs: every run that can be read can be sent to a page.
func FuzzRun(f *testing.F) {
	dir := f.TempDir()
	require.NoError(f, (resultstest.Service{Lambda: 60, File: 1, Clients: []int{1, 2}, Duration: 2}).Write(dir))
	var seeds [3][]byte
	names := []string{results.IntervalsFile, results.HostsFile, results.EventsFile}
	for i, name := range names {
		b, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(f, err)
		seeds[i] = b[:min(len(b), 4000)]
	}
	f.Add(seeds[0], seeds[1], seeds[2])
	f.Add([]byte(`{"start":"2026-03-01T12:00:00Z","duration_seconds":1e-300,"step":1,"phase":"measure","kind":"read","moved_bytes":1125899906842624,"begun":0,"done":1,"failed":{"other":9}}`+"\n"),
		[]byte(`{"time":"2026-03-01T11:00:00Z","host":"\u0000","processes":[{"role":"server","user_cpu_seconds":1}]}`+"\n"),
		[]byte(`{"time":"9999-12-31T23:59:59-23:59","event":"step","step":-1}`+"\n"+`{"event":"error","class":"other"}`+"\n"))
	f.Fuzz(func(t *testing.T, intervals, hosts, events []byte) {
		for i, b := range [][]byte{intervals, hosts, events} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, names[i]), b, 0o600))
		}
		follower, err := results.Follow(dir)
		if err != nil {
			return
		}
		s := newShown(".", dir, time.Now)
		s.begin(follower.Run())
		take := results.Takers{Interval: s.h.interval, Sample: s.h.sample, Event: s.h.event, Link: s.h.link}
		for more := true; more && err == nil; {
			more, err = follower.Poll(take)
		}
		m, has := s.message(cursor{}, newPicks(url.Values{}), time.Now())
		b, err := json.Marshal(m)
		require.NoError(t, err)
		p := &reader{t: t}
		told := new(got)
		require.NoError(t, json.Unmarshal(b, told))
		p.take(told)
		if len(p.at) != len(s.h.rows.at) || has.seq != s.h.seq {
			t.Errorf("%d rows of %d", len(p.at), len(s.h.rows.at))
		}
	})
}
