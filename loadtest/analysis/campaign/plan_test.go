package campaign

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/require"
	"weir/loadtest/scenario"
)

func read(t *testing.T, name, text string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse(name, []byte(text), nil, nil)
	require.NoError(t, err)
	return s
}

const twice = `
name: m
target: http://a/
seed: 5
repeat: 4
matrix: {workload.session: [kept, fresh], workload.part: [null, {size: 4KiB}]}
`

func TestPlan(t *testing.T) {
	p, err := Plan([]*scenario.Scenario{read(t, "m.yaml", twice)})
	require.NoError(t, err)
	if p.Name != "m" || p.Seed != 5 || p.Repeat != 4 || len(p.Runs) != 16 || len(p.Scenarios) != 4 {
		t.Fatalf("%+v", p)
	}
	want := []Factor{{"workload.session", []string{"kept", "fresh"}}, {"workload.part", []string{"left out", "{size: 4KiB}"}}}
	if d := cmp.Diff(want, p.Factors); d != "" {
		t.Error(d)
	}
	for i, r := range p.Runs {
		if r.Number != i+1 || r.Block != i/4+1 || r.Dir != fmt.Sprintf("%03d-%s", i+1, r.Variant) {
			t.Errorf("%+v", r)
		}
		s := p.Scenarios[r.Variant]
		if string(s.Work.Session) != r.Levels["workload.session"] || (s.Work.Part == nil) != (r.Levels["workload.part"] == "left out") {
			t.Errorf("variant %s is not what its levels say: %+v", r.Variant, r.Levels)
		}
		if i := slices.IndexFunc(p.Runs[:i], func(o Run) bool { return o.Block == r.Block && o.Variant == r.Variant }); i >= 0 {
			t.Errorf("block %d has variant %s twice", r.Block, r.Variant)
		}
	}
	if r := p.Runs[slices.IndexFunc(p.Runs, func(r Run) bool { return r.Variant == "d" })]; r.Scenario != "workload.session=fresh, "+
		"workload.part={size: 4KiB}" {
		t.Errorf("%+v", r)
	}
	if d := cmp.Diff([]string{"a", "b", "c", "d"}, p.Variants()); d != "" {
		t.Error(d)
	}
	dir := t.TempDir()
	require.NoError(t, Write(dir, &p.Campaign))
	back, err := Read(dir)
	require.NoError(t, err)
	if d := cmp.Diff(&p.Campaign, back); d != "" {
		t.Error(d)
	}
}

func TestSeveralScenarios(t *testing.T) {
	a, b := read(t, "old.yaml", "target: http://a/\nrepeat: 2\n"), read(t, "dir/new.yaml", "target: http://b/\nrepeat: 2\n")
	p, err := Plan([]*scenario.Scenario{a, b})
	require.NoError(t, err)
	var got []string
	for _, r := range p.Runs {
		got = append(got, r.Dir+" "+r.Levels["scenario"]+" "+p.Scenarios[r.Variant].Target)
	}
	want := []string{"001-a old http://a/", "002-b new http://b/", "003-a old http://a/", "004-b new http://b/"}
	if d := cmp.Diff(want, got); d != "" || p.Name != "old-new" {
		t.Error(p.Name, d)
	}
	if s := p.Scenarios["a"]; s.Repeat != 1 {
		t.Errorf("%+v", s)
	}
	for want, others := range map[string][]*scenario.Scenario{
		"named twice": {a, a},
		"old.yaml is repeated 2 times, x.yaml 3 times": {a, read(t, "x.yaml", "target: http://a/\nrepeat: 3\n")},
		"different matrices": {a,
			read(t, "x.yaml", "target: http://a/\nrepeat: 2\nmatrix: {workload.session: [kept, fresh]}\n")},
		"are 2000 runs": {read(t, "x.yaml", "target: http://a/\nrepeat: 1000\n"), read(t, "y.yaml", "target: http://a/\nrepeat: 1000\n")},
	} {
		if _, err := Plan(others); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
	m := read(t, "m.yaml", twice)
	n := read(t, "n.yaml", strings.Replace(twice, "name: m", "name: n", 1))
	if p, err = Plan([]*scenario.Scenario{m, n}); err != nil || len(p.Runs) != 32 || len(p.Factors) != 3 || len(p.Scenarios) != 8 {
		t.Errorf("%+v, %v", p, err)
	}
}

// Each variant takes each place of a block equally often, within the limits of chance, and the same
// seed always gives the same order.
func TestOrder(t *testing.T) {
	if d := cmp.Diff([][]int{{0, 1}, {0, 1}, {0, 1}}, Order(2, 3, 7)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([][]int{{0}, {0}}, Order(1, 2, 7)); d != "" {
		t.Error(d)
	}
	const variants, blocks = 4, 4000
	order := Order(variants, blocks, 7)
	if !cmp.Equal(order, Order(variants, blocks, 7)) || cmp.Equal(order, Order(variants, blocks, 8)) {
		t.Error("the order does not follow from the seed")
	}
	var at [variants][variants]int
	for _, block := range order {
		if d := cmp.Diff([]int{0, 1, 2, 3}, slices.Sorted(slices.Values(block))); d != "" {
			t.Fatal("a block is not complete:", d)
		}
		for place, v := range block {
			at[v][place]++
		}
	}
	for v, places := range at {
		for place, n := range places {
			if n < 900 || n > 1100 { // 1000 are expected, 27 is a standard deviation
				t.Errorf("variant %d is %d times at place %d of %d blocks", v, n, place, blocks)
			}
		}
	}
}

func TestSeedOf(t *testing.T) {
	seen := map[uint64]bool{}
	for seed := range uint64(20) {
		for block := 1; block <= 50; block++ {
			s := SeedOf(seed, block)
			if block == 1 && s != seed || s >= 1<<53 || block > 1 && seen[s] {
				t.Errorf("seed %d, block %d: %d", seed, block, s)
			}
			seen[s] = true
		}
	}
}

func TestLetters(t *testing.T) {
	for n, want := range map[int]string{0: "a", 25: "z", 26: "aa", 27: "ab", 701: "zz", 702: "aaa"} {
		if got := letters(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

// This is the figure of docs/methods.md: the effect of a steady drift on two variants that
// alternate. It has hardly any effect on variants in random order.
func TestDriftOfTwoVariants(t *testing.T) {
	const blocks, change = 5, 0.05
	gap := apart(Order(2, blocks, 1), change)
	page := require.File(t, "../../../docs/methods.md")
	if want := fmt.Sprintf("makes B look %.2f%% worse", 100*gap); !strings.Contains(string(page), want) {
		t.Errorf("docs/methods.md does not say: %s", want)
	}
	if math.Abs(gap-change/(2*blocks-1)) > 1e-12 {
		t.Errorf("%v apart", gap)
	}
	sum := 0.0
	for seed := range uint64(1000) {
		sum += apart(Order(3, blocks, seed), change) / 1000
	}
	if math.Abs(sum) > 0.001 { // 0.0003 is its standard deviation
		t.Errorf("in random order, variants differ by %v on average", sum)
	}
}

// apart returns the difference between the means of variants 1 and 0 if runs differ by time only,
// by change from the first run to the last.
func apart(order [][]int, change float64) float64 {
	runs := float64(len(order)*len(order[0]) - 1)
	gap := 0.0
	for b, block := range order {
		at := func(v int) float64 { return float64(b*len(block) + slices.Index(block, v)) }
		gap += (at(1) - at(0)) / float64(len(order))
	}
	return gap * change / runs
}
