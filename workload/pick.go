package workload

import "math/rand/v2"

// A picker chooses files of a set of n.
type picker struct {
	n, at int
	order string
	skew  float64
	zipf  *rand.Zipf
	of    *rand.Rand // what zipf draws from
}

func newPicker(w Work, n, client int) picker {
	p := picker{n: n, order: w.Pick, skew: w.Skew}
	if n > 0 {
		p.at = client % n // clients start one file apart, so together they cover the set evenly
	}
	return p
}

// next returns the index of the next file. With zipf the first file of the
// set is the most wanted one of all clients.
func (p *picker) next(r *rand.Rand) int {
	switch p.order {
	case "sequential":
		i := p.at
		if p.at++; p.at == p.n {
			p.at = 0
		}
		return i
	case "zipf":
		if p.of != r {
			p.zipf, p.of = rand.NewZipf(r, p.skew, 1, uint64(p.n-1)), r
		}
		return int(p.zipf.Uint64())
	}
	return r.IntN(p.n)
}
