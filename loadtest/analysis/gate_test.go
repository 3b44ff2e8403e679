package analysis

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"weir/internal/tier"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
	"weir/storage"
)

// A made second has the contents of one interval of a test.
type made struct {
	done, errors int
	latency      time.Duration
	bytes        int64
}

func gateOf(t *testing.T, thresholds ...string) *Gate {
	t.Helper()
	p := &scenario.Plan{Thresholds: thresholds}
	for i := range 5 {
		p.Steps = append(p.Steps, scenario.Step{Number: i + 1, Clients: 10 * (i + 1)})
	}
	return NewGate(p)
}

// feed passes one second of a step to g, in two intervals as from two data servers.
func feed(g *Gate, start time.Time, step int, phase string, m made) string {
	said := ""
	for _, server := range []string{"a", "b"} {
		v := &measure.Interval{Start: start, Seconds: 1, Step: step, Phase: phase, Clients: float64(10 * step), Server: server,
			Sum: measure.Sum{Moved: m.bytes / 2}}
		if server == "a" {
			v.Done, v.Failed = int64(m.done), map[storage.Class]int64{storage.Busy: int64(m.errors), storage.Canceled: 7}
			for range m.done {
				v.Latency.Record(m.latency)
			}
		}
		if broken := g.Saw(v); broken != nil && said == "" {
			said = broken.Text
		}
	}
	return said
}

// run holds one step for the given number of seconds and returns the text of the violation and its
// second of the hold; the first second of the next step counts as one more.
func run(g *Gate, step, seconds int, second func(i int) made) (said string, at int) {
	begin := time.Unix(1_000_000+int64(step)*1000, 0)
	for i := range seconds {
		if said = feed(g, begin.Add(time.Duration(i)*time.Second), step, measure.Measured, second(i)); said != "" {
			return said, i
		}
	}
	return feed(g, begin.Add(time.Duration(seconds)*time.Second), step+1, measure.Ramp, made{}), seconds
}

func always(m made) func(int) made { return func(int) made { return m } }

func TestGateJudgesStepsWhenTheyEnd(t *testing.T) {
	fine := made{done: 1, latency: 10 * time.Millisecond, bytes: 1000}
	for text, want := range map[string]string{
		"throughput < 10 kbit/s or stop":               "",
		"throughput > 10 kbit/s or stop":               "8.00 kbit/s at 10 clients",
		"per_client > 10 kbit/s or stop":               "800 bit/s",
		"rate >= 1/s or stop":                          "",
		"rate > 1/s or stop":                           "1/s",
		"per_client_rate > 1/s or stop":                "0.100/s",
		"error_ratio < 1% or stop":                     "",
		"p99 < 5ms or stop":                            "10 ms",
		"latency_mean > 1s or stop":                    "10 ms",
		"latency_max < 1ms or stop":                    "10 ms",
		"first_byte_p50 < 1ms or stop":                 "", // was not measured
		"wait_ratio > 1% or stop":                      "0%",
		"missed_ratio > 1% or stop":                    "0%",
		"p99 < 5ms at 20 clients or stop":              "",
		"p99 < 5ms at 10 clients or stop":              "10 ms",
		"throughput > 10 kbit/s at 10 clients or stop": "8.00 kbit/s",
	} {
		g := gateOf(t, "p99 < 1ms", text)
		said, at := run(g, 1, 5, always(fine))
		if want == "" && said != "" || want != "" && (!strings.Contains(said, want) ||
			!strings.HasPrefix(said, text+": step 1 was stopped after 5 s")) {
			t.Errorf("%s: %q, want %q", text, said, want)
		}
		if at != 5 {
			t.Errorf("%s: judged after %d s, want 5", text, at)
		}
	}
	if g := gateOf(t, "p99 < 1ms"); g != nil {
		t.Error("a gate without any threshold that may stop a run")
	}
}

// TestGateEndsWithTheStep checks that the event of the next step also ends a step, and that late
// intervals of the old step are not taken for a step of their own.
func TestGateEndsWithTheStep(t *testing.T) {
	g := gateOf(t, "rate > 5/s or stop")
	if said := g.End(); said != nil {
		t.Errorf("before any step: %+v", said)
	}
	begin := time.Unix(1000, 0)
	for i := range 3 {
		feed(g, begin.Add(time.Duration(i)*time.Second), 1, measure.Measured, made{done: 6})
	}
	if said := g.End(); said != nil {
		t.Errorf("6/s is %+v", said)
	}
	late := feed(g, begin.Add(3*time.Second), 1, measure.Measured, made{done: 1})
	if late += feed(g, begin.Add(4*time.Second), 2, measure.Ramp, made{}); late != "" {
		t.Errorf("what came late says %q", late)
	}
	if said, _ := run(g, 2, 3, always(made{done: 4})); !strings.Contains(said, "at 20 clients") {
		t.Errorf("4/s in step 2: %q", said)
	}
}

