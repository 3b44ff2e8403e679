package search

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// Searches of services without noise end for the expected reasons.
func TestHowASearchEnds(t *testing.T) {
	quiet := func(yield func(float64) float64, most int) service {
		return service{name: t.Name(), yield: yield, max: most, noise: 0.001, within: 0.003}
	}
	flat := quiet(func(n float64) float64 { return min(n, 20) }, 1000)
	for name, c := range map[string]struct {
		service
		time    time.Duration
		clients [2]int
		ends    Reason
		inside  bool
	}{
		"a peak":        {quiet(usl(80, 0.02), 1000), time.Hour, [2]int{60, 85}, Narrow, true},
		"small loads":   {quiet(usl(5, 0.01), 1000), time.Hour, [2]int{4, 5}, Narrow, true},
		"a plateau":     {flat, time.Hour, [2]int{16, 24}, Rising, false},
		"still growing": {quiet(func(n float64) float64 { return n }, 64), time.Hour, [2]int{64, 64}, Rising, false},
		"slow growth":   {quiet(func(n float64) float64 { return n / (n + 40) }, 100), time.Hour, [2]int{100, 100}, Rising, false},
		"one load":      {quiet(func(n float64) float64 { return n }, 1), time.Hour, [2]int{1, 1}, Rising, false},
		"falling":       {quiet(func(n float64) float64 { return 100 / n }, 1000), time.Hour, [2]int{1, 1}, Edge, true},
		"a corner": {quiet(func(n float64) float64 { return map[bool]float64{true: n, false: 10}[n <= 300] }, 5000), time.Hour,
			[2]int{285, 300}, Narrow, true},
		"no time": {quiet(usl(80, 0.02), 1000), 80 * time.Second, [2]int{1, 1000}, TimeUp, true},
		"broad":   {quiet(usl(300, 0.5), 100_000), 3 * time.Hour, [2]int{10, 5000}, Flat, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := find(t, c.service, limits(c.max), c.time, 3)
			o := f.end.Optimum
			if o == nil || o.Clients < c.clients[0] || o.Clients > c.clients[1] || o.Inside != c.inside || f.end.End != c.ends {
				t.Errorf("%+v after %d steps: %s, want %+v", o, len(f.steps), f.end.End, c)
			}
		})
	}
}

// Errors end the ladder: it does not go on to load a service that has broken down.
func TestErrorsEndTheLadder(t *testing.T) {
	for _, beyond := range []float64{8, 100} {
		s := service{name: "refuses", yield: func(n float64) float64 { return n }, max: 10000, noise: 0.005, within: 0.005,
			failed: func(n float64) float64 { return map[bool]float64{true: 0.9}[n > beyond] }}
		f := find(t, s, limits(s.max), time.Hour, 1)
		for _, step := range f.steps {
			if float64(step.Clients) > 2*beyond {
				t.Errorf("%d clients were tried though %v are too many", step.Clients, beyond)
			}
		}
		if o := f.end.Optimum; o == nil || float64(o.Clients) < 0.97*beyond || float64(o.Clients) > beyond {
			t.Errorf("found %+v, want nearly %v", o, beyond)
		}
	}
	all := service{name: "refuses all", yield: func(float64) float64 { return 0 }, max: 10000, failed: func(float64) float64 { return 1 }}
	if f := find(t, all, limits(all.max), time.Hour, 1); len(f.steps) > 4 || f.end.Optimum != nil {
		t.Errorf("%d steps of a service that refuses all: %+v", len(f.steps), f.end)
	}
}

func TestHoldsAreAsLongAsFilesAndNoiseNeed(t *testing.T) {
	step := func(n int, latency float64, done int64, noise float64) Step {
		return Step{Clients: n, Yield: 100 * float64(n), Error: noise * 100 * float64(n), Latency: latency, Done: done, Duration: 10}
	}
	for name, c := range map[string]struct {
		steps []Step
		left  time.Duration
		want  time.Duration
	}{
		"short operations":    {[]Step{step(1, 0.01, 1000, 0.01)}, time.Hour, 10 * time.Second},
		"of two seconds":      {[]Step{step(1, 2, 5, 0.01)}, time.Hour, 40 * time.Second}, // twice as many clients, beyond the knee twice as long
		"of an hour":          {[]Step{step(1, 3600, 1, 0.01)}, time.Hour, time.Minute},
		"none ended":          {[]Step{step(1, 0, 0, 0.01)}, time.Hour, 40 * time.Second},
		"noise":               {[]Step{step(1, 0.01, 10, 0.03), step(2, 0.01, 10, 0.03), step(4, .01, 10, 0.03)}, time.Hour, 40 * time.Second},
		"little time":         {[]Step{step(1, 2, 5, 0.01)}, 30 * time.Second, 22 * time.Second},
		"too little time":     {[]Step{step(1, 2, 5, 0.01)}, 17 * time.Second, 0},
		"no time":             {[]Step{step(1, 2, 5, 0.01)}, -time.Hour, 0},
		"none before":         {nil, time.Hour, 10 * time.Second},
		"none before, a time": {nil, 15 * time.Second, 0},
	} {
		d := limits(1000).Next(c.steps, c.left)
		if (d.End != "") != (c.want == 0) || d.End == "" && d.Duration.Round(time.Second) != c.want {
			t.Errorf("%s: %+v, want a hold of %v", name, d, c.want)
		}
	}
}

