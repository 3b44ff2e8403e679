package stats

import "math"

// A Point is a mean over some stretch: for example a rate over seconds. All points of a series
// follow each other without gaps.
type Point struct {
	Value  float64
	Weight float64 // length of the stretch, above zero
}

// Batch joins neighbors to at most most points of about the same length, each at least least long:
// means of long batches are nearly independent even if single seconds are not (Schmeiser,
// Operations Research 30, 1982, finds 10 to 30 batches enough).
func Batch(series []Point, most int, least float64) []Point {
	span := 0.0
	for _, p := range series {
		span += p.Weight
	}
	least = max(least, span/(float64(max(most, 1))+0.5))
	var all []Point
	var sum, length float64
	for _, p := range series {
		sum += p.Value * p.Weight
		length += p.Weight
		if length >= least {
			all = append(all, Point{Ratio(sum, length), length})
			sum, length = 0, 0
		}
	}
	if n := len(all); n > 0 && length > 0 {
		last := &all[n-1]
		last.Value = Ratio(last.Value*last.Weight+sum, last.Weight+length)
		last.Weight += length
	}
	return all
}

// LeastBatches is the least number of means for an interval.
const LeastBatches = 3

// BatchInterval returns the weighted mean of a series of batch means and its 95% interval by Student's t,
//
//	mean +- t * sqrt( sum w (x-mean)^2 / ((n-1) sum w) )
//
// ok is false below LeastBatches.
func BatchInterval(batches []Point) (mean float64, v Interval, ok bool) {
	var weight, spread float64
	for _, p := range batches {
		mean += p.Value * p.Weight
		weight += p.Weight
	}
	mean = Ratio(mean, weight)
	if len(batches) < LeastBatches {
		return mean, Interval{}, false
	}
	for _, p := range batches {
		spread += p.Weight * (p.Value - mean) * (p.Value - mean)
	}
	half := Student(float64(len(batches)-1)) * math.Sqrt(Ratio(spread, float64(len(batches)-1)*weight))
	return mean, Interval{mean - half, mean + half}, Finite(half)
}
