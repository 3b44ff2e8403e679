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
	"weir/monitor"
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
		{"load.duration", []string{"1s", "1m"}, false},
	}
	if !slices.EqualFunc(c.Conditions, want, func(a, b Condition) bool {
		return a.Name == b.Name && a.Meant == b.Meant && slices.Equal(a.Values, b.Values)
	}) {
		t.Errorf("%+v", c.Conditions)
	}
}

// TestOnlyChangedKeysAreReported checks that a warning names the key that differs, also inside of
// lists, and not the whole workload.
func TestOnlyChangedKeysAreReported(t *testing.T) {
	run := func(name string, change func(*scenario.Plan)) Group {
		plan := &scenario.Plan{Target: "http://a.example.org", Populations: []scenario.Population{{Name: "readers"}, {Name: "writers"}},
			Hosts: []monitor.Host{{Name: "a", Role: "server"}, {Name: "b", Role: "server"}},
			Steps: []scenario.Step{{Clients: 4, Duration: unit.Duration(time.Second)}}}
		plan.Work.Session, plan.Files.Include = "kept", []string{"*.root"}
		change(plan)
		f := &analysis.Findings{Run: name, Measure: analysis.Throughput, Work: plan.WorkText(),
			Curve: []analysis.Step{{Step: 1, Clients: 4, Duration: 9, Throughput: 1, Moved: 1, Done: 1}}}
		return Group{Name: name, Runs: []*Run{NewRun(name, results.About{Weir: "1"}, plan, f)}}
	}
	for want, change := range map[string]func(*scenario.Plan){
		"":                                func(p *scenario.Plan) { p.Seed, p.Name = 7, "other" },
		"workload.session: kept -> fresh": func(p *scenario.Plan) { p.Work.Session = "fresh" },
		"workload.part.count: not set -> 8; workload.part.size: not set -> 1MiB": func(p *scenario.Plan) {
			p.Work.Part = &workload.Part{Count: 8, Size: 1 << 20}
		},
		"target: http://a.example.org -> http://b.example.org": func(p *scenario.Plan) { p.Target = "http://b.example.org" },
		"hosts[1].role: server -> client":                      func(p *scenario.Plan) { p.Hosts[1].Role = "client" },
		"populations[1].workload.session: not set -> fresh":    func(p *scenario.Plan) { p.Populations[1].Work.Session = "fresh" },
		`files.include: ["*.root"] -> ["*.dat"]`:               func(p *scenario.Plan) { p.Files.Include = []string{"*.dat"} },
		"load.warmup: 0s -> 1s":                                func(p *scenario.Plan) { p.Steps[0].Warmup = unit.Duration(time.Second) },
	} {
		c, err := Of([]Group{run("a", func(*scenario.Plan) {}), run("b", change)}, Options{})
		require.NoError(t, err)
		var got []string
		for _, f := range c.Facts {
			if f.Code == "compare.property" {
				got = append(got, strings.TrimSuffix(f.Text, " (a -> b)"))
			}
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%q, want %q", got, want)
		}
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
