package compare

import "weir/internal/stats"

// pool judges pairs of a campaign of several factors that have too few runs for a permutation test
// in the same way as the effects of its factors: with the residual noise of all variants and
// blocks. So the results for a factor and for its variants come from one model. A pair must also
// differ by its own noise, as one variant may be noisier than the others: of the two tests the
// larger p and the wider interval count.
func (c *Comparison) pool(m *Metric, loads []load) {
	d := newDesign(c.Groups, m, loads)
	fit, ok := d.fit()
	if !ok || fit.degrees < 1 {
		return
	}
	first, ok := d.variants[variantKey(c.Groups[0].Levels)]
	if !ok {
		return
	}
	for i := range c.Pairs {
		p := &c.Pairs[i]
		second, ok := d.variants[variantKey(c.Groups[i+1].Levels)]
		if !ok || p.Overall.Result != TooFew {
			continue
		}
		own, ok := ownTest(&c.Groups[0], &c.Groups[i+1], m, loads)
		weights := make([]float64, len(d.levels))
		weights[first], weights[second] = -1, 1
		var x Effect
		if !ok || !fit.estimate(&x, weights, m) || x.P == nil {
			continue
		}
		low, high, least := min(*x.Low, m.unscale(own.Range.Low)), max(*x.High, m.unscale(own.Range.High)), max(*x.P, own.P)
		o := &p.Overall
		o.Value, o.Low, o.High, o.P, o.Result = x.Value, &low, &high, &least, NotShown
		p.pooled = fit.degrees
	}
}

// ownTest tests b against a by Student's test of the differences within their blocks, or by Welch's
// test if they have no blocks; false if a group has fewer than two runs.
func ownTest(a, b *Group, m *Metric, loads []load) (stats.Test, bool) {
	s := sample(a, b, blocks(a, b), func(r *Run) (float64, bool) { return number(r, m, loads) })
	if len(s.differences) >= 2 {
		return stats.StudentTest(s.differences)
	}
	return stats.WelchTest(s.a, s.b)
}
