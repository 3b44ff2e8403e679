package theory

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/unit"
	"weir/loadtest/analysis/compare"
	"weir/loadtest/results"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/storage/simulated"
)

// repeated runs the same small plan several times on a service whose capacity differs by 3% from
// run to run, each through the engine and a run directory.
func repeated(t *testing.T, service string, seed, times int) []*compare.Run {
	t.Helper()
	work := workload.Work{Kind: "read", Pick: "random", Session: "kept"}
	var out []*compare.Run
	for i := range times {
		target := fmt.Sprintf("simulated://x?servers=4&dist=constant&noise=3%%&files=10x1KiB&service=%s", service)
		p := &scenario.Plan{Name: "repeated", Model: "closed", Driver: "simulated", Work: work, Seed: 1, GracefulStop: unit.Duration(time.Minute),
			Target: fmt.Sprintf("%s&seed=%d", target, seed+i)} // determines the random capacity
		for k, n := range []int{2, 8} {
			p.Steps = append(p.Steps, scenario.Step{Number: k + 1, Clients: n, Warmup: unit.Duration(time.Second),
				Duration: unit.Duration(5 * time.Second)})
		}
		f := measured(t, p, simulated.Driver())
		f.Run, f.Target = fmt.Sprintf("%s-%d", service, seed+i), target
		out = append(out, compare.NewRun(f.Run, results.About{Run: f.Run}, p, f))
	}
	return out
}

func shuffle(r *rand.Rand, runs []*compare.Run) {
	r.Shuffle(len(runs), func(i, j int) { runs[i], runs[j] = runs[j], runs[i] })
}

// TestComparisonOfRealRuns tests compare with runs of the real engine: runs of the same plan, and
// of a plan whose service is 5% faster, nine times each, with 3% noise from run to run.
func TestComparisonOfRealRuns(t *testing.T) {
	tier.Slow(t, "makes 200 runs")
	const runs, draws = 100, 400
	slow, fast := repeated(t, "10ms", 1000, runs), repeated(t, "9524us", 3000, runs)
	r := rand.New(rand.NewPCG(3, 4))
	different := func(pick func() []compare.Group) (n int) {
		for range draws {
			c, err := compare.Of(pick(), compare.Options{})
			require.NoError(t, err)
			if res := c.Pairs[0].Result; res == compare.Better || res == compare.Worse {
				n++
			}
		}
		return n
	}
	wrong := different(func() []compare.Group {
		shuffle(r, slow)
		return []compare.Group{{Name: "a", Runs: slow[:9]}, {Name: "b", Runs: slow[9:18]}}
	})
	found := different(func() []compare.Group {
		shuffle(r, slow)
		shuffle(r, fast)
		return []compare.Group{{Name: "a", Runs: slow[:9]}, {Name: "b", Runs: fast[:9]}}
	})
	t.Logf("of %d comparisons of 9 with 9 runs: %d of the same service call it different, %d of one that is 5%% faster", draws, wrong, found)
	// The draws share their runs, so the rates scatter more than with independent runs; package
	// compare computes them from thousands of runs.
	if wrong > draws*10/100 {
		t.Errorf("the same service is called different in %d of %d comparisons", wrong, draws)
	}
	if found < draws*85/100 {
		t.Errorf("5%% are told apart in only %d of %d comparisons", found, draws)
	}
	told(t, `same service is called different in (\d+)`, wrong)
	told(t, `faster one in (\d+)`, found)
}

// told compares a number in docs/methods.md with a count. The order in which clients run may change
// the count a little.
func told(t *testing.T, pattern string, counted int) {
	t.Helper()
	text, err := os.ReadFile(methods)
	require.NoError(t, err)
	found := regexp.MustCompile(strings.ReplaceAll(pattern, " ", `\s+`)).FindSubmatch(text)
	if found == nil {
		t.Fatalf("%s does not say %s", methods, pattern)
	}
	if n, err := strconv.Atoi(string(found[1])); err != nil || max(n-counted, counted-n) > 8 {
		t.Errorf("%s says %s, counted are %d", methods, found[0], counted)
	}
}
