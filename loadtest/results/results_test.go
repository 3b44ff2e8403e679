package results

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/internal/require"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
	"weir/monitor"
	"weir/storage"
)

func testPlan() *scenario.Plan {
	return &scenario.Plan{Version: scenario.PlanVersion, Name: "test", Target: "http://localhost:1/", Driver: "webdav",
		Seed: 7, Model: "closed", Steps: []scenario.Step{{Number: 1, Clients: 4}}}
}

func testInterval(i int) *measure.Interval {
	iv := &measure.Interval{
		Start: time.Unix(int64(1_700_000_000+i), 0).UTC(), Seconds: 1, Step: 1, Phase: measure.Measured, Clients: 4, Kind: storage.Read,
		Server: "localhost:1",
		Sum: measure.Sum{
			Moved: int64(1000 + i), Done: 3, Failed: map[storage.Class]int64{storage.NotFound: 2},
		},
	}
	iv.Latency.Record(3 * time.Millisecond)
	return iv
}

func create(t *testing.T) (*Writer, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "some", "where")
	w, err := Create(dir, testPlan(), About{Weir: "v1", Command: []string{"weir", "run", "--target", "https://me:geheim@host/x"}})
	require.NoError(t, err)
	return w, dir
}

func open(t *testing.T, dir string) *Run {
	t.Helper()
	r, err := Open(dir)
	require.NoError(t, err)
	return r
}

func collect[T any](t *testing.T, seq iter.Seq2[*T, error]) []*T {
	t.Helper()
	var all []*T
	for v, err := range seq {
		require.NoError(t, err)
		all = append(all, v)
	}
	return all
}

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	w, dir := create(t)
	sample := &monitor.Sample{Time: time.Unix(1_700_000_001, 0).UTC(), Seconds: 1, Host: "a<b>&c", Role: "both", Cores: 2,
		CPU: &monitor.CPU{User: 0.5, Idle: 0.5}, Procs: []monitor.Proc{{Name: "nginx", Role: "server", Written: 1 << 40}}}
	event := measure.Event{Time: time.Unix(1_700_000_002, 0).UTC(), Kind: measure.EventError, Step: 1, Text: "a\nb", Class: storage.Denied}
	for i := range 3 {
		require.NoError(t, w.Interval(testInterval(i)))
	}
	require.NoError(t, errors.Join(w.Sample(sample), w.Event(event), w.Close()))
	r := open(t, dir)
	if diff := cmp.Diff(testPlan(), r.Plan); diff != "" {
		t.Error(diff)
	}
	if r.About.Format != FormatVersion || r.About.Run == "" || !strings.HasPrefix(r.About.Go, "go") || len(r.Torn) != 0 {
		t.Errorf("about %+v, torn %q", r.About, r.Torn)
	}
	if got := r.About.Command[3]; got != "https://me:REDACTED@host/x" {
		t.Errorf("command line kept a password: %s", got)
	}
	got := collect(t, r.Intervals())
	want := []*measure.Interval{testInterval(0), testInterval(1), testInterval(2)}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreTypes(measure.Histogram{})); diff != "" {
		t.Error(diff)
	}
	if p := got[0].Latency.Quantile(0.5); p < 0.00297 || p > 0.00303 {
		t.Errorf("latency %v, want 3 ms", p)
	}
	if diff := cmp.Diff([]*monitor.Sample{sample}, collect(t, r.Samples())); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]*measure.Event{&event}, collect(t, r.Events())); diff != "" {
		t.Error(diff)
	}
}

func TestManyWritersMakeWholeLines(t *testing.T) {
	w, dir := create(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 50 {
				if err := errors.Join(w.Interval(testInterval(i)), w.Event(measure.Event{Text: "x"})); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, w.Close())
	r := open(t, dir)
	if n := len(collect(t, r.Intervals())); n != 400 {
		t.Errorf("%d intervals, want 400", n)
	}
	if n := len(collect(t, r.Events())); n != 400 {
		t.Errorf("%d events, want 400", n)
	}
}

func TestCreateRefuses(t *testing.T) {
	w, dir := create(t)
	require.NoError(t, w.Close())
	if _, err := Create(dir, testPlan(), About{}); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), "holds a run already") {
		t.Errorf("second run in the same folder: %v", err)
	}
	other := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(other, "thesis.tex"), nil, 0o600))
	if _, err := Create(other, testPlan(), About{}); err == nil || !strings.Contains(err.Error(), "thesis.tex") {
		t.Errorf("folder of somebody else: %v", err)
	}
	if _, err := Create(filepath.Join(other, "thesis.tex"), testPlan(), About{}); err == nil {
		t.Error("a file is no folder")
	}
	made := t.TempDir()
	m, err := OpenManifest(made)
	require.NoError(t, err)
	defer m.Close()
	w, err = Create(made, testPlan(), About{})
	if err != nil {
		t.Fatalf("a manifest may be there before: %v", err)
	}
	require.NoError(t, w.Close())
}

