package hosts

import (
	"math"

	"weir/internal/stats"
)

// A Mean is an average weighted by time. The zero value is empty.
type Mean struct{ Sum, Weight float64 }

// Add adds a value with a weight. It ignores NaN, an unknown value.
func (m *Mean) Add(x, weight float64) {
	if !math.IsNaN(x) {
		m.Sum += x * weight
		m.Weight += weight
	}
}

// Or0 returns the average, or 0 if nothing was added.
func (m *Mean) Or0() float64 { return stats.Ratio(m.Sum, m.Weight) }

// Value returns the average, or nil if nothing was added.
func (m *Mean) Value() *float64 {
	if m.Weight <= 0 {
		return nil
	}
	return new(m.Or0())
}

// The prior of a share's deviation: samples of machines that other programs use as well deviate by
// about usualDeviation. The prior counts as usualSamples additional samples. It prevents two
// samples that happen to agree from having a certain mean.
const (
	usualDeviation = 0.02
	usualSamples   = 4
	perSample      = 0.5 // independent samples per sample: consecutive seconds are similar
	leastWhole     = 0.3 // minimum share of the time for samples within the hold to represent it
)

// A spread sums the samples of a share in one step. Samples within the hold count; samples that
// overlap its edges count only if there are no others, since a part of them lies outside the hold.
// The zero value is empty.
type spread struct{ whole, cut spreadSum }

// A spreadSum holds the sums for the mean and the variance, independent of the order of the
// samples.
type spreadSum struct{ weight, weights2, sum, squares float64 }

// add counts a sample of x whose span shares weight seconds with the hold; whole reports whether
// the sample lies within the hold.
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

// mean returns the mean of interval at a much lower cost.
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
	n := max(1, perSample*of.weight*of.weight/of.weights2) // equivalent independent samples of equal weight
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
