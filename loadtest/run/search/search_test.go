package search

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
)

// A service is a synthetic service whose yield is known.
type service struct {
	name   string
	yield  func(n float64) float64
	failed func(n float64) float64
	max    int
	noise  float64 // from step to step, as a share
	within float64 // standard error of one step, as a share
	drift  float64 // of all yields, per step
}

func (s service) best() (n int, most float64) {
	for i := 1; i <= s.max; i++ {
		if y := s.good(i); y > most*(1+1e-12) {
			n, most = i, y
		}
	}
	return n, most
}

func (s service) good(n int) float64 {
	if s.failed != nil && s.failed(float64(n)) > fewErrors {
		return 0
	}
	return s.yield(float64(n))
}

// step returns the result of a step of n clients.
func (s service) step(n int, hold time.Duration, k int, r *rand.Rand) Step {
	y := s.yield(float64(n))
	long := math.Sqrt(10 / hold.Seconds())
	seen := y * (1 + s.noise*r.NormFloat64() + s.within*long*r.NormFloat64()) * (1 + s.drift*float64(k))
	own := 0.0 // the standard error is itself only known from five batches
	for range 4 {
		x := r.NormFloat64()
		own += x * x / 4
	}
	own = s.within * long * math.Sqrt(own)
	step := Step{Clients: n, Yield: max(seen, y/10), Error: own * y, Batches: 5, Latency: float64(n) / y, Done: int64(y * hold.Seconds()),
		Duration: hold.Seconds()}
	if s.failed != nil {
		step.Failed = s.failed(float64(n))
	}
	return step
}

// limits returns the limits of a search in a test: steps of 10 s, 18 s in all.
func limits(most int) Limits {
	return Limits{Min: 1, Max: most, Within: 0.1, Duration: 10 * time.Second, Longest: 60 * time.Second, Around: 8 * time.Second}
}

// searched is the result of a whole search.
type searched struct {
	steps []Step
	spent time.Duration
	end   Decision
}

func find(t testing.TB, s service, l Limits, time time.Duration, seed uint64) searched {
	r := rand.New(rand.NewPCG(seed, 77))
	var f searched
	for {
		d := l.Next(f.steps, time-f.spent)
		if d.End != "" {
			f.end = d
			return f
		}
		if d.Clients < l.Min || d.Clients > l.Max || d.Duration < l.Duration || d.Duration > l.Longest || len(f.steps) > mostSteps {
			t.Fatalf("%s: step %d: %+v", s.name, len(f.steps)+1, d)
		}
		f.spent += d.Duration + l.Around
		f.steps = append(f.steps, s.step(d.Clients, d.Duration, len(f.steps), r))
	}
}

func usl(peak, serial float64) func(float64) float64 {
	kappa := (1 - serial) / (peak * peak)
	return func(n float64) float64 { return 1000 * n / (1 + serial*(n-1) + kappa*n*(n-1)) }
}

// random returns a service of one of eight kinds.
func random(r *rand.Rand) service {
	between := func(a, b float64) float64 { return a * math.Pow(b/a, r.Float64()) }
	s := service{max: 16384, noise: between(0.003, 0.03), within: between(0.003, 0.02)}
	peak := between(5, 5000)
	switch r.IntN(8) {
	case 0, 1:
		serial := between(0.05, 5) / peak
		s.name, s.yield = fmt.Sprintf("usl %.0f, %.4f", peak, serial), usl(peak, min(serial, .5))
	case 2:
		s.name, s.yield = fmt.Sprintf("plateau %.0f", peak), func(n float64) float64 { return min(n, peak) }
	case 3:
		s.name, s.yield = "linear", func(n float64) float64 { return n }
	case 4:
		left := between(0.1, 0.4)
		s.name, s.yield = fmt.Sprintf("collapse at %.0f", peak), func(n float64) float64 {
			if n > peak {
				return left * peak
			}
			return n
		}
	case 5:
		second := between(0.7, 1.4)
		s.name, s.yield = fmt.Sprintf("two peaks %.0f, %.2f", peak, second), func(n float64) float64 {
			bump := func(at float64) float64 { u := math.Log(n/at) / 0.8; return math.Exp(-u * u / 2) }
			return 100 * (bump(peak) + second*bump(peak*5)) // the second hump lies within reach of the ladder
		}
		s.max = 1 << 16
	case 6:
		s.noise = between(0.03, 0.06)
		s.name, s.yield = fmt.Sprintf("noisy usl %.0f", peak), usl(peak, 0.1/peak)
	case 7:
		s.name, s.yield = fmt.Sprintf("errors beyond %.0f", peak), func(n float64) float64 { return n / (1 + n/peak) }
		s.failed = func(n float64) float64 { return min(max(0, n/peak/3-1), 0.9) }
	}
	return s
}