func TestOfTwoCreatorsOneWins(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	wins := make(chan *Writer, 8)
	for range 8 {
		wg.Go(func() {
			if w, err := Create(dir, testPlan(), About{}); err == nil {
				wins <- w
			}
		})
	}
	wg.Wait()
	close(wins)
	n := 0
	for w := range wins {
		n++
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	if n != 1 {
		t.Errorf("%d creators of one folder, want 1", n)
	}
	open(t, dir)
}

func TestOpenRefuses(t *testing.T) {
	plan := `{"version":2,"name":"x"}`
	for name, c := range map[string]struct{ about, plan, want string }{
		"empty folder":   {"", "", "is not a run directory"},
		"no plan":        {`{"format":3}`, "", "plan.json"},
		"newer format":   {`{"format":4}`, plan, "use a newer weir"},
		"no format":      {`{}`, plan, "version 0"},
		"newer plan":     {`{"format":3}`, `{"version":9}`, "use a newer weir"},
		"broken about":   {`{"format`, plan, "about.json"},
		"plan of a list": {`{"format":3}`, `[]`, "plan.json"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, AboutFile, c.about)
			put(t, dir, PlanFile, c.plan)
			if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// put writes text into dir, unless text is empty.
func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if text == "" {
		return
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
}

func TestDamagedLines(t *testing.T) {
	good := `{"start":"2026-01-02T03:04:05Z","duration_seconds":1,"step":1,"phase":"measure","kind":"read"}`
	for name, c := range map[string]struct {
		text string
		n    int    // lines read
		want string // error
		torn bool
	}{
		"whole":                    {good + "\n" + good + "\n", 2, "", false},
		"no newline but whole":     {good + "\n" + good, 2, "", false},
		"torn":                     {good + "\n" + good[:40], 1, "", true},
		"torn with zeros":          {good + "\n\x00\x00\x00\x00", 1, "", true},
		"only torn":                {good[:40], 0, "", true},
		"damaged in between":       {good + "\n" + good[:40] + "\n" + good + "\n", 1, ":2: damaged line", false},
		"damaged last, with a end": {good + "\nnonsense\n", 1, ":2: damaged line", false},
		"empty line":               {"\n" + good + "\n", 1, "", false},
		"negative":                 {strings.Replace(good, `"step":1`, `"step":1,"done":-1`, 1) + "\n", 0, "done -1 is impossible", false},
		"negative waits":           {strings.Replace(good, `"step":1`, `"step":1,"waits":-1`, 1) + "\n", 0, "waits -1 is impossible", false},
		"negative wait":            {strings.Replace(good, `"step":1`, `"step":1,"waited_seconds":-1`, 1) + "\n", 0, "waited_seconds", false},
		"a site that is null": {strings.Replace(good, `"step":1`, `"step":1,"sites":{"cern":null}`, 1) + "\n", 0,
			`site "cern" is null`, false},
		"negative at a site": {strings.Replace(good, `"step":1`, `"step":1,"sites":{"cern":{"jobs_done":-1}}`, 1) + "\n", 0,
			`site "cern": damaged line: jobs_done -1 is impossible`, false},
		"bad redirects": {strings.Replace(good, `"step":1`, `"redirect_seconds":{"count":1,"hdr":"abc"}`, 1) + "\n", 0, ":1: damaged", false},
		"bad histogram": {strings.Replace(good, `"step":1`, `"latency_seconds":{"count":1,"hdr":"abc"}`, 1) + "\n", 0, ":1: damaged", false},
		"no start":      {"{}\n", 0, "start is missing", false},
		"empty":         {"", 0, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, AboutFile, `{"format":3}`)
			put(t, dir, PlanFile, `{"version":2}`)
			put(t, dir, IntervalsFile, c.text)
			r := open(t, dir)
			n, failure := 0, ""
			for _, err := range r.Intervals() {
				if err != nil {
					failure = err.Error()
					continue
				}
				n++
			}
			if n != c.n || (len(r.Torn) > 0) != c.torn {
				t.Errorf("read %d lines, torn %q; want %d, %v", n, r.Torn, c.n, c.torn)
			}
			if (failure == "") != (c.want == "") || !strings.Contains(failure, c.want) {
				t.Errorf("error %q, want %q", failure, c.want)
			}
		})
	}
}

func TestWriteFileReplacesWholeFiles(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, CurveFile, "old")
	require.NoError(t, WriteFile(dir, CurveFile, indented(map[string]int{"a": 1})))
	broken := errors.New("cannot go on")
	if err := WriteFile(dir, CurveFile, func(w io.Writer) error {
		_, _ = fmt.Fprint(w, "half")
		return broken
	}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	got, err := os.ReadFile(filepath.Join(dir, CurveFile))
	if err != nil || string(got) != "{\n  \"a\": 1\n}\n" {
		t.Errorf("%q, %v", got, err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("left %v", entries)
	}
}

func TestReadClock(t *testing.T) {
	c := ReadClock()
	if c.Read <= 0 || c.Read > 1e-3 || c.Step <= 0 {
		t.Errorf("%+v", c)
	}
}