// A search that ended at its largest load goes on if more clients are allowed.
func TestMoreClientsAreAllowedLater(t *testing.T) {
	s := service{name: "linear", yield: usl(400, 0.001), max: 64, noise: 0.003, within: 0.003}
	f := find(t, s, limits(64), time.Hour, 1)
	if f.end.End != Rising {
		t.Fatalf("%+v", f.end)
	}
	if d := limits(5000).Next(f.steps, time.Hour); d.End != "" || d.Clients != 128 {
		t.Errorf("with 5000 clients allowed: %+v, want 128", d)
	}
}

// A search that goes on in another process makes the same decisions as a search that was not
// interrupted: it keeps no state.
func TestTheSameStepsGiveTheSameDecision(t *testing.T) {
	f := find(t, service{name: "x", yield: usl(80, 0.02), max: 1000, noise: 0.01, within: 0.01}, limits(1000), time.Hour, 4)
	for i := range f.steps {
		a, b := limits(1000).Next(f.steps[:i], time.Hour), limits(1000).Next(append([]Step(nil), f.steps[:i]...), time.Hour)
		if a.Clients != b.Clients || a.Duration != b.Duration || a.Why.Text != b.Why.Text {
			t.Errorf("after %d steps: %+v and %+v", i, a, b)
		}
	}
}

// For any steps there is no panic, no load out of bounds, and an end.
func FuzzSearch(f *testing.F) {
	f.Add([]byte{}, 1, 100, uint64(1))
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0xf8, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xef, 0x7f}, 1, 1_000_000, uint64(2))
	f.Add([]byte(strings.Repeat("abcdefgh", 20)), 7, 8, uint64(3))
	f.Fuzz(func(t *testing.T, data []byte, least, most int, seed uint64) {
		l := limits(min(max(most, 1), 1_000_000))
		l.Min = min(max(least, 1), l.Max)
		r := rand.New(rand.NewPCG(seed, 0))
		number := func() float64 {
			if len(data) >= 8 && r.IntN(3) == 0 {
				x := math.Float64frombits(binary.LittleEndian.Uint64(data))
				data = data[8:]
				return x
			}
			return math.Exp(3 * r.NormFloat64())
		}
		var steps []Step
		left := time.Hour
		for range 2 * mostSteps {
			d := l.Next(steps, left)
			if o := d.Optimum; o != nil && (o.Low > o.Clients || o.High < o.Clients || o.Low < l.Min || o.High > l.Max) {
				t.Fatalf("optimum %+v of limits %+v", o, l)
			}
			if d.End != "" {
				return
			}
			if d.Clients < l.Min || d.Clients > l.Max || d.Duration < l.Duration || d.Duration > l.Longest {
				t.Fatalf("step %+v of limits %+v", d, l)
			}
			left -= d.Duration + l.Around
			steps = append(steps, Step{Clients: d.Clients, Yield: number(), Error: number(), Failed: number() - 1, Latency: number(),
				Done: int64(r.IntN(1000)), Duration: number()})
		}
		t.Fatalf("no end after %d steps", len(steps))
	})
}

// A service that dies in the middle ends the search; a service with a limit does not.
func TestAServiceThatDiesEndsTheSearch(t *testing.T) {
	served := []Step{{Clients: 1, Yield: 1, Done: 100, Duration: 8}, {Clients: 2, Yield: 2, Done: 200, Duration: 8},
		{Clients: 4, Yield: 3, Done: 300, Duration: 8}}
	dead := func(n int) []Step { return append(slices.Clone(served), Step{Clients: n, Failed: 1, Duration: 8}) }
	l := limits(100)
	for _, n := range []int{1, 3, 4} {
		if d := l.Next(dead(n), time.Hour); d.End != Gone || d.Optimum == nil || d.Optimum.Clients > 4 {
			t.Errorf("%d clients: %+v", n, d)
		}
	}
	if d := l.Next(dead(8), time.Hour); d.End != "" {
		t.Errorf("8 clients may be too many: %+v", d)
	}
}
