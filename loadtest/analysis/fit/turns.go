package fit

import "math"

// turns measures, without any model, the evidence of the points for a curve that turns: how much
// worse a curve that never falls (first) and a curve that never rises (second) describe them than a
// curve that may rise and then fall. Each curve is the best of its kind, by pooling adjacent
// violators (Barlow and others, Statistical Inference under Order Restrictions, Wiley 1972), and
// the measure is the difference of weighted sums of squares.
func (c *curve) turns(y []float64) [2]float64 {
	means, weights := c.pooled(y)
	n := len(means)
	rising := stepwise(means, weights)
	for i, j := 0, n-1; i < j; i, j = i+1, j-1 {
		means[i], means[j] = means[j], means[i]
		weights[i], weights[j] = weights[j], weights[i]
	}
	falling := stepwise(means, weights)
	least := math.Inf(1)
	for i := range n + 1 { // the first i rise, the others fall
		least = min(least, rising[i]+falling[n-i])
	}
	return [2]float64{max(0, rising[n]-least), max(0, falling[n]-least)}
}

// pooled returns the weighted means of the points with the same load.
func (c *curve) pooled(y []float64) (means, weights []float64) {
	means, weights = make([]float64, 0, c.distinct), make([]float64, 0, c.distinct)
	for i, x := range c.x {
		if i == 0 || x > c.x[i-1] {
			means, weights = append(means, y[i]), append(weights, c.w[i])
			continue
		}
		last := len(means) - 1
		weights[last] += c.w[i]
		means[last] += (y[i] - means[last]) * c.w[i] / weights[last]
	}
	return means, weights
}

// stepwise returns, for each number of leading values, the weighted sum of squares of the best
// curve through them that never falls.
func stepwise(means, weights []float64) []float64 {
	type block struct{ mean, weight float64 }
	blocks := make([]block, 0, len(means))
	left := make([]float64, 1, len(means)+1)
	sum := 0.0
	for i := range means {
		b := block{means[i], weights[i]}
		for k := len(blocks) - 1; k >= 0 && blocks[k].mean > b.mean; k-- {
			a, w := blocks[k], blocks[k].weight+b.weight
			sum += a.weight * b.weight / w * (a.mean - b.mean) * (a.mean - b.mean)
			b = block{a.mean + (b.mean-a.mean)*b.weight/w, w}
			blocks = blocks[:k]
		}
		blocks, left = append(blocks, b), append(left, sum)
	}
	return left
}
