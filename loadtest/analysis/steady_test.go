package analysis

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"weir/loadtest/measure"
)

// held makes the hold of a step out of a rate for each of its seconds.
func held(rate func(i int) float64, seconds int) *total {
	t := &total{}
	for i := range seconds {
		moved := int64(rate(i))
		t.seconds = append(t.seconds, second{seconds: 1, step: 1, phase: measure.Measured, clients: 10, moved: moved})
		t.Moved += moved
		t.span++
	}
	return t
}

func TestSteadyPart(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	noise := func() float64 { return 1 + 0.03*r.NormFloat64() }
	for _, c := range []struct {
		name     string
		rate     func(i int) float64
		seconds  int
		steady   bool
		from, to float64 // where the steady part may begin
		part     float64 // its throughput
	}{
		{"level", func(int) float64 { return 1e6 * noise() }, 60, true, 0, 25, 1e6},
		{"level and short", func(int) float64 { return 1e6 * noise() }, 10, true, 0, 5, 1e6},
		{"warms up", func(i int) float64 { return 1e6 * noise() * (1 - 0.6*math.Exp(-float64(i)/6)) }, 100, true, 10, 40, 1e6},
		{"a stair", func(i int) float64 {
			if i < 20 {
				return 5e5 * noise()
			}
			return 1e6 * noise()
		}, 60, true, 20, 25, 1e6},
		{"rises all the time", func(i int) float64 { return 1e6 * noise() * (1 + 0.01*float64(i)) }, 60, false, 0, 0, 0},
		{"a stair too late", func(i int) float64 {
			if i < 45 {
				return 5e5 * noise()
			}
			return 1e6 * noise()
		}, 60, false, 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &Step{}
			s.steady(held(c.rate, c.seconds))
			if s.Steady == nil || *s.Steady != c.steady || (s.SteadyPart != nil) != c.steady {
				t.Fatalf("steady %v, part %+v; want %v", s.Steady, s.SteadyPart, c.steady)
			}
			if !c.steady {
				return
			}
			p := s.SteadyPart
			if p.From < c.from || p.From > c.to || math.Abs(p.From+p.Seconds-float64(c.seconds)) > 1e-9 {
				t.Errorf("the steady part begins at %v s and lasts %v s of %d; want it from %v to %v", p.From, p.Seconds, c.seconds, c.from, c.to)
			}
			near(t, "throughput", p.Throughput, c.part, 0.03)
			if p.Low == nil || *p.Low > p.Throughput || *p.High < p.Throughput {
				t.Errorf("interval %v to %v around %v", p.Low, p.High, p.Throughput)
			}
		})
	}
}

// A level load is called unsteady in few of many holds, whatever their length.
func TestSteadyByChance(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	for _, seconds := range []int{10, 20, 60, 300} {
		wrong := 0
		const holds = 300
		for range holds {
			s := &Step{}
			s.steady(held(func(int) float64 { return 1e6 * (1 + 0.1*r.NormFloat64()) }, seconds))
			if s.Steady == nil || !*s.Steady {
				wrong++
			}
		}
		t.Logf("%d s: %.1f%% of level holds are called unsteady", seconds, 100*float64(wrong)/holds)
		if wrong > holds/20 {
			t.Errorf("%d of %d level holds of %d s are called unsteady", wrong, holds, seconds)
		}
	}
}

// What is too short says nothing, and nothing at all is survived.
func TestSteadyOfLittle(t *testing.T) {
	for _, seconds := range []int{0, 1, 4} {
		s := &Step{}
		s.steady(held(func(int) float64 { return 5 }, seconds))
		if s.Steady != nil || s.SteadyPart != nil {
			t.Errorf("%d seconds are steady: %v", seconds, s.SteadyPart)
		}
	}
	s := &Step{}
	s.steady(held(func(int) float64 { return 0 }, 20))
	if s.Steady == nil || !*s.Steady {
		t.Errorf("nothing moved, steadily: %v", s.Steady)
	}
}

