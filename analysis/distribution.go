package analysis

import "weir/measure"

// A Distribution is how long the operations of one step's hold time took.
type Distribution struct {
	Step      int
	Quantiles Quantiles
	Bins      []Bin // ascending, without gaps of their own making: empty ones are left out
}

// A Bin is how many operations took between From and To seconds.
type Bin struct {
	From, To float64
	Count    int64
}

// distributions returns those of all steps in which operations ended well.
func (d *data) distributions() []Distribution {
	var all []Distribution
	for _, t := range d.held() {
		if q := quantiles(&t.latency); q != nil {
			all = append(all, Distribution{Step: t.number, Quantiles: *q, Bins: bins(&t.latency)})
		}
	}
	return all
}

func bins(h *measure.Histogram) []Bin {
	var all []Bin
	h.Buckets(func(from, to float64, count int64) { all = append(all, Bin{from, to, count}) })
	return all
}
