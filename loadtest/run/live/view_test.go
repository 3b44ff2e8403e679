package live

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir/internal/require"
	"weir/internal/screen"
	"weir/internal/unit"
	"weir/loadtest/measure"
	"weir/loadtest/run"
	"weir/loadtest/scenario"
	"weir/monitor"
	"weir/storage"
)

// The table fits into a terminal of 80 columns, shows both sides' share of their machines over the
// whole step, and shows foreign text as text.
func TestLiveTable(t *testing.T) {
	var out bytes.Buffer
	l := New(Options{Finish: t.Context(), Out: &out, Plan: &scenario.Plan{Name: "x\x1b[2J\u202e", Target: "http://x\n\x9b",
		Steps: make([]scenario.Step, 2)}})
	l.Start(1)
	l.Load()
	at := time.Unix(1e9, 0)
	for i := range 3 { // half and, in the last second, all of two cores; two server processes
		user := 1.0
		if i == 2 {
			user = 2
		}
		sample := monitor.Sample{Time: at.Add(time.Duration(i+1) * time.Second), Host: "here", Seconds: 1, Cores: 2, Procs: []monitor.Proc{
			{Role: "server", User: user / 2}, {Role: "server", System: user / 2}, {Role: "client", User: .1},
		}}
		interval := measure.Interval{
			Start: at.Add(time.Duration(i) * time.Second), Seconds: 1, Step: 1, Phase: measure.Measured, Clients: 100_000,
			Sum: measure.Sum{
				Moved: 123_456_789_012, Done: 1_000_000, Failed: map[storage.Class]int64{storage.Busy: 100_000},
			},
		}
		interval.Latency.Record(1234 * time.Millisecond)
		require.NoError(t, l.Sample(&sample))
		require.NoError(t, l.Interval(&interval))
	}
	require.NoError(t, l.Event(measure.Event{Kind: measure.EventError, Class: storage.Other, Text: "bad\x1b[31m\nname"}))
	l.End()
	l.Stop()
	said := out.String()
	for _, want := range []string{"other: bad?[31m name\n", " 67% ", "   5%\n", " 300000 "} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is missing in\n%s", want, said)
		}
	}
	if strings.ContainsAny(said, "\x1b\u202e\u009b") {
		t.Errorf("the terminal would obey: %q", said)
	}
	_, table, _ := strings.Cut(said, "measuring into")
	for line := range strings.Lines(table) {
		if len(line) > 80 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}

// The plan and the progress of a run, in order: the time left never grows while nothing unforeseen
// happens, and a campaign counts all its runs.
func TestPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		step := func(n int) scenario.Step {
			return scenario.Step{Number: n, Clients: n, Ramp: unit.Duration(time.Second), Warmup: unit.Duration(time.Second),
				Duration: unit.Duration(8 * time.Second)}
		}
		p := &scenario.Plan{Steps: []scenario.Step{step(1), step(2)}, GracefulStop: unit.Duration(time.Minute)}
		c := position{plan: p, total: p.Time(), begun: time.Now(), finish: t.Context()}
		row := func() string { return c.progress(time.Now()).Row(79, screen.Look{}) }
		tell := func(want ...string) {
			t.Helper()
			for _, w := range want {
				if got := row(); !strings.Contains(got, w) {
					t.Errorf("%q is missing in %q", w, got)
				}
			}
		}
		tell("the load begins", "0%", "0:20 left")
		for _, s := range p.Steps {
			c.begin(&measure.Event{Kind: measure.EventStep, Step: s.Number, Clients: s.Clients, Duration: 8})
			tell(fmt.Sprintf("step %d of 2: ramp", s.Number))
			time.Sleep(5 * time.Second)
			c.interval(&measure.Interval{Step: s.Number, Phase: measure.Measured})
			tell("measure 3 of 8 s", map[int]string{1: "25%  0:15 left", 2: "75%  0:05 left"}[s.Number])
			time.Sleep(5 * time.Second)
		}
		time.Sleep(time.Second)
		tell("the last operations end", "100%")
		time.Sleep(20 * time.Second)
		tell("at most 0:40 left")

		c = position{plan: p, total: p.Time(), begun: time.Now(), finish: t.Context(),
			series: run.Series{Number: 2, All: 3, Spent: 30 * time.Second, Ahead: 30 * time.Second}}
		c.begin(&measure.Event{Kind: measure.EventStep, Step: 2, Clients: 2, Duration: 8})
		c.begun = c.begun.Add(-10 * time.Second)
		time.Sleep(5 * time.Second)
		tell("run 2 of 3, step 2 of 2: ramp", "56%  0:35 left") // 45 s of 80 s
		c.step.Jobs = 3
		c.interval(&measure.Interval{Step: 2, Phase: measure.Measured, Sum: measure.Sum{Jobs: measure.Jobs{Ended: 4, Crashed: 1}}})
		if got := c.progress(time.Now()); got.Detail != " 5 of 6 jobs" || !got.Most {
			t.Errorf("a step of jobs: %+v", got)
		}
		c.step.Jobs = 0
		p.Stop.Count = 100
		c.interval(&measure.Interval{Step: 2, Phase: measure.Measured, Sum: measure.Sum{Done: 90}})
		tell("0:32 left") // a tenth of the operations is left
	})
}

