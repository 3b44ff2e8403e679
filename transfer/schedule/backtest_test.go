package schedule

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/transfer"
)

// history generates copies of two sources, whose rates are computed by rate.
func history(n int, rate func(i int, source string, cpu, memory float64) float64) []transfer.PastAttempt {
	r := rand.New(rand.NewPCG(3, 4))
	now := time.Unix(1e9, 0)
	var tries []transfer.PastAttempt
	for i := range n {
		for _, source := range []string{"A", "B"} {
			cpu, memory := r.Float64(), 0.3+0.1*r.Float64()
			size := int64(math.Exp(16 + 4*r.Float64()))
			speed := rate(i, source, cpu, memory) * (0.95 + 0.1*r.Float64())
			d := time.Duration(float64(size) / speed * 1e9)
			begin := now.Add(time.Duration(i) * 10 * time.Second)
			tries = append(tries, transfer.PastAttempt{
				Bytes: size, CPU: cpu, Memory: memory,
				Attempt: transfer.Attempt{Source: source, Dest: "D", Outcome: transfer.Outcome{Moved: size, Begin: begin, End: begin.Add(d)}},
			})
		}
	}
	return tries
}

func verdictOf(v Verdict, name string) Predictor {
	for _, p := range v.Predictors {
		if p.Name == name {
			return p
		}
	}
	return Predictor{}
}

// If a rate drifts, recent copies predict best; if it depends on the source's CPU, Transfer2Go's
// regression does. The back test detects it in both cases.
func TestBacktestTellsWhichPredictorIsRight(t *testing.T) {
	drift := history(500, func(i int, source string, _, _ float64) float64 {
		if source == "A" {
			return 50e6 + 40e6*math.Sin(float64(i)/50)
		}
		return 50e6 - 40e6*math.Sin(float64(i)/50)
	})
	busy := history(500, func(_ int, _ string, cpu, _ float64) float64 { return 100e6 * (1.05 - cpu) })
	for _, c := range []struct {
		tries []transfer.PastAttempt
		best  string
	}{{drift, "recent"}, {busy, "regression"}} {
		v := Backtest(c.tries)
		best := verdictOf(v, c.best)
		if v.Used != 1000 || v.Pairs < 200 || best.Copies < 900 || best.Error.Value > 1.3 || best.Share < 0.9 {
			t.Errorf("%s: %+v", c.best, best)
		}
		for _, p := range v.Predictors {
			if p.Name != c.best && (p.Error.Value <= best.Error.Value || p.Share >= best.Share) {
				t.Errorf("%s is said to be as good as %s: %+v, %+v", p.Name, c.best, p, best)
			}
			if r := p.Error.Range; r == nil || r.Low > p.Error.Value || r.High < p.Error.Value {
				t.Errorf("%s: error %+v", p.Name, p.Error)
			}
		}
		var text strings.Builder
		require.NoError(t, v.Write(&text))
		if want := fmt.Sprintf("Half of what %q predicts is less than", c.best); !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
		t.Logf("\n%s", &text)
	}
}

// If rates are random, no predictor is reported as better.
func TestBacktestOfNoise(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	v := Backtest(history(100, func(int, string, float64, float64) float64 { return 1e6 * math.Exp(3*r.Float64()) }))
	for _, p := range v.Predictors {
		if p.Range.Low > 0.5 || p.Range.High < 0.5 {
			t.Errorf("%s names the faster one of two equals in %d of %d cases", p.Name, p.Right, v.Pairs)
		}
	}
}