// A tally counts the results of a number of searches.
type tally struct {
	lost10     int // the load that was named gives over 10% less than the best
	held       int // the truly best of the tested loads is in the range that was named
	missed3    int // no load was tested that gives the best less 3%
	steps, all int
	most       int
	share      float64 // of the time allowed, most used
}

// many runs many searches on random services.
func many(t *testing.T, curves int, seed uint64, allowed time.Duration, change func(*service, *Limits)) (n tally) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range uint64(curves) {
		s := random(r)
		l := limits(s.max)
		if change != nil {
			change(&s, &l)
		}
		f := find(t, s, l, allowed, i)
		n.share = max(n.share, float64(f.spent)/float64(allowed))
		n.all++
		n.steps += len(f.steps)
		n.most = max(n.most, len(f.steps))
		o := f.end.Optimum
		if o == nil || o.Low > o.Clients || o.High < o.Clients || o.Low < 1 || o.High > l.Max {
			t.Errorf("%s: %+v: %s", s.name, o, f.end.Why.Text)
			continue
		}
		best := f.steps[0].Clients
		for _, step := range f.steps {
			if s.good(step.Clients) > s.good(best)*(1+1e-12) {
				best = step.Clients
			}
		}
		if best >= o.Low && best <= o.High || s.good(best) <= 1.01*max(s.good(o.Low), s.good(o.High)) {
			n.held++
		} else {
			t.Logf("%s (noise %.1f%%): of the tested %d is best, %d (%d to %d) was named, %.1f%% less, %d steps: %s", s.name, 100*s.noise, best,
				o.Clients, o.Low, o.High, 100-100*s.good(o.Clients)/s.good(best), len(f.steps), f.end.End)
		}
		if s.good(o.Clients) < 0.9*s.good(best) {
			n.lost10++
			t.Logf("%s (noise %.1f%%): of the tested %d is best, %d (%d to %d) was named, %.1f%% less, %d steps: %s", s.name, 100*s.noise, best,
				o.Clients, o.Low, o.High, 100-100*s.good(o.Clients)/s.good(best), len(f.steps), f.end.End)
		}
		if _, top := s.best(); s.good(best) < 0.97*top {
			n.missed3++
		}
	}
	return n
}

// Over 200 random curves: a load near the best is tested, it is in the range of the result, and the
// load of the result gives nearly as much, in a bounded number of steps and never in more time than
// allowed. The page that describes the method has the same numbers.
func TestSearchFindsTheBest(t *testing.T) {
	tier.Slow(t, "repeats a search many times")
	n := many(t, 200, 5, 20*time.Minute, nil)
	t.Logf("%+v", n)
	if n.missed3 > 200/20 || n.held < 200*95/100 || n.lost10 > 200/20 || n.share > 1 {
		t.Errorf("%+v: want 95%% of the best in the range, at most 10 that miss the best by 3%%, no more than the time", n)
	}
	page := require.File(t, "../../../docs/methods.md")
	want := fmt.Sprintf("on %d of them no load was tested that gives the best less 3%%; the best of the tested loads is in the range that "+
		"was named on %d; the load that was named gives more than 10%% less on %d; it took %.1f steps in the mean, %d at most.",
		n.missed3, n.held, n.lost10, float64(n.steps)/200, n.most)
	if !strings.Contains(strings.Join(strings.Fields(string(page)), " "), want) {
		t.Errorf("docs/methods.md does not say: %s", want)
	}
}

// Other curves and less time: still most of them, and never longer than allowed.
func TestSearchKeepsToItsLimits(t *testing.T) {
	tier.Slow(t, "repeats a search many times")
	for name, c := range map[string]struct {
		allowed time.Duration
		change  func(*service, *Limits)
		missed  int // of 100 at most
	}{
		"others":        {20 * time.Minute, nil, 5},
		"five minutes":  {5 * time.Minute, nil, 40},
		"one minute":    {time.Minute, nil, 100},
		"a drift":       {20 * time.Minute, func(s *service, _ *Limits) { s.drift = 0.002 }, 8},
		"coarse enough": {20 * time.Minute, func(_ *service, l *Limits) { l.Within = 0.5 }, 12},
		"large files": {20 * time.Minute, func(s *service, _ *Limits) {
			y := s.yield
			s.yield = func(n float64) float64 { return y(n) / 10000 }
		}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			n := many(t, 100, 99, c.allowed, c.change)
			t.Logf("%+v", n)
			if n.missed3 > c.missed || n.share > 1 || n.held < 90 || n.lost10 > 10 {
				t.Errorf("%+v: at most %d are to miss the best by 3%%, 90 ranges are to hold it", n, c.missed)
			}
		})
	}
}
