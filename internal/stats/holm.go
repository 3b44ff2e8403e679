package stats

import (
	"cmp"
	"math"
	"slices"
)

// Holm returns the p values corrected for looking at all of them: an adjusted value below 0.05
// limits to 5% the chance that anything is called different although nothing is (Holm, Scandinavian
// Journal of Statistics 6, 1979). It needs no independence. NaN stays NaN and does not count.
func Holm(p []float64) []float64 {
	order := make([]int, 0, len(p))
	adjusted := make([]float64, len(p))
	for i, v := range p {
		if math.IsNaN(v) {
			adjusted[i] = v
			continue
		}
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	least := 0.0
	for rank, i := range order {
		least = max(least, min(1, p[i]*float64(len(order)-rank)))
		adjusted[i] = least
	}
	return adjusted
}
