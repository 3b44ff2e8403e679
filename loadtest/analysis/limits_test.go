package analysis

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/loadtest/analysis/limits"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/results"
)

// loaded returns the data of the run in dir.
func loaded(t *testing.T, dir string) *data {
	t.Helper()
	run, err := results.Open(dir)
	require.NoError(t, err)
	d, err := load(run)
	require.NoError(t, err)
	return d
}

// judgedLimits returns the limits of the run in dir, without the other findings, which take longer.
func judgedLimits(t *testing.T, dir string) []Bottleneck {
	t.Helper()
	d := loaded(t, dir)
	curve := steps.CurveOf(nil, Throughput, d.run.Plan.Model, false)
	for _, s := range d.run.Held() {
		curve.Steps = append(curve.Steps, d.step(s))
	}
	steps.Widen(curve.Steps)
	return limits.Bottlenecks(curve, limits.ResourcesOf(d.run, curve), 0)
}

// A tally counts the results for rigs of one kind.
type tally struct{ of, right, wrong, unknown int }

func (t *tally) count(want string, got []Bottleneck) (wrong bool) {
	t.of++
	switch {
	case len(got) > 0 && got[0].Resource == want:
		t.right++
	case len(got) == 0 || got[0].Resource == LimitUnknown:
		t.unknown++
	default:
		t.wrong++
		return true
	}
	return false
}

// Bounds of the results for rigs with a known limit.
const (
	leastRight = 0.95
	mostWrong  = 0.02
)

// TestKnownLimits makes runs of services whose limit is known, with the noise of real machines, and
// counts the runs in which the limit is found. Seeds are fixed.
func TestKnownLimits(t *testing.T) {
	each, slack := 20, 0.0 // 240 rigs
	if os.Getenv("WEIR_LONG") != "" {
		each = 200
	} else if testing.Short() {
		each, slack = 1, 1
	}
	var sum tally
	table := "| limit | rigs | right | cannot tell | wrong |\n|---|---|---|---|---|\n"
	for k, kind := range rigKinds {
		var one tally
		for i := range each {
			g := newLimitRig(kind.kind, kind.want, uint64(1000*k+i))
			dir := filepath.Join(t.TempDir(), "run")
			require.NoError(t, g.service().Write(dir))
			got := judgedLimits(t, dir)
			if one.count(kind.want, got) || got[0].Resource == LimitUnknown {
				t.Logf("%s, seed %d: %s (%s), %d steps of %d s, shared %v, foreign %.2f, full %.3f\n%s", kind.kind, 1000*k+i, got[0].Resource,
					got[0].Reason, len(g.loads), g.hold, g.shared, g.foreign, g.full, strings.Join(got[0].Evidence, "\n"))
			}
		}
		table += fmt.Sprintf("| %s | %d | %d | %d | %d |\n", kind.kind, one.of, one.right, one.unknown, one.wrong)
		sum.of, sum.right, sum.wrong, sum.unknown = sum.of+one.of, sum.right+one.right, sum.wrong+one.wrong, sum.unknown+one.unknown
	}
	table += fmt.Sprintf("| all | %d | %d | %d | %d |\n", sum.of, sum.right, sum.unknown, sum.wrong)
	t.Log("\n" + table)
	if float64(sum.right) < leastRight*float64(sum.of)-slack || float64(sum.wrong) > mostWrong*float64(sum.of) {
		t.Errorf("%d of %d right, %d wrong: want at least %v and at most %v", sum.right, sum.of, sum.wrong, leastRight, mostWrong)
	}
	if each == 20 {
		limitsPage(t, table)
	}
}

// limitsPage compares the table on the page with the counts; WEIR_UPDATE=1 writes it.
func limitsPage(t *testing.T, table string) {
	t.Helper()
	const methods = "../../docs/methods.md"
	text := require.File(t, methods)
	place := regexp.MustCompile(`(?s)(<!-- limits -->\n).*?(<!-- end -->)`)
	if os.Getenv("WEIR_UPDATE") != "" {
		require.NoError(t, os.WriteFile(methods, place.ReplaceAll(text, []byte("<!-- limits -->\n"+table+"<!-- end -->")), 0o600))
		return
	}
	if !strings.Contains(string(text), "<!-- limits -->\n"+table) {
		t.Errorf("%s has another table: run with WEIR_UPDATE=1", methods)
	}
}
