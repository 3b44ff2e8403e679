package compare

import (
	"maps"
	"math"

	"gonum.org/v1/gonum/mat"

	"weir/internal/stats"
)

// A design describes the runs of a campaign as a linear model: y = variant + block.
type design struct {
	y        []float64
	variant  []int // of each run
	block    []int // of each run, from 0
	levels   []map[string]string
	blocks   int
	variants map[string]int // by levels
}

func newDesign(groups []Group, m *Metric, loads []load) *design {
	d := &design{variants: map[string]int{}}
	blocks := map[int]int{}
	for _, g := range groups {
		for _, r := range g.Runs {
			v, ok := number(r, m, loads)
			if !ok || r.Levels == nil {
				continue
			}
			key := variantKey(r.Levels)
			if _, ok := d.variants[key]; !ok {
				d.variants[key] = len(d.levels)
				d.levels = append(d.levels, r.Levels)
			}
			if _, ok := blocks[r.Block]; !ok {
				blocks[r.Block] = len(blocks)
			}
			d.y = append(d.y, v)
			d.variant = append(d.variant, d.variants[key])
			d.block = append(d.block, blocks[r.Block])
		}
	}
	d.blocks = len(blocks)
	return d
}

// contrast returns the weights of the variants that make the effect of f's level, or its
// interaction with g's other; nil if no variants have these levels.
func (d *design) contrast(f Factor, level string, g *Factor, other string) []float64 {
	weights := make([]float64, len(d.levels))
	found := 0.0
	for i, levels := range d.levels {
		if levels[f.Key] != level || g != nil && levels[g.Key] != other {
			continue
		}
		part := map[int]float64{i: 1}
		base, ok := d.with(levels, f.Key, f.Levels[0])
		part[base] = -1
		if g != nil && ok {
			corner, all := d.with(levels, g.Key, g.Levels[0])
			part[corner] = -1
			last, both := d.with(d.levels[base], g.Key, g.Levels[0])
			part[last] = 1
			ok = all && both
		}
		if !ok {
			continue
		}
		found++
		for v, w := range part {
			weights[v] += w
		}
	}
	if found == 0 {
		return nil
	}
	for i := range weights {
		weights[i] /= found
	}
	return weights
}

// with returns the variant that differs from levels in one key only.
func (d *design) with(levels map[string]string, key, level string) (int, bool) {
	changed := maps.Clone(levels)
	changed[key] = level
	v, ok := d.variants[variantKey(changed)]
	return v, ok
}

// A linearFit is the least squares solution of a design.
type linearFit struct {
	coefficients *mat.VecDense // variants, then all blocks except the first
	inverse      *mat.Dense    // pseudo-inverse of X'X
	row          *mat.Dense    // projection on the row space of X: the estimable contrasts
	degrees      int
	deviation    float64 // of the noise
}

// fit solves the normal equations by their eigenvalues, so that a campaign that was broken off at
// any time still gives all effects that its runs determine. ok is false without runs.
func (d *design) fit() (*linearFit, bool) {
	n, p := len(d.y), len(d.levels)+max(d.blocks-1, 0)
	if n == 0 {
		return nil, false
	}
	x := mat.NewDense(n, p, nil)
	for i := range d.y {
		x.Set(i, d.variant[i], 1)
		if d.block[i] > 0 {
			x.Set(i, len(d.levels)+d.block[i]-1, 1)
		}
	}
	var normal mat.SymDense
	normal.SymOuterK(1, x.T())
	var eigen mat.EigenSym
	if !eigen.Factorize(&normal, true) {
		return nil, false
	}
	f := &linearFit{coefficients: mat.NewVecDense(p, nil), inverse: mat.NewDense(p, p, nil), row: mat.NewDense(p, p, nil)}
	rank := f.invert(&eigen)
	right := mat.NewVecDense(p, nil)
	y := mat.NewVecDense(n, d.y)
	right.MulVec(x.T(), y)
	f.coefficients.MulVec(f.inverse, right)
	rest := mat.NewVecDense(n, nil)
	rest.MulVec(x, f.coefficients)
	rest.SubVec(y, rest)
	if f.degrees = n - rank; f.degrees > 0 {
		f.deviation = math.Sqrt(mat.Dot(rest, rest) / float64(f.degrees))
	}
	if f.deviation <= 1e-10*mat.Norm(y, math.Inf(1)) {
		f.deviation = 0 // rounding errors are not noise
	}
	return f, true
}

// invert computes the pseudo-inverse and the projection, and returns the rank.
func (f *linearFit) invert(eigen *mat.EigenSym) (rank int) {
	values := eigen.Values(nil)
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	for k, value := range values {
		if value <= 1e-9*values[len(values)-1] {
			continue
		}
		rank++
		v := vectors.ColView(k)
		var outer mat.Dense
		outer.Outer(1, v, v)
		f.row.Add(f.row, &outer)
		outer.Scale(1/value, &outer)
		f.inverse.Add(f.inverse, &outer)
	}
	return rank
}

// estimate fills in x by a contrast of the variants; it returns false if the runs do not determine
// the contrast.
func (f *linearFit) estimate(x *Effect, weights []float64, m *Metric) bool {
	if weights == nil {
		return false
	}
	p := f.coefficients.Len()
	l := mat.NewVecDense(p, nil)
	for i, w := range weights {
		l.SetVec(i, w)
	}
	seen := mat.NewVecDense(p, nil)
	seen.MulVec(f.row, l)
	seen.SubVec(seen, l)
	if mat.Norm(seen, 2) > 1e-6 {
		return false // variants that share no block with others
	}
	value := mat.Dot(l, f.coefficients)
	x.Value, x.Kind, x.Result = m.unscale(value), Ratio, TooFew
	if m.Plain {
		x.Kind = Difference
	}
	if f.degrees < 1 {
		return true
	}
	spread := mat.NewVecDense(p, nil)
	spread.MulVec(f.inverse, l)
	deviation := f.deviation * math.Sqrt(max(0, mat.Dot(l, spread)))
	half := stats.Student(float64(f.degrees)) * deviation
	low, high, sure := m.unscale(value-half), m.unscale(value+half), 0.0
	switch {
	case deviation > 0:
		sure = stats.StudentP(value/deviation, float64(f.degrees))
	case math.Abs(value) < 1e-12: // all runs are the same
		sure = 1
	}
	x.Low, x.High, x.P = &low, &high, &sure
	return true
}
