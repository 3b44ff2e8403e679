package scenario

import (
	"slices"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/loadtest/workload"
)

const twoPopulations = `target: built-in
workload: {verify: 5%, size: 256KiB}
populations:
- {name: writers, clients: [2, 4], workload: {kind: write}}
- {name: readers, clients: 3, workload: {kind: read, think: 2ms, verify: 0}}
files: {make: {count: 4, size: 1MiB}}
`

func TestPopulations(t *testing.T) {
	p := plan(t, twoPopulations)
	if len(p.Steps) != 2 || p.Steps[0].Clients != 5 || p.Steps[1].Clients != 7 || p.Files.Make == nil {
		t.Fatalf("%+v", p)
	}
	w, r := p.Populations[0], p.Populations[1]
	if w.Work.Kind != workload.WriteWork || w.Work.Size.Fixed != 256<<10 || w.Work.Verify != 0.05 || !slices.Equal(r.Clients, Counts{3, 3}) ||
		r.Work.Kind != workload.ReadWork || !unset(r.Work.Size) || r.Work.Verify != 0 {
		t.Errorf("%+v", p.Populations)
	}
	for i, name := range []string{"writers", "readers", "writers"} {
		if own := p.Of(i); own.Population != name || len(own.Populations) != 0 || own.Work.Kind != p.Populations[i%2].Work.Kind {
			t.Errorf("worker %d: %+v", i, own)
		}
	}
	if !slices.Equal(p.Dealt(7, 1), []int{4, 3}) || !slices.Equal(p.Dealt(7, 2), []int{4, 3}) {
		t.Error(p.Dealt(7, 1), p.Dealt(7, 2))
	}
	var b strings.Builder
	require.NoError(t, p.WriteJSON(&b))
	if again, err := parsePlan([]byte(b.String())); err != nil || again.Populations[0].Name != "writers" {
		t.Error(err)
	}
	wrong := strings.Replace(b.String(), `"clients": 7`, `"clients": 8`, 1)
	if _, err := parsePlan([]byte(wrong)); err == nil || !strings.Contains(err.Error(), "step 2: 8 clients, but its populations have [4 3]") {
		t.Error(err)
	}
}

func TestPopulationMistakes(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want string }{
		"one": {"- {name: readers, clients: 3, workload: {kind: read, think: 2ms, verify: 0}}\n", "",
			"s.yaml:4:1: populations: write a list of 2 to 16"},
		"a map": {"- {name: writers, clients: [2, 4], workload: {kind: write}}\n- {name: readers, clients: 3, workload: {kind: read, " +
			"think: 2ms, verify: 0}}\n", "  writers: {clients: 1}\n", "populations: write a list"},
		"no name":      {"name: writers, ", "", "populations.0.name: \"\" is not a name"},
		"same name":    {"name: writers", "name: readers", "s.yaml:5:10: populations.1.name: \"readers\" is the name of an earlier one"},
		"steps":        {"clients: 3", "clients: [3, 4, 5]", "populations.0.clients: 2 steps, but another population has 3"},
		"kind":         {"kind: read,", "kind: raed,", "populations.1.workload.kind: unknown kind \"raed\"; did you mean read?"},
		"job":          {"kind: read,", "kind: job,", "populations.1.workload.kind: jobs are a run of their own"},
		"inside":       {"think: 2ms", "pick: best", "populations.1.workload.pick: unknown pick \"best\""},
		"in the check": {"think: 2ms", "pick: zipf, skew: 0.5", "s.yaml:5:72: workload.skew"},
		"load":         {"files:", "load: {clients: 3}\nfiles:", "s.yaml:6:17: load.clients: cannot be combined with populations"},
		"link":         {"files:", "link: {rtt: 3ms}\nfiles:", "link: cannot be combined with populations"},
		"workers": {"target: built-in", "target: http://a/\non: {batch: local, workers: 1}",
			"on.workers: 1: each of the 2 populations needs a worker"},
		"unknown key": {"clients: 3", "client: 3", "s.yaml:5:19: unknown key populations.1.client; did you mean clients?"},
		"keep":        {"{kind: write}", "{kind: write, keep: true}", ""},
	} {
		text := strings.Replace(twoPopulations, c.from, c.to, 1)
		if text == twoPopulations {
			t.Fatalf("%s changes nothing", name)
		}
		_, err := Parse("s.yaml", []byte(text), nil, nil)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, c.want)
		}
	}
}
