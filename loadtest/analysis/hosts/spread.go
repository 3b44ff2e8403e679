package hosts

import (
	"math"

	"weir/internal/stats"
)

// A Mean is an average weighted by time. The zero value is empty.
type Mean struct{ Sum, Weight float64 }

// Add leaves out NaN, an unknown value.
func (m *Mean) Add(x, weight float64) {
	if !math.IsNaN(x) {
		m.Sum += x * weight
		m.Weight += weight
	}
}

// Or0 returns the average, 0 if nothing was added.
func (m *Mean) Or0() float64 { return stats.Ratio(m.Sum, m.Weight) }

// Value returns the average, nil if nothing was added.
func (m *Mean) Value() *float64 {
	if m.Weight <= 0 {
		return nil
	}
	return new(m.Or0())
}

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
func (s *spread) interval() (v Ranged, ok bool) {
	of := s.represents()
	if of.weight <= 0 {
		return Ranged{}, false
	}
	mean := of.sum / of.weight
	variance := max(0, of.squares/of.weight-mean*mean)
	n := max(1, perSample*of.weight*of.weight/of.weights2) // independent samples of equal weight that tell as much
	degrees := usualSamples + n - 1
	size := math.Sqrt((usualSamples*usualDeviation*usualDeviation + n*variance) / degrees / n)
	return Ranged{mean, stats.Student(degrees) * size}, true
}

// A Ranged is a mean with half of its 95% interval.
type Ranged struct{ Mean, Half float64 }

// Low returns the lower end of the interval, at least 0.
func (v Ranged) Low() float64 { return max(0, v.Mean-v.Half) }

// High returns the upper end of the interval.
func (v Ranged) High() float64 { return v.Mean + v.Half }

// Times returns v multiplied by x.
func (v Ranged) Times(x float64) Ranged {
	return Ranged{v.Mean * x, v.Half * math.Abs(x)}
}
