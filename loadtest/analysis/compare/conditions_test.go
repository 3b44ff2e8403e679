package compare

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/unit"
	"weir/loadtest/analysis"
	"weir/loadtest/results"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
)

// TestConditions checks that differences are reported, the intended differences first, except for
// values that differ by their nature.
func TestConditions(t *testing.T) {
	run := func(kernel, session string, seed uint64, hold time.Duration) *Run {
		plan := &scenario.Plan{Seed: seed, Target: "http://127.0.0.1:" + kernel, BuiltIn: true}
		plan.Work.Session, plan.Steps = workload.Session(session), []scenario.Step{{Clients: 4, Duration: unit.Duration(hold)}}
		about := results.About{Weir: "1", Start: time.Unix(int64(seed), 0),
			Environment: json.RawMessage(`{"kernel":"` + kernel + `","boot_time":"` + session + `","cores":4}`)}
		f := &analysis.Findings{Run: kernel + session, Measure: analysis.Throughput,
			Curve: []analysis.Step{{Step: 1, Clients: 4, Duration: 9, Throughput: 1, Moved: 1, Done: 1}}}
		return NewRun("d", about, plan, f)
	}
	level := func(session string) map[string]string { return map[string]string{"workload.session": session} }
	c, err := Of([]Group{
		{Name: "a", Levels: level("kept"), Runs: []*Run{run("6.1", "kept", 1, time.Second), run("6.2", "kept", 2, time.Second)}},
		{Name: "b", Levels: level("fresh"), Runs: []*Run{run("6.1", "fresh", 3, time.Minute), run("6.1", "fresh", 4, time.Minute)}},
	}, Options{})
	require.NoError(t, err)
	want := []Condition{
		{"workload.session", []string{"kept", "fresh"}, true},
		{"environment.kernel", []string{"6.1; 6.2", "6.1"}, false},
		{"steps", []string{"4 for 1s", "4 for 1m"}, false},
	}
	if !slices.EqualFunc(c.Conditions, want, func(a, b Condition) bool {
		return a.Name == b.Name && a.Meant == b.Meant && slices.Equal(a.Values, b.Values)
	}) {
		t.Errorf("%+v", c.Conditions)
	}
}

func TestConditionsAreShort(t *testing.T) {
	a, b := &Run{details: map[string]string{}}, &Run{details: map[string]string{}}
	flatten(a.details, "x", strings.Repeat("é", 1000))
	flatten(b.details, "x", []any{1.0, map[string]any{"deep": nil}})
	got := conditions([]Group{{Runs: []*Run{a}}, {Runs: []*Run{b}}})
	if len(got) != 1 || len(got[0].Values[0]) > mostValue+4 || got[0].Values[1] != `[1,{"deep":null}]` {
		t.Errorf("%+v", got)
	}
}
