package theory

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/loadtest/analysis"
	"weir/loadtest/analysis/shape"
	"weir/storage/simulated"
)

// A rate counts how often a result was right.
type rate struct {
	name     string
	least    float64 // minimum share; 0: reported only
	hits, of int
}

func (r *rate) count(hit bool) {
	if r.of++; hit {
		r.hits++
	}
}

func (r *rate) share() float64 { return float64(r.hits) / max(1, float64(r.of)) }

// rates are the rows of the table in docs/methods.md, in its order.
type rates struct {
	saturation, corner, kneedle, bend, inside, place, height, none, placeCovered, heightCovered, held, enough, throughputCovered rate
}

func newRates() *rates {
	return &rates{
		saturation: rate{name: "knee of stations of servers (`saturation_clients`) within 5% of k (1 + Z/S)", least: 0.95},
		corner:     rate{name: "their knee (`clients`) within 5%, or one client, of k (1 + Z/S)"},
		kneedle:    rate{name: "their knee (`clients`) within 5%, or one client, of Kneedle's on the exact curve"},
		bend: rate{name: "knee of stations with a maximum (`clients`) within 5%, or one client, of Kneedle's on the exact curve",
			least: 0.95},
		inside:            rate{name: "maximum found where there is one in the range (`inside_tested_range`)", least: 0.95},
		place:             rate{name: "fitted peak within 5%, or one client, of the exact maximum's place", least: 0.95},
		height:            rate{name: "fitted throughput there within 5% of the exact maximum's height", least: 0.95},
		none:              rate{name: "no maximum claimed where there is none in the range", least: 0.95},
		placeCovered:      rate{name: "95% interval of the fitted peak holds the exact place", least: 0.90},
		heightCovered:     rate{name: "95% interval of the fitted throughput there holds the exact height", least: 0.85},
		held:              rate{name: "truly best of the tested loads in the optimum's range", least: 0.95},
		enough:            rate{name: "optimum gives 90% of the truly best of the tested loads", least: 0.95},
		throughputCovered: rate{name: "95% interval of a step's throughput holds the exact one", least: 0.85},
	}
}

func (r *rates) all() []*rate {
	return []*rate{&r.saturation, &r.corner, &r.kneedle, &r.bend, &r.inside, &r.place, &r.height, &r.none, &r.placeCovered, &r.heightCovered,
		&r.held, &r.enough, &r.throughputCovered}
}

// size is the number of bytes of an operation.
const size = 1024

// compare counts the results in f that agree with the theory of c.
func (r *rates) compare(t *testing.T, c trial, f *analysis.Findings) {
	t.Helper()
	o := f.Optimum
	if o == nil {
		t.Fatalf("%v: no optimum at all", c)
	}
	for i := range f.Curve {
		s := &f.Curve[i]
		if s.ThroughputLow != nil {
			r.throughputCovered.count(within(c.theory.Rate(s.Clients)*size, *s.ThroughputLow, *s.ThroughputHigh))
		}
	}
	top := 0.0
	for _, n := range c.loads {
		top = max(top, c.theory.Rate(n))
	}
	held := false
	for _, n := range c.loads {
		held = held || c.theory.Rate(n) >= 0.999*top && o.ClientsLow <= n && n <= o.ClientsHigh
	}
	if r.held.count(held); !held {
		t.Logf("%v: %s", c, f.Headline)
	}
	r.enough.count(c.theory.Rate(o.Clients) >= 0.9*top)
	if c.kind != turning {
		if r.none.count(!o.Inside); o.Inside {
			t.Logf("%v: a maximum is claimed at %d", c, o.Clients)
		}
		if c.kind == saturating {
			r.knee(t, c, f)
		}
		return
	}
	n, best := c.theory.Best(c.most())
	p, height := o.Peak, analysis.Estimate{}
	hit := p != nil && near(p.Value, float64(n), 1)
	if r.place.count(hit); !hit {
		t.Logf("%v: peak at %+v (inside %v), want %d", c, p, o.Inside, n)
	}
	if p != nil {
		height = model(f).Max.Yield
	}
	r.height.count(p != nil && near(height.Value, best*size, 0))
	r.placeCovered.count(p != nil && *p.Low <= float64(n)+1 && float64(n)-1 <= *p.High)
	r.heightCovered.count(p != nil && height.Low != nil && within(best*size, *height.Low, *height.High))
	r.inside.count(o.Inside)
	if k := c.bend(); k != nil {
		hit := f.Knee != nil && near(float64(f.Knee.Clients), k.Load, 1)
		if r.bend.count(hit); !hit {
			t.Logf("%v: knee %+v, want %.1f", c, f.Knee, k.Load)
		}
	}
}

