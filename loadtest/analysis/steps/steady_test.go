package steps

import (
	"math"
	"math/rand/v2"
	"testing"

	"weir/internal/require"
	"weir/loadtest/measure"
)

// held returns the hold of a step with the given rate for each of its seconds.
func held(rate func(i int) float64, seconds int) *Total {
	t := &Total{}
	for i := range seconds {
		moved := int64(rate(i))
		t.Seconds = append(t.Seconds, Second{Seconds: 1, Step: 1, Phase: measure.Measured, Clients: 10, Moved: moved})
		t.Moved += moved
		t.Span++
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
		from, to float64 // range of the start of the steady part
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
			s := &Working{Figures: &Figures{}}
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
			require.Near(t, "throughput", p.Throughput, c.part, 0.03)
			if p.Low == nil || *p.Low > p.Throughput || *p.High < p.Throughput {
				t.Errorf("interval %v to %v around %v", p.Low, p.High, p.Throughput)
			}
		})
	}
}

// A level load is called unsteady in few of many holds, for holds of any length.
func TestSteadyByChance(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	for _, seconds := range []int{10, 20, 60, 300} {
		wrong := 0
		const holds = 300
		for range holds {
			s := &Working{Figures: &Figures{}}
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

// A hold that is too short, or empty, gives no result.
func TestSteadyOfLittle(t *testing.T) {
	for _, seconds := range []int{0, 1, 4} {
		s := &Working{Figures: &Figures{}}
		s.steady(held(func(int) float64 { return 5 }, seconds))
		if s.Steady != nil || s.SteadyPart != nil {
			t.Errorf("%d seconds are steady: %v", seconds, s.SteadyPart)
		}
	}
	s := &Working{Figures: &Figures{}}
	s.steady(held(func(int) float64 { return 0 }, 20))
	if s.Steady == nil || !*s.Steady {
		t.Errorf("nothing moved, steadily: %v", s.Steady)
	}
}
