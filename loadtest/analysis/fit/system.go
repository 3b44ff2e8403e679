package fit

import "math"

// A system is the normal equations of up to three parameters.
type system struct {
	m     [3][3]float64
	right [3]float64
}

// add adds an observation: row times the parameters should be value.
func (s *system) add(w float64, row [3]float64, value float64) {
	for i := range row {
		wr := w * row[i]
		for j := range row {
			s.m[i][j] += wr * row[j]
		}
		s.right[i] += wr * value
	}
}

// solve solves for the free parameters, the others being 0, by Cholesky's method on the system scaled to a diagonal
// of 1+damping; ok is false if the observations do not tell the parameters apart.
func (s *system) solve(damping float64, free [3]bool) (p [3]float64, ok bool) {
	var at [3]int
	n := 0
	for i, f := range free {
		if f && s.m[i][i] > 0 {
			at[n] = i
			n++
		}
	}
	var l [3][3]float64
	var scale, z [3]float64
	for a := range n {
		scale[a] = 1 / math.Sqrt(s.m[at[a]][at[a]])
	}
	for a := range n {
		for b := 0; b <= a; b++ {
			v := s.m[at[a]][at[b]] * scale[a] * scale[b]
			if a == b {
				v = 1 + damping
			}
			for k := range b {
				v -= l[a][k] * l[b][k]
			}
			if a != b {
				l[a][b] = v / l[b][b]
				continue
			}
			if !(v > 1e-15) {
				return p, false
			}
			l[a][a] = math.Sqrt(v)
		}
	}
	for a := range n {
		z[a] = s.right[at[a]] * scale[a]
		for k := range a {
			z[a] -= l[a][k] * z[k]
		}
		z[a] /= l[a][a]
	}
	for a := n - 1; a >= 0; a-- {
		for k := a + 1; k < n; k++ {
			z[a] -= l[k][a] * z[k]
		}
		z[a] /= l[a][a]
		p[at[a]] = z[a] * scale[a]
	}
	return p, n > 0
}