// TestGateStopsLongHolds checks that the end of a long hold is not awaited if the threshold is
// broken beyond doubt.
func TestGateStopsLongHolds(t *testing.T) {
	slow := made{done: 10, latency: 3 * time.Second, bytes: 1000, errors: 2}
	for text, want := range map[string]int{ // second of the hold in which it is reported
		"p99 < 2s or stop":               10,
		"p50 < 2s or stop":               10,
		"latency_max < 2s or stop":       10,
		"latency_max > 4s or stop":       60, // may still come
		"latency_mean < 2s or stop":      10,
		"throughput > 1 Mbit/s or stop":  10,
		"throughput < 1 kbit/s or stop":  10,
		"per_client > 1 Mbit/s or stop":  10,
		"rate > 100/s or stop":           10,
		"error_ratio < 1% or stop":       10,
		"error_ratio > 50% or stop":      10,
		"error_ratio < 16% or stop":      60, // 16.7% of 120 leaves doubt, of 720 too
		"wait_ratio > 5% or stop":        10,
		"missed_ratio > 50% or stop":     10,
		"error_ratio < 20% or stop":      -1,
		"p99 < 4s or stop":               -1,
		"login_p99 < 1ms or stop":        -1, // never measured
		"first_byte_mean < 1ms or stop":  -1,
		"p99 < 2s at 50 clients or stop": -1,
	} {
		g := gateOf(t, text)
		said, at := run(g, 1, 60, always(slow))
		if said == "" {
			at = -1
		}
		if at != want {
			t.Errorf("%s: second %d, want %d: %s", text, at, want, said)
		}
	}
}

// TestGateWaitsForOperations checks that few operations are not sufficient; ten seconds later there
// are more.
func TestGateWaitsForOperations(t *testing.T) {
	g := gateOf(t, "p50 < 1s or stop")
	said, at := run(g, 1, 60, func(i int) made { return made{done: i % 2, latency: 2 * time.Second} })
	if at < 40 || at > 42 || said == "" {
		t.Errorf("second %d: %q, want 40: twenty operations", at, said)
	}
}

// TestGateRarelyStopsForNothing runs services that are just good enough: their true figure meets
// the threshold by a little, while each second is noisy.
func TestGateRarelyStopsForNothing(t *testing.T) {
	tier.Slow(t, "repeats a gate many times")
	r := rand.New(rand.NewPCG(1, 2))
	stopped := 0
	const runs = 200
	for range runs {
		g := gateOf(t, "p99 < 4700ms or stop", "error_ratio < 11% or stop")
		begin := time.Unix(1000, 0)
		for i := range 120 {
			v := &measure.Interval{Start: begin.Add(time.Duration(i) * time.Second), Seconds: 1, Step: 1, Phase: measure.Measured, Clients: 10}
			v.Failed = map[storage.Class]int64{}
			for range 10 {
				if r.Float64() < 0.1 {
					v.Failed[storage.Busy]++
					continue
				}
				v.Done++
				v.Latency.Record(time.Duration(r.ExpFloat64() * float64(time.Second))) // p99 is 4.605 s
			}
			if g.Saw(v) != nil {
				stopped++
				break
			}
		}
	}
	if stopped > runs/50 {
		t.Errorf("%d of %d good runs were stopped on the way", stopped, runs)
	}
}

func ExampleGate() {
	g := NewGate(&scenario.Plan{Thresholds: []string{"rate > 10/s or stop"}, Steps: []scenario.Step{{Number: 1, Clients: 3}}})
	fmt.Println(g.Saw(&measure.Interval{Start: time.Unix(1, 0), Seconds: 1, Step: 1, Phase: measure.Measured,
		Sum: measure.Sum{Done: 4}}) == nil)
	broken := g.End()
	fmt.Println(broken.Threshold)
	fmt.Println(broken.Text)
	// Output:
	// true
	// rate > 10/s or stop
	// rate > 10/s or stop: step 1 was stopped after 1 s of measurement: 4/s at 3 clients
}