// Errors of a step stay visible: errors of its ramp, errors of seconds before the last second, and
// in lines of files as in rows that move. The line of a step that has ended has those of its
// measurement time, as the report has.
func TestErrorsOfTheStepAreShown(t *testing.T) {
	var out bytes.Buffer
	plan := &scenario.Plan{Name: "x", Steps: []scenario.Step{{Number: 1, Clients: 4, Duration: unit.Duration(time.Minute)},
		{Number: 2, Clients: 8}}}
	l := New(Options{Finish: t.Context(), Out: &out, Plan: plan})
	begin := time.Unix(1e9, 0)
	second := func(n, step int, phase string, done, failed int64) {
		v := &measure.Interval{Start: begin.Add(time.Duration(n) * time.Second), Seconds: 1, Step: step, Phase: phase, Clients: 4,
			Sum: measure.Sum{Done: done, Failed: map[storage.Class]int64{storage.Refused: failed}}}
		require.NoError(t, l.Interval(v))
	}
	errorsShown := func() string {
		for _, c := range columnsOf(false) {
			if c.head == "errors" {
				return c.cell(l, &l.second)
			}
		}
		return ""
	}
	second(0, 1, measure.Ramp, 0, 40_000)
	second(1, 1, measure.Measured, 0, 6_807)
	second(2, 1, measure.Measured, 500, 0)
	second(3, 1, measure.Measured, 500, 0)
	if got := errorsShown(); got != "46807" || l.worse() != "" {
		t.Errorf("%s errors are shown, and %q", got, l.worse())
	}
	if s := stepOf(&l.step, &l.failures, &l.cpu); s.Errors != 6_807 || s.Failed != 46_807 {
		t.Errorf("the stream has %d errors, %d of all phases", s.Errors, s.Failed)
	}
	second(4, 2, measure.Measured, 900, 0)
	second(5, 2, measure.Measured, 10, 20)
	if got := errorsShown(); got != "20" || l.worse() == "" {
		t.Errorf("%s errors are shown of the next step, and %q", got, l.worse())
	}
	l.Stop()
	if got := strings.Fields(strings.Split(out.String(), "\n")[2]); !slices.Contains(got, "6807") {
		t.Errorf("the step's line does not have its errors:\n%s", out.String())
	}
	if !strings.Contains(out.String(), "40000 more operations of step 1 failed") {
		t.Errorf("the errors of the ramp are lost:\n%s", out.String())
	}
}

// TestLineOfAStepHasTheErrorsOfTheReport checks a step without a ramp whose last operations fail.
func TestLineOfAStepHasTheErrorsOfTheReport(t *testing.T) {
	var out bytes.Buffer
	l := New(Options{Finish: t.Context(), Out: &out, Plan: &scenario.Plan{Steps: []scenario.Step{{Number: 1, Clients: 4}}}})
	for i, phase := range []string{measure.Measured, measure.Measured, measure.GracefulStop} {
		v := &measure.Interval{Start: time.Unix(int64(i), 0), Seconds: 1, Step: 1, Phase: phase, Clients: 4,
			Sum: measure.Sum{Done: 500, Failed: map[storage.Class]int64{storage.Busy: 11}}}
		require.NoError(t, l.Interval(v))
	}
	l.End()
	l.Stop()
	if got := strings.Fields(strings.Split(out.String(), "\n")[2]); !slices.Contains(got, "22") {
		t.Errorf("22 errors in the measurement time are not in\n%s", out.String())
	}
}

// TestNoRowWithoutClients checks that neither rows that move nor lines of files show zero clients
// while a search waits for the servers.
func TestNoRowWithoutClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := New(Options{Finish: t.Context(), Out: &out, Plan: &scenario.Plan{Find: &scenario.Find{Max: 9, Time: unit.Duration(time.Hour)}}})
		l.Start(1)
		l.Load()
		require.NoError(t, l.Event(measure.Event{Kind: measure.EventStep, Step: 1, Clients: 4, Duration: 1}))
		for i := range 40 {
			v := &measure.Interval{Start: time.Now(), Seconds: 1, Step: 1, Phase: measure.GracefulStop}
			if i < 2 {
				v.Phase, v.Clients, v.Done = measure.Measured, 4, 10
			}
			require.NoError(t, l.Interval(v))
			time.Sleep(time.Second)
			if rows := strings.Join(l.rows(80), "\n"); i > 3 && (strings.Contains(rows, "throughput") || !strings.Contains(rows, "cool-down")) {
				t.Fatalf("second %d:\n%s", i, rows)
			}
		}
		l.Stop()
		if _, waited, _ := strings.Cut(out.String(), "measuring"); strings.Contains(waited, "clients") || !strings.Contains(waited, "cool-down") {
			t.Errorf("a line has no clients:\n%s", out.String())
		}
	})
}