// A prediction never uses copies that ended later, and odd histories do no harm.
func TestBacktestLooksNotAhead(t *testing.T) {
	now := time.Unix(1e9, 0)
	var tries []transfer.PastAttempt
	for i := range 40 { // all at the same time
		tries = append(tries, transfer.PastAttempt{CPU: 0.5, Memory: 0.5, Attempt: transfer.Attempt{
			Source: "A", Dest: "D", Outcome: transfer.Outcome{Moved: 1e6, Begin: now, End: now.Add(time.Duration(i+1) * time.Second)},
		}})
	}
	for name, list := range map[string][]transfer.PastAttempt{
		"nothing": nil, "together": tries, "one": tries[:1],
		"odd": {{}, {CPU: math.NaN(), Attempt: transfer.Attempt{Outcome: transfer.Outcome{Moved: -1, Begin: now, End: now.Add(-1)}}}},
	} {
		v := Backtest(list)
		if p := verdictOf(v, "recent"); p.Copies != 0 {
			t.Errorf("%s: %+v", name, p)
		}
		var text strings.Builder
		if err := v.Write(&text); err != nil || !strings.Contains(text.String(), "too little") {
			t.Errorf("%s: %v, %q", name, err, &text)
		}
	}
	unsampled := history(50, func(int, string, float64, float64) float64 { return 1e6 })
	for i := range unsampled {
		unsampled[i].CPU = -1
	}
	if v := Backtest(unsampled); v.Unsampled != 100 || verdictOf(v, "mean").Copies != 0 {
		t.Errorf("%+v", v)
	}
}

func TestRegression(t *testing.T) {
	var g Regression
	if _, ok := g.Rate(0, 0); ok {
		t.Error("something is known from nothing")
	}
	r := rand.New(rand.NewPCG(7, 8))
	for range 100 {
		cpu, memory := r.Float64(), r.Float64()
		g.Add(cpu, memory, 100-50*cpu+10*memory)
	}
	if rate, ok := g.Rate(0.5, 0.5); !ok || math.Abs(rate-80) > 1e-6 {
		t.Errorf("%g instead of 80", rate)
	}
	if rate, _ := g.Rate(100, 0); rate <= 0 {
		t.Errorf("a rate of %g", rate)
	}
	var flat Regression // memory never changes
	for i := range 20 {
		flat.Add(float64(i)/20, 0.5, float64(i))
	}
	if rate, ok := flat.Rate(0.5, 0.5); !ok || math.Abs(rate-10) > 1e-6 {
		t.Errorf("%g instead of 10", rate)
	}
	flat.Add(math.NaN(), 0, 1)
	if rate, _ := flat.Rate(0.5, 0.5); math.IsNaN(rate) {
		t.Error("one nonsense spoils it")
	}
}

// A fixed time and a rate are separated once sizes differ, and changes are noticed.
func TestRecent(t *testing.T) {
	var r Recent
	if _, ok := r.Seconds(1); ok || r.Known() {
		t.Error("something is known from nothing")
	}
	for range 50 {
		r.Add(64<<10, 0.05+(64<<10)/100e6)
	}
	if s, _ := r.Seconds(1000); math.Abs(s-0.05) > 0.005 {
		t.Errorf("a smaller file takes %g s", s)
	}
	for range 20 {
		for _, size := range []float64{64 << 10, 1 << 20, 1 << 30} {
			r.Add(size, 0.05+size/100e6)
		}
	}
	for _, size := range []float64{1, 1 << 20, 10 << 30} {
		if s, _ := r.Seconds(size); math.Abs(s/(0.05+size/100e6)-1) > 0.01 {
			t.Errorf("%g bytes: %g s", size, s)
		}
	}
	for range 60 {
		r.Add(1<<30, 100)
	}
	if s, _ := r.Seconds(1 << 30); math.Abs(s-100) > 5 {
		t.Errorf("after the link became slow: %g s", s)
	}
	for _, odd := range [][2]float64{{math.NaN(), 1}, {1, math.NaN()}, {-1, 1}, {1, -1}, {1, math.Inf(1)}, {0, 0}} {
		r.Add(odd[0], odd[1])
	}
	if s, ok := r.Seconds(1 << 30); !ok || s <= 0 || math.IsNaN(s) {
		t.Errorf("after odd copies: %g s", s)
	}
}
