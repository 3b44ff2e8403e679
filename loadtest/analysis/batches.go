package analysis

import (
	"math"

	"weir/internal/stats"
)

// Bounds of batching: pieces shorter than leastPiece join their neighbor; no more than mostBatches means are kept.
const (
	leastPiece  = 0.5
	mostBatches = 20
)

// movedIn and doneIn are what is counted in a second.
func movedIn(x *second) float64 { return float64(x.moved) }
func doneIn(x *second) float64  { return float64(x.done) }

// batches joins the seconds of a step to at most mostBatches mean rates over about the same time. value is what is
// counted in a second.
func batches(seconds []second, value func(*second) float64) []stats.Point {
	series := make([]stats.Point, len(seconds))
	for i := range seconds {
		series[i] = stats.Point{Value: ratio(value(&seconds[i]), seconds[i].seconds), Weight: seconds[i].seconds}
	}
	return stats.Batch(series, mostBatches, leastPiece)
}

// interval returns the 95% confidence interval of a mean rate, which is never below zero; nil below
// stats.LeastBatches.
func interval(batches []stats.Point) (low, high *float64) {
	_, v, ok := stats.BatchInterval(batches)
	if !ok {
		return nil, nil
	}
	v.Low = max(0, v.Low)
	return &v.Low, &v.High
}

// persistent is the correlation of neighboring batches from which on a drift is no chance, whatever the test of its
// slope says, for which such batches are too few: a stair, or waves longer than the hold.
const persistent = 0.6

// certain reports whether a trend is more than chance at the 5% level.
func certain(t stats.Trend) bool { return t.Certain() || t.Correlation >= persistent }

// What is known of a share before its first sample: samples of machines that other programs use as well deviate by
// about this, as sure as if so many samples more had said so. It keeps two samples that happen to agree from being
// taken for certainty.
const (
	usualDeviation = 0.02
	usualSamples   = 4
	perSample      = 0.5 // of an independent one that a sample counts for: a second is like the one before it
	leastWhole     = 0.3 // share of the time that samples inside of the hold must cover to represent it
)

// A spread gathers the samples of a share in one step. Those that lie inside of the hold count; those that its edges
// cut count where there are no others, since a part of them is not of the hold. The zero value is empty.
type spread struct{ whole, cut spreadSum }

// A spreadSum holds what mean and variance follow from, in any order of the samples.
type spreadSum struct{ weight, weights2, sum, squares float64 }

// add counts a sample of x whose span shares weight seconds with the hold; whole reports whether that is all of it.
func (s *spread) add(x, weight float64, whole bool) {
	if math.IsNaN(x) || weight <= 0 {
		return
	}
	if whole {
		s.whole.add(x, weight)
		return
	}
	s.cut.add(x, weight)
}

func (s *spreadSum) add(x, weight float64) {
	s.weight += weight
	s.weights2 += weight * weight
	s.sum += weight * x
	s.squares += weight * x * x
}

// represents returns the samples that represent the step.
func (s *spread) represents() *spreadSum {
	if s.whole.weight < leastWhole*(s.whole.weight+s.cut.weight) {
		return &s.cut
	}
	return &s.whole
}

// mean is the mean of interval, which costs much less.
func (s *spread) mean() (mean float64, ok bool) {
	of := s.represents()
	return of.sum / of.weight, of.weight > 0
}

// interval returns the mean and half of its 95% interval; ok is false if nothing was added.
func (s *spread) interval() (v ranged, ok bool) {
	of := s.represents()
	if of.weight <= 0 {
		return ranged{}, false
	}
	mean := of.sum / of.weight
	variance := max(0, of.squares/of.weight-mean*mean)
	n := max(1, perSample*of.weight*of.weight/of.weights2) // independent samples of equal weight that tell as much
	degrees := usualSamples + n - 1
	size := math.Sqrt((usualSamples*usualDeviation*usualDeviation + n*variance) / degrees / n)
	return ranged{mean, stats.Student(degrees) * size}, true
}

// A ranged is a mean with half of its 95% interval.
type ranged struct{ mean, half float64 }

func (v ranged) low() float64  { return max(0, v.mean-v.half) }
func (v ranged) high() float64 { return v.mean + v.half }
func (v ranged) times(x float64) ranged {
	return ranged{v.mean * x, v.half * math.Abs(x)}
}
