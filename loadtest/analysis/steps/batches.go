package steps

import (
	"weir/internal/stats"
)

// Limits of batching: pieces shorter than LeastPiece join their neighbor; at most MostBatches means
// are kept.
const (
	LeastPiece  = 0.5
	MostBatches = 20
)

// movedIn and doneIn return the counts of one second.
func movedIn(x *Second) float64 { return float64(x.Moved) }

func doneIn(x *Second) float64 { return float64(x.Done) }

// batches joins the seconds of a step to at most MostBatches mean rates over periods of similar
// length. value returns the count of one second.
func batches(seconds []Second, value func(*Second) float64) []stats.Point {
	series := make([]stats.Point, len(seconds))
	for i := range seconds {
		series[i] = stats.Point{Value: stats.Ratio(value(&seconds[i]), seconds[i].Seconds), Weight: seconds[i].Seconds}
	}
	return stats.Batch(series, MostBatches, LeastPiece)
}

// interval returns the 95% confidence interval of a mean rate, with a lower end of at least zero,
// or nil for fewer than stats.LeastBatches batches.
func interval(batches []stats.Point) (low, high *float64) {
	_, v, ok := stats.BatchInterval(batches)
	if !ok {
		return nil, nil
	}
	v.Low = max(0, v.Low)
	return &v.Low, &v.High
}

// persistent is the correlation of neighboring batches from which a drift is more than chance,
// regardless of the test of its slope, which needs more such batches: a stair, or waves longer than
// the hold.
const persistent = 0.6

// certain reports whether a trend is more than chance at the 5% level.
func certain(t stats.Trend) bool { return t.Certain() || t.Correlation >= persistent }

// A Minimum is the data that the best step of a run must have for the result to be valid.
type Minimum struct {
	Operations int64   // that ended during the hold
	EachClient float64 // of these, per active client of the closed model
	Batches    int     // means of the throughput, or of the rate, behind its interval
	HalfWidth  float64 // maximum half-width of that 95% interval, as a share of the mean
}

// LeastData returns the minimum that the checks use. With fewer than twenty operations, the 95%
// interval of their median is nearly their whole range; with fewer than three for each client, the
// operations that the start and the end of the hold cut weigh as much as the others.
func LeastData() Minimum {
	return Minimum{Operations: 20, EachClient: 3, Batches: stats.LeastBatches, HalfWidth: 0.25}
}
