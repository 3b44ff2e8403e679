package schedule

import "weir/transfer"

// total is all that a link ever did.
type total struct{ bytes, seconds float64 }

// naive predicts by the mean of everything.
type naive struct {
	links map[way]*total
	all   total
}

func (p *naive) learn(t *transfer.Try, seconds float64) {
	w := way{t.Source, t.Dest}
	if p.links[w] == nil {
		p.links[w] = &total{}
	}
	for _, sum := range []*total{p.links[w], &p.all} {
		sum.bytes += float64(t.Moved)
		sum.seconds += seconds
	}
}

func (p *naive) predict(t *transfer.Try) (float64, bool) {
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

func (p *lately) learn(t *transfer.Try, seconds float64) {
	w := way{t.Source, t.Dest}
	if p.links[w] == nil {
		p.links[w] = &Recent{}
	}
	p.links[w].Add(float64(t.Moved), seconds)
	p.all.Add(float64(t.Moved), seconds)
}

func (p *lately) predict(t *transfer.Try) (float64, bool) {
	if r := p.links[way{t.Source, t.Dest}]; r != nil {
		return r.Seconds(float64(t.Moved))
	}
	return p.all.Seconds(float64(t.Moved))
}

// regressed predicts as Transfer2Go meant to.
type regressed struct{ model Regression }

func (p *regressed) learn(t *transfer.Try, seconds float64) {
	if t.CPU >= 0 {
		p.model.Add(t.CPU, t.Memory, float64(t.Moved)/seconds)
	}
}

func (p *regressed) predict(t *transfer.Try) (float64, bool) {
	if t.CPU < 0 {
		return 0, false
	}
	rate, ok := p.model.Rate(t.CPU, t.Memory)
	return float64(t.Moved) / rate, ok && rate > 0
}
