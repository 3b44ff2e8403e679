package theory

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"weir/storage/simulated"
)

// Kinds of random stations.
const (
	saturating = "saturating" // servers; the range extends beyond the knee, and there is no maximum
	rising     = "rising"     // the range ends before the knee, or before the maximum
	turning    = "turning"    // the maximum lies inside the range
)

// A trial is a station with known demand and think time, and the loads at which it is tested.
type trial struct {
	kind   string
	theory simulated.Theory
	think  string // distribution: "none", fixed, uniform, exponential
	loads  []int
	seed   uint64
}

// url returns the station as a target.
func (c trial) url() string {
	t := c.theory
	if t.Sigma > 0 || t.Kappa > 0 {
		return fmt.Sprintf("simulated://x?service=%v&sigma=%v&kappa=%v&seed=%d&files=10x1KiB", t.Service, t.Sigma, t.Kappa, c.seed)
	}
	return fmt.Sprintf("simulated://x?service=%v&servers=%d&seed=%d&files=10x1KiB", t.Service, t.Servers, c.seed)
}

func (c trial) String() string {
	t := c.theory
	return fmt.Sprintf("%s station: k=%d S=%v Z=%v (%s) sigma=%.4f kappa=%.6f, %d loads from %d to %d",
		c.kind, t.Servers, t.Service, t.Think, c.think, t.Sigma, t.Kappa, len(c.loads), c.loads[0], c.most())
}

func (c trial) most() int { return c.loads[len(c.loads)-1] }

// between returns a random number, uniform on a logarithmic scale.
func between(r *rand.Rand, low, high float64) float64 {
	return low * math.Pow(high/low, r.Float64())
}

// draw draws a trial: service times of 1 ms to 1 s, 1 to 200 servers, think times of 0 to 5 service
// times.
func draw(r *rand.Rand) trial {
	c := trial{seed: r.Uint64()}
	s := between(r, 0.001, 1)
	z := 0.0
	c.think = "none"
	if r.IntN(4) > 0 {
		z = s * between(r, 0.2, 5)
		c.think = []string{"fixed", "uniform", "exponential"}[r.IntN(3)]
	}
	c.theory.Service = time.Duration(s * 1e9).Round(time.Microsecond)
	c.theory.Think = time.Duration(z * 1e9).Round(time.Microsecond)
	if r.IntN(2) == 0 {
		c.servers(r)
	} else {
		c.contended(r)
	}
	return c
}

// mostRate limits the operations per second, since each costs time to compute.
const mostRate = 1000

func (c *trial) servers(r *rand.Rand) {
	c.theory.Servers = int(between(r, 1, max(1.5, min(200, mostRate*c.theory.Service.Seconds()))))
	knee := c.theory.Knee()
	if knee < 2 { // no load is below the knee: the curve does not bend
		c.theory.Servers = 2
		knee = c.theory.Knee()
	}
	if c.kind = saturating; r.IntN(4) == 0 && knee > 12 {
		c.kind = rising
		c.ladder(r, knee*between(r, 0.3, 0.6))
		return
	}
	c.ladder(r, max(4, knee*between(r, 1.8, 4)))
}

func (c *trial) contended(r *rand.Rand) {
	t := &c.theory
	// The maximum is at busy simultaneous operations, and sigma causes part of the loss there.
	busy := between(r, 6, 80)
	t.Sigma = r.Float64() * 2 / busy
	t.Kappa = (1 - t.Sigma) / busy / busy
	for { // until the rate is small enough
		_, rate := simulated.Theory{Service: t.Service, Sigma: t.Sigma, Kappa: t.Kappa}.Best(int(2 * busy))
		if rate <= mostRate {
			break
		}
		t.Service *= 2
		t.Think *= 2
	}
	peak, _ := t.Best(int(20*busy) + 100)
	if c.kind = turning; r.IntN(4) == 0 {
		c.kind = rising
		c.ladder(r, float64(peak)*between(r, 0.3, 0.7))
		return
	}
	c.ladder(r, float64(peak)*between(r, 1.8, 4))
}

// ladder sets 10 to 16 loads up to about most, at equal differences or equal ratios, from a
// thirtieth of most.
func (c *trial) ladder(r *rand.Rand, most float64) {
	steps, even := 10+r.IntN(7), r.IntN(2) == 0
	first := max(1, most/30)
	for i := range steps {
		share := float64(i) / float64(steps-1)
		x := first * math.Pow(most/first, share)
		if even {
			x = first + (most-first)*share
		}
		if n := int(math.Round(x)); len(c.loads) == 0 || n > c.loads[len(c.loads)-1] {
			c.loads = append(c.loads, n)
		}
	}
}
