package fit

import (
	"math"
	"math/rand/v2"
)

// closed returns the exact throughput and the mean number of busy clients of a closed system: n
// clients, pauses with mean think, and one station that serves k clients at the rate serve(k), all
// exponential. It is a birth and death chain: p(k+1)/p(k) = (n-k)/think / serve(k+1).
func closed(n int, think float64, serve func(k int) float64) (yield, busy float64) {
	if think == 0 {
		return serve(n), float64(n)
	}
	logs := make([]float64, n+1)
	top := 0.0
	for k := range n {
		logs[k+1] = logs[k] + math.Log(float64(n-k)/think/serve(k+1))
		top = max(top, logs[k+1])
	}
	sum := 0.0
	for k, l := range logs {
		p := math.Exp(l - top)
		sum += p
		if k > 0 {
			yield += p * serve(k)
			busy += p * float64(k)
		}
	}
	return yield / sum, busy / sum
}

// scalable returns the service rate by the Universal Scalability Law.
func scalable(lambda, sigma, kappa float64) func(int) float64 {
	return func(k int) float64 {
		n := float64(k)
		return lambda * n / (1 + sigma*(n-1) + kappa*n*(n-1))
	}
}

// servers returns the service rate of m equal servers, one operation a second each.
func servers(m int) func(int) float64 {
	return func(k int) float64 { return float64(min(k, m)) }
}

// ladder returns loads from about 1 to most, spread evenly or by a factor.
func ladder(r *rand.Rand, points, most int) []int {
	var all []int
	even := r.IntN(2) == 0
	for i := range points {
		share := float64(i+1) / float64(points)
		x := share * float64(most)
		if !even {
			x = math.Pow(float64(most), share)
		}
		n := max(1, int(math.Round(x)))
		if len(all) == 0 || n > all[len(all)-1] {
			all = append(all, n)
		}
	}
	return all
}

// A trial is a curve measured with noise: within is the relative noise of a batch mean, between is
// the relative noise between steps.
type trial struct {
	within, between float64
	batches         int
}

func (t trial) measure(r *rand.Rand, clients int, yield, busy float64) Point {
	shift := 1 + t.between*r.NormFloat64()
	if t.batches == 0 {
		return Point{Clients: float64(clients), Yield: max(0, yield*shift), Busy: busy}
	}
	p := Point{Clients: float64(clients), Busy: busy}
	for range t.batches {
		b := yield * shift * (1 + t.within*r.NormFloat64())
		p.Batches = append(p.Batches, b)
		p.Yield += b / float64(t.batches)
	}
	p.Yield = max(0, p.Yield)
	return p
}

func trials() []trial {
	return []trial{{0, 0.005, 0}, {0, 0.03, 0}, {0, 0.10, 0}, {0.05, 0, 20}, {0.02, 0.03, 20}, {0.2, 0, 20}, {0.1, 0.05, 5}}
}