// model returns the model that describes the curve best.
func model(f *analysis.Findings) *analysis.Fit {
	for _, m := range []*analysis.Fit{f.Fits.Line, f.Fits.Plateau, f.Fits.Amdahl, f.Fits.USL, f.Fits.Decline, f.Fits.Poly4} {
		if m != nil && m.Name == f.Fits.Best {
			return m
		}
	}
	return nil
}

// bend returns the knee that Kneedle finds on the exact curve over the tested range.
func (c trial) bend() *shape.Knee {
	k, _ := shape.KneeOf(c.exact, float64(c.loads[0]), float64(c.most()), len(c.loads), nil)
	return k
}

// knee compares the saturation point with the crossing of the exact asymptotes.
func (r *rates) knee(t *testing.T, c trial, f *analysis.Findings) {
	t.Helper()
	found := 0.0
	if f.Knee != nil {
		found = f.Knee.Saturation
	}
	r.corner.count(f.Knee != nil && near(float64(f.Knee.Clients), c.theory.Knee(), 1))
	if k := c.bend(); k != nil {
		r.kneedle.count(f.Knee != nil && near(float64(f.Knee.Clients), k.Load, 1))
	}
	hit := near(found, c.theory.Knee(), 0)
	if r.saturation.count(hit); !hit {
		t.Logf("%v: saturation %.2f, want %.2f", c, found, c.theory.Knee())
	}
}

// exact returns the theoretical curve, interpolated linearly between integer numbers of clients.
func (c trial) exact(clients float64) float64 {
	n := math.Floor(clients)
	return c.theory.Rate(int(n))*(1-clients+n) + c.theory.Rate(int(n)+1)*(clients-n)
}

func near(got, want, slack float64) bool { return math.Abs(got-want) <= max(0.05*want, slack) }

func within(x, low, high float64) bool { return low <= x && x <= high }

// TestHeldAgainstTheory runs the real engine on random stations whose curve is known exactly,
// analyzes the run directories, and counts how often the findings are right. WEIR_THEORY=200 uses
// as many stations as the table in docs/methods.md; by default the test uses a few, so that it
// takes seconds.
func TestHeldAgainstTheory(t *testing.T) {
	tier.Quiet(t, "the engine on random stations with a known curve")
	tier.Slow(t, "runs the engine for tens of seconds")
	stations, all := 30, false
	if text := os.Getenv("WEIR_THEORY"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("WEIR_THEORY=%s: use a number of stations", text)
		}
		stations, all = n, n >= 200
	}
	random := rand.New(rand.NewPCG(2026, 1))
	counted := newRates()
	for range stations {
		c := draw(random)
		counted.compare(t, c, measured(t, c.plan(6000), simulated.Driver()))
	}
	for _, r := range counted.all() {
		t.Logf("%s: %d of %d, %.1f%%", r.name, r.hits, r.of, 100*r.share())
		// Few stations miss a true 95% by chance: three standard errors are allowed.
		slack := 0.0
		if !all {
			slack = 3 * math.Sqrt(r.least*(1-r.least)/max(1, float64(r.of)))
		}
		if r.share() < r.least-slack {
			t.Errorf("%s: %d of %d, want %.0f%%", r.name, r.hits, r.of, 100*r.least)
		}
	}
	if all {
		page(t, counted)
	}
}

const methods = "../../../docs/methods.md"

// page compares the table in docs/methods.md with the counts; WEIR_UPDATE=1 writes the table.
func page(t *testing.T, counted *rates) {
	t.Helper()
	text := require.File(t, methods)
	table := regexp.MustCompile(`(?s)(<!-- theory -->\n).*?(<!-- end -->)`)
	if os.Getenv("WEIR_UPDATE") != "" {
		var b strings.Builder
		b.WriteString("<!-- theory -->\n| what was found | of how many | right |\n|---|---|---|\n")
		for _, r := range counted.all() {
			fmt.Fprintf(&b, "| %s | %d | %.1f%% |\n", r.name, r.of, 100*r.share())
		}
		b.WriteString("<!-- end -->")
		require.NoError(t, os.WriteFile(methods, table.ReplaceAll(text, []byte(b.String())), 0o600))
		return
	}
	for _, r := range counted.all() {
		row := regexp.MustCompile(regexp.QuoteMeta("| "+r.name) + ` \| (\d+) \| ([\d.]+)% \|`).FindSubmatch(text)
		if row == nil {
			t.Errorf("%s does not tell: %s", methods, r.name)
			continue
		}
		// Clients run in a different order each time, so the counts differ a little.
		told, err := strconv.ParseFloat(string(row[2]), 64)
		if err != nil || math.Abs(told-100*r.share()) > 4 {
			t.Errorf("%s says %s%% of %q, counted are %.1f%%", methods, row[2], r.name, 100*r.share())
		}
	}
}
