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
	"weir/storage"
)

// TestShortRunsAreNotProvenWrong checks that the two ends may differ by a little in a second or
// two, and that a few bytes prove nothing.
func TestShortRunsAreNotProvenWrong(t *testing.T) {
	for name, c := range map[string]struct {
		hold        int
		moved       float64
		state, want string
	}{
		"long":               {8, 2, Fail, "-50.0%"},
		"short":              {2, 2, Fail, "-50.0%"},
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

// TestFirstErrorsAreTold checks that the text of the first error of each class is reported once.
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
	f := concluding(&Findings{Measure: Throughput, Curve: []Step{{Step: 3, Clients: 1, Throughput: 1.41e10},
		{Step: 7, Clients: 10, Throughput: 1.42e10}}})
	f.understand()
	if got := placed(f.Findings); got != (turned{clients: 1, low: 1, high: 10}) {
		t.Errorf("%+v", got)
	}
	f.c.Steps[0].Throughput = 1e10
	f.understand()
	if got := placed(f.Findings); got != (turned{clients: 10, low: 10, high: 10}) {
		t.Errorf("%+v", got)
	}
}

// TestMeasureOfSmallPayload checks that a mix with very little payload is measured in operations:
// 736 bit/s does not describe a mix of operations on names.
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
