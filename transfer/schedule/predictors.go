package schedule

import (
	"math"

	"weir/transfer"
)

// total is the sum of all copies of a link.
type total struct{ bytes, seconds float64 }

// naive predicts by the mean rate of all copies.
type naive struct {
	links map[way]*total
	all   total
}

func (p *naive) learn(t *transfer.PastAttempt, seconds float64) {
	w := way{t.Source, t.Dest}
	if p.links[w] == nil {
		p.links[w] = &total{}
	}
	for _, sum := range []*total{p.links[w], &p.all} {
		sum.bytes += float64(t.Moved)
		sum.seconds += seconds
	}
}

func (p *naive) predict(t *transfer.PastAttempt) (float64, bool) {
	sum := p.links[way{t.Source, t.Dest}]
	if sum == nil {
		sum = &p.all
	}
	return float64(t.Moved) * sum.seconds / sum.bytes, sum.bytes > 0
}

// lately predicts as a Network does.
type lately struct {
	links map[way]*Recent
	all   Recent
}

func (p *lately) learn(t *transfer.PastAttempt, seconds float64) {
	w := way{t.Source, t.Dest}
	if p.links[w] == nil {
		p.links[w] = &Recent{}
	}
	p.links[w].Add(float64(t.Moved), seconds)
	p.all.Add(float64(t.Moved), seconds)
}

func (p *lately) predict(t *transfer.PastAttempt) (float64, bool) {
	if r := p.links[way{t.Source, t.Dest}]; r != nil {
		return r.Seconds(float64(t.Moved))
	}
	return p.all.Seconds(float64(t.Moved))
}

// regressed predicts as Transfer2Go was designed to.
type regressed struct{ model Regression }

func (p *regressed) learn(t *transfer.PastAttempt, seconds float64) {
	if t.CPU >= 0 {
		p.model.Add(t.CPU, t.Memory, float64(t.Moved)/seconds)
	}
}

func (p *regressed) predict(t *transfer.PastAttempt) (float64, bool) {
	if t.CPU < 0 {
		return 0, false
	}
	rate, ok := p.model.Rate(t.CPU, t.Memory)
	return float64(t.Moved) / rate, ok && rate > 0
}

// A Regression is Transfer2Go's predictor: throughput as a linear function of the source's CPU and
// memory in use, by ordinary least squares over all copies (github.com/vkuznet/transfer2go, package
// core, router.go). The zero value is without history.
type Regression struct {
	n    float64
	at   [3]float64    // sum of 1, cpu, memory, times the rate
	with [3][3]float64 // sums of products of 1, cpu, memory
}

// leastFit is the minimum number of copies for a regression.
const leastFit = 10

// Add takes a copy into account: the used fractions of the source's processors and memory, 0 to 1,
// and its rate in bytes per second.
func (g *Regression) Add(cpu, memory, rate float64) {
	x := [3]float64{1, cpu, memory}
	for _, v := range append(x[:], rate) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return
		}
	}
	g.n++
	for i := range x {
		g.at[i] += x[i] * rate
		for j := range x {
			g.with[i][j] += x[i] * x[j]
		}
	}
}

// Rate predicts bytes per second; ok is false with fewer than ten copies. If CPU or memory never
// changed it has no influence. The fitted line may fall below zero: the result is at least a
// hundredth of the mean.
func (g *Regression) Rate(cpu, memory float64) (rate float64, ok bool) {
	if g.n < leastFit {
		return 0, false
	}
	b := g.solve()
	return max(b[0]+b[1]*cpu+b[2]*memory, g.at[0]/g.n/100), true
}

// solve returns the coefficients, by Gaussian elimination in the order of the terms; a term that
// depends linearly on earlier terms gets 0.
func (g *Regression) solve() (b [3]float64) {
	m, y := g.with, g.at
	var dead [3]bool
	for i := range m {
		if m[i][i] <= 1e-9*g.with[i][i]+1e-12 { // it depends on earlier terms
			dead[i] = true
			continue
		}
		for k := i + 1; k < 3; k++ {
			f := m[k][i] / m[i][i]
			for j := i; j < 3; j++ {
				m[k][j] -= f * m[i][j]
			}
			y[k] -= f * y[i]
		}
	}
	for i := 2; i >= 0; i-- {
		if dead[i] {
			continue
		}
		b[i] = y[i]
		for j := i + 1; j < 3; j++ {
			b[i] -= m[i][j] * b[j]
		}
		b[i] /= m[i][i]
	}
	return b
}
