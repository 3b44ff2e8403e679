package results

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/require"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
	"weir/monitor"
)

// endAll appends text to each file that grows.
func endAll(t *testing.T, dir, text string) {
	t.Helper()
	for _, name := range []string{IntervalsFile, HostsFile, EventsFile} {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(t, err)
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		require.NoError(t, f.Close())
	}
}

func TestResumeCutsOnlyWhatIsTorn(t *testing.T) {
	for name, c := range map[string]struct {
		end  string
		more int // lines that the end is
	}{
		"nothing": {"", 0}, "half a line": {`{"time":"2026-01-0`, 0}, "zeros": {"\x00\x00\x00", 0},
		"a line without its end": {`{"time":"2026-01-02T03:04:05Z","start":"2026-01-02T03:04:05Z","event":"x","text":""}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w, dir := create(t)
			sample := &monitor.Sample{Time: time.Unix(1_700_000_001, 0), Host: "h"}
			if err := errors.Join(w.Interval(testInterval(1)), w.Sample(sample), w.Event(measure.Event{Kind: measure.EventStep, Step: 1}),
				w.Close()); err != nil {
				t.Fatal(err)
			}
			endAll(t, dir, c.end)
			w, run, err := Resume(dir)
			require.NoError(t, err)
			if len(run.Torn) > 0 || w.About().Run == "" {
				t.Errorf("torn %v, run %q", run.Torn, w.About().Run)
			}
			require.NoError(t, errors.Join(w.Interval(testInterval(2)), w.Event(measure.Event{Kind: measure.EventResume}), w.Close()))
			r := open(t, dir)
			n := []int{len(collect(t, r.Intervals())), len(collect(t, r.Samples())), len(collect(t, r.Events()))}
			if diff := cmp.Diff([]int{2 + c.more, 1 + c.more, 2 + c.more}, n); diff != "" {
				t.Errorf("intervals, samples and events: %s", diff)
			}
		})
	}
}

// A run that a live process writes is not changed, also not by a process that resumes it.
func TestResumeRefusesARunThatIsWritten(t *testing.T) {
	w, dir := create(t)
	if _, _, err := Resume(dir); !errors.Is(err, ErrBusy) {
		t.Errorf("a run that is written: %v", err)
	}
	require.NoError(t, w.Close())
	w, _, err := Resume(dir)
	require.NoError(t, err)
	if _, _, err := Resume(dir); !errors.Is(err, ErrBusy) {
		t.Errorf("a run that is resumed already: %v", err)
	}
	require.NoError(t, w.Close())
	if _, _, err := Resume(t.TempDir()); err == nil || !strings.Contains(err.Error(), "is not a run directory") {
		t.Errorf("an empty folder: %v", err)
	}
}

// part writes the hold of a step, complete or not, second by second.
func part(t *testing.T, w *Writer, at *int, step, seconds int, want float64) {
	t.Helper()
	require.NoError(t, w.Event(measure.Event{Kind: measure.EventStep, Step: step, Duration: want}))
	for range seconds {
		*at++
		v := testInterval(*at)
		v.Step = step
		other := *v
		other.Server = "another:1"
		require.NoError(t, errors.Join(w.Interval(v), w.Interval(&other)))
	}
}

// A step whose jobs ended before its measurement time was over is not held again if the run was
// completed.
func TestAStepThatEndedWithItsJobsIsOver(t *testing.T) {
	for end, want := range map[measure.Ending]int{measure.Completed(): 1, measure.InterruptedBy("SIGINT"): 0} {
		plan := testPlan()
		plan.Steps = []scenario.Step{{Number: 1, Clients: 4, Jobs: 1, Duration: 3600e9}}
		dir := t.TempDir()
		w, err := Create(dir, plan, About{})
		require.NoError(t, err)
		at := 0
		part(t, w, &at, 1, 5, 3600)
		require.NoError(t, errors.Join(w.Event(end.Event(time.Now(), 1)), w.Close()))
		p, err := open(t, dir).Progress()
		require.NoError(t, err)
		if first, _ := p.Left(); first != want {
			t.Errorf("%s: goes on at step %d of the plan, want %d", end.Text, first, want)
		}
	}
}

func TestProgressTellsWhereARunStopped(t *testing.T) {
	type held struct {
		step, seconds int
		want          float64
	}
	for name, c := range map[string]struct {
		parts         [][]held
		first, broken int
	}{
		"nothing":               {[][]held{{}}, 0, 0},
		"before a hold":         {[][]held{{{1, 5, 5}, {2, 0, 5}}}, 1, 2},
		"within a hold":         {[][]held{{{1, 5, 5}, {2, 4, 5}}}, 1, 2},
		"at the end of a hold":  {[][]held{{{1, 5, 5}, {2, 5, 5}}}, 2, 0},
		"all":                   {[][]held{{{1, 5, 5}, {2, 5, 5}, {3, 5, 5}}}, 3, 0},
		"again":                 {[][]held{{{1, 5, 5}, {2, 3, 5}}, {{4, 5, 5}}}, 2, 0},
		"again and again":       {[][]held{{{1, 5, 5}, {2, 3, 5}}, {{4, 1, 5}}, {{5, 5, 5}, {6, 2, 5}}}, 2, 6},
		"a hold that was short": {[][]held{{{1, 4, 5}, {2, 5, 5}}}, 2, 0}, // it was over nevertheless
		"an older run":          {[][]held{{{1, 5, 0}, {2, 4, 0}}}, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			plan := testPlan()
			plan.Steps = nil
			for i := range 3 {
				plan.Steps = append(plan.Steps, scenario.Step{Number: i + 1, Clients: 4, Duration: 5e9})
			}
			dir := t.TempDir()
			w, err := Create(dir, plan, About{})
			require.NoError(t, err)
			at, all := 0, 0
			for i, p := range c.parts {
				if i > 0 {
					if w, _, err = Resume(dir); err == nil {
						err = w.Event(measure.Event{Kind: measure.EventResume})
					}
					require.NoError(t, err)
				}
				for _, h := range p {
					part(t, w, &at, h.step, h.seconds, h.want)
					all += h.seconds
				}
				require.NoError(t, w.Close())
			}
			p, err := open(t, dir).Progress()
			require.NoError(t, err)
			if first, broken := p.Left(); first != c.first || broken != c.broken {
				t.Errorf("goes on at step %d of the plan, broken off %d; want %d and %d\n%+v", first, broken, c.first, c.broken, p)
			}
			if p.Spent != time.Duration(all)*time.Second || p.Done != int64(6*all) {
				t.Errorf("%v and %d operations, want %d s and 6 operations a second", p.Spent, p.Done, all)
			}
		})
	}
}