// Where the throughput varies so much that a large drift could hide in it, nobody says that it was steady.
func TestSteadinessCannotBeTold(t *testing.T) {
	noise := []float64{8e6, 2e6, 9e6, 3e6, 1e6, 8e6, 2e6, 7e6}
	f := &Findings{Measure: Throughput, Curve: []Step{{Clients: 8}}}
	f.Curve[0].steady(held(func(i int) float64 { return noise[i] }, len(noise)))
	if s := f.Curve[0]; s.Steady != nil || s.SteadyPart != nil || s.Drift == nil {
		t.Errorf("steady %v, drift %v, steady part %+v", s.Steady, s.Drift, s.SteadyPart)
	}
	if c := checkSteady(f); c.Status != Skipped || len(c.notes) != 1 {
		t.Errorf("check %+v", c)
	}
	f.Curve = append(f.Curve, Step{Clients: 16})
	f.Curve[1].steady(held(func(i int) float64 { return 1e6 + float64(i%3) }, 8))
	if c := checkSteady(f); c.Status != OK || len(c.notes) != 1 {
		t.Errorf("check beside a step that can be judged: %+v", c)
	}
}

// A service that has saved up credit gives what it may only after it is spent, however few seconds tell: as measured.
func TestBurstsAreNotSteady(t *testing.T) {
	for want, burst := range map[string][]float64{
		"8 clients -86%": {48e6, 26.5e6, 5e6, 5e6, 5e6, 5e6, 5e6, 5.1e6}, "8 clients -97%": {1541e6, 49.9e6, 50.1e6, 49.9e6, 50e6}} {
		f := &Findings{Measure: Throughput, Curve: []Step{{Clients: 8}}}
		f.Curve[0].steady(held(func(i int) float64 { return burst[i] }, len(burst)))
		if c := checkSteady(f); c.Status != Warn || !strings.Contains(c.Detail, want) {
			t.Errorf("%v: %+v; want %s", burst, c, want)
		}
	}
}

func TestSteadinessTellsOfWarmUp(t *testing.T) {
	stair := func(i int) float64 {
		if i < 20 {
			return 5e5
		}
		return 1e6 + float64(i%3)
	}
	slow := []float64{3.8e6, 13.3e6, 19.8e6, 26.4e6, 33e6, 38.9e6, 40.1e6, 39.9e6} // as one has been measured
	for _, c := range []struct {
		rate func(i int) float64
		n    int
		mean float64
	}{{stair, 60, 833e3}, {func(i int) float64 { return slow[i] }, len(slow), 26.9e6}} {
		f := &Findings{Measure: Throughput, Curve: []Step{{Clients: 8}}}
		f.Curve[0].steady(held(c.rate, c.n))
		f.Curve[0].Throughput = c.mean
		if c := checkSteady(f); c.Status != Warn || c.Detail == "" {
			t.Errorf("check %+v", c)
		} else {
			t.Log(c.Detail)
		}
	}
}

// More throughput of each client in a heavier step is not the load's doing where it is half as much again, beyond the intervals.
func TestSuperlinearGrowth(t *testing.T) {
	step := func(number, clients int, mean, half float64) Step {
		low, high, steady, drift := mean-half, mean+half, true, 0.0
		return Step{Step: number, Clients: clients, ActiveClients: float64(clients), Done: 1000, Operations: mean / 1e6, Throughput: mean,
			ThroughputLow: &low, ThroughputHigh: &high, Steady: &steady, Drift: &drift}
	}
	for name, c := range map[string]struct {
		curve  []Step
		detail string
	}{
		"a cache fills":              {[]Step{step(1, 1, 10e6, 2e6), step(2, 4, 200e6, 5e6)}, "4 clients had 20.0 times"},
		"and only later":             {[]Step{step(1, 1, 10e6, 2e6), step(2, 4, 40e6, 5e6), step(3, 16, 900e6, 5e6)}, "16 clients had 90.0"},
		"linear":                     {[]Step{step(1, 1, 10e6, .1e6), step(2, 4, 40e6, .1e6)}, "no significant drift"},
		"idle cores":                 {[]Step{step(1, 1, 10e6, .1e6), step(2, 4, 55e6, .1e6)}, "no significant drift"},
		"slow cores":                 {[]Step{step(1, 1, 1e10, 1e6), step(2, 4, 1e11, 1e6)}, "no significant drift"},
		"too noisy to tell":          {[]Step{step(1, 1, 10e6, 9e6), step(2, 4, 80e6, 5e6)}, "no significant drift"},
		"the lighter one came later": {[]Step{step(2, 1, 10e6, .1e6), step(1, 4, 200e6, 5e6)}, "no significant drift"},
	} {
		got := checkSteady(&Findings{Curve: c.curve})
		if warns := got.Status == Warn; warns != strings.Contains(c.detail, "had") || !strings.HasPrefix(got.Detail, c.detail) {
			t.Errorf("%s: %s, %q, want %q", name, got.Status, got.Detail, c.detail)
		}
	}
}
