package steps

import (
	"weir/internal/stats"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
)

// Limits of the warning about clients that are served unequally.
const (
	leastEach = 20   // operations per client, on average
	unequal   = 0.25 // squared coefficient of variation of the clients' operations: half of them get a third of the others' number
	byChance  = 2    // factor for the variation explained by chance
)

// fairness is Jain's index of the numbers x of operations that the clients completed, (sum x)^2 /
// (N sum x^2): 1 if all clients completed the same number, k/N if k of N clients completed all of
// them (R. Jain, D. Chiu, W. Hawe, A quantitative measure of fairness, DEC-TR-301, 1984). It is nil
// if clients differ by plan or do not start operations on their own, if there are fewer than two
// clients, and for runs that did not record it.
func (d *Run) fairness(s *Working, t *Total) *float64 {
	if d.Plan.Model == scenario.OpenModel || s.Bounded || len(d.Plan.Populations) > 0 || len(t.sites) > 0 || d.Record ||
		s.Done == 0 || t.DoneSquares < float64(s.Done) || s.ActiveClients < 1.5 {
		return nil
	}
	done := float64(s.Done)
	index := min(1, done*done/(s.ActiveClients*t.DoneSquares))
	each := done / s.ActiveClients
	s.Unequal = each >= leastEach && 1/index-1 > unequal+byChance*variation(&t.Latency)/each
	return &index
}

// variation returns the squared coefficient of variation of durations: divided by the number of
// operations of a client, it is the squared coefficient of variation of that number if only chance
// makes clients differ (D. R. Cox, Renewal Theory, 1962).
func variation(h *measure.Histogram) float64 {
	squares := 0.0
	h.Buckets(func(from, to float64, count int64) { squares += float64(count) * (from + to) / 2 * (from + to) / 2 })
	mean := h.Mean()
	return max(0, stats.Ratio(squares, float64(h.Count())*mean*mean)-1)
}
