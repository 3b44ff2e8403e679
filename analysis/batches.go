package analysis

import "weir/analysis/stats"

// ratio returns a/b, and 0 where that is no finite number.
func ratio(a, b float64) float64 { return stats.Ratio(a, b) }

// Bounds of batching: pieces shorter than leastPiece join their neighbor; no
// more than mostBatches means are kept.
const (
	leastPiece  = 0.5
	mostBatches = 20
)

// movedIn and doneIn are what is counted in a second.
func movedIn(x *second) float64 { return float64(x.moved) }
func doneIn(x *second) float64  { return float64(x.done) }

// batches joins the seconds of a step to at most mostBatches mean rates over
// about the same time. value is what is counted in a second.
func batches(seconds []second, value func(*second) float64) []stats.Point {
	series := make([]stats.Point, len(seconds))
	for i := range seconds {
		series[i] = stats.Point{Value: ratio(value(&seconds[i]), seconds[i].seconds), Weight: seconds[i].seconds}
	}
	return stats.Batch(series, mostBatches, leastPiece)
}

// interval returns the 95% confidence interval of a mean rate, which is never
// below zero; nil below stats.LeastBatches.
func interval(batches []stats.Point) (low, high *float64) {
	_, v, ok := stats.BatchInterval(batches)
	if !ok {
		return nil, nil
	}
	v.Low = max(0, v.Low)
	return &v.Low, &v.High
}

// persistent is the correlation of neighboring batches from which on a drift is
// no chance, whatever the test of its slope says, for which such batches are too
// few: a stair, or waves longer than the hold.
const persistent = 0.6

// certain tells whether a trend is more than chance at the 5% level.
func certain(t stats.Trend) bool { return t.Certain() || t.Correlation >= persistent }
