package steps

import (
	"weir/internal/stats"
)

// Bounds of batching: pieces shorter than leastPiece join their neighbor; no more than mostBatches means are kept.
const (
	LeastPiece  = 0.5
	MostBatches = 20
)

// movedIn and doneIn are what is counted in a second.
func movedIn(x *Second) float64 { return float64(x.Moved) }

func doneIn(x *Second) float64 { return float64(x.Done) }

// batches joins the seconds of a step to at most mostBatches mean rates over about the same time. value is what is
// counted in a second.
func batches(seconds []Second, value func(*Second) float64) []stats.Point {
	series := make([]stats.Point, len(seconds))
	for i := range seconds {
		series[i] = stats.Point{Value: stats.Ratio(value(&seconds[i]), seconds[i].Seconds), Weight: seconds[i].Seconds}
	}
	return stats.Batch(series, MostBatches, LeastPiece)
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

// A Minimum is the data that the best step of a run must have for the result to be valid.
type Minimum struct {
	Operations int64   // that ended while it was held
	EachClient float64 // of these, for each active client of the closed model
	Batches    int     // means of the throughput, or of the rate, that its interval is made of
	HalfWidth  float64 // of that 95% interval, as a share of the mean: at most
}

// LeastData returns the minimum that checks are made with. Twenty operations are the fewest with which a 95% interval
// of their median is not the whole range of them but for a few; with fewer than three for each client the operations
// that the hold cuts at its ends weigh as much as the others.
func LeastData() Minimum {
	return Minimum{Operations: 20, EachClient: 3, Batches: stats.LeastBatches, HalfWidth: 0.25}
}
