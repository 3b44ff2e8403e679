package calibration

import (
	"weir/loadtest/analysis/fact"
	"weir/loadtest/measure"
)

// Bounds of a stall.
const (
	stallSeconds = 1.0 // a file of the program that takes longer, and
	stallTimes   = 5.0 // so many times as long as half of them, has stalled
	leastStalls  = 3
	stallExcess  = 0.1 // of the program's time, which stalls have to take to matter
	stallOurs    = 0.2 // of the program's share of stalls: with more among weir's files it is the service
)

// Stalls are files of the program that took much longer than most, while weir's did not: the
// program waited for something other than the service.
type Stalls struct {
	Files   int64   `json:"files"`
	Share   float64 `json:"share"`           // of the program's files
	Seconds float64 `json:"seconds"`         // that each of them took, mean
	Median  float64 `json:"median_seconds"`  // of all its files
	Excess  float64 `json:"excess_of_time"`  // of the program's time, that stalls took beyond the median
	Ratio   float64 `json:"rate_ratio_else"` // weir's files/s over the program's without that, with the most clients
}

// findStalls looks for stalls among the slowest files of the program; it returns nil if they are
// like the other files, or like weir's.
func (r *Result) findStalls() *Stalls {
	if len(r.Points) == 0 {
		return nil
	}
	rate := r.last().Figure(Rate).Ratio
	ours, theirs := latencies(r.sides[0]), latencies(r.sides[1])
	if theirs.Count() == 0 || rate == nil {
		return nil
	}
	s := &Stalls{Median: theirs.Quantile(0.5)}
	bound := max(stallSeconds, stallTimes*s.Median)
	var took float64
	s.Files, took = above(&theirs, bound)
	if s.Files < leastStalls {
		return nil
	}
	n := float64(s.Files)
	s.Share, s.Seconds, s.Excess = n/float64(theirs.Count()), took/n, (took-n*s.Median)/theirs.Sum()
	slow, _ := above(&ours, bound)
	if s.Excess < stallExcess || ours.Count() > 0 && float64(slow)/float64(ours.Count()) > stallOurs*s.Share {
		return nil
	}
	s.Ratio = rate.Value * (1 - s.Excess)
	return s
}

// latencies returns the transfer times of all files of a side.
func latencies(side []Step) (all measure.Histogram) {
	for i := range side {
		all.Merge(&side[i].All.Latency)
	}
	return all
}

// above returns the number of values of h that are longer than bound seconds, and their sum.
func above(h *measure.Histogram, bound float64) (n int64, sum float64) {
	h.Buckets(func(from, to float64, count int64) {
		if from > bound {
			n += count
			sum += float64(count) * (from + to) / 2
		}
	})
	return n, sum
}

// stallsVerdict reports on the stalls, which falsify rates and transfer times.
func (r *Result) stallsVerdict() {
	s := r.Stalls
	if s == nil {
		return
	}
	r.verdict(fact.New("calibration.stalls", "share", s.Share, "program", r.Program, "files", s.Files, "seconds", s.Seconds,
		"median_seconds", s.Median, "excess", s.Excess, "ratio", times(s.Ratio)))
	r.note(fact.New("calibration.stalls.remedy", "program", r.Program))
}
