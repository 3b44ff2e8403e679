package dashboard

import (
	"math"
	"slices"
	"strconv"
)

// A track is a table of figures against time that grows at its end. Figures have four bytes: seven
// digits are more than any plot shows. NaN is unknown.
type track struct {
	at   []float64   // seconds since the run's start, ascending
	cols [][]float32 // each as long as at
}

func newTrack(columns int) *track { return &track{cols: make([][]float32, columns)} }

// add returns the index of the row of the moment at, which is the last row or a new row after it;
// it returns -1 if the moment is before the last row.
func (t *track) add(at float64) int {
	n := len(t.at)
	switch {
	case n > 0 && t.at[n-1] == at:
		return n - 1
	case n > 0 && at < t.at[n-1]:
		return -1
	}
	t.insert(n, at)
	return n
}

// insert adds a row of unknown figures at i.
func (t *track) insert(i int, at float64) {
	t.at = slices.Insert(t.at, i, at)
	for c := range t.cols {
		t.cols[c] = slices.Insert(t.cols[c], i, unknown())
	}
}

// widen appends a column in which all existing rows have the figure x.
func (t *track) widen(x float32) {
	col := make([]float32, len(t.at), cap(t.at))
	for i := range col {
		col[i] = x
	}
	t.cols = append(t.cols, col)
}

// halve combines neighbors into their mean, from the known figures only. The moment is the moment
// of the first row.
func (t *track) halve() {
	n := len(t.at) / 2
	for i := range n {
		t.at[i] = t.at[2*i]
		for _, col := range t.cols {
			col[i] = mean(col[2*i], col[2*i+1], 1, 1)
		}
	}
	rest := len(t.at) % 2
	if rest == 1 {
		t.at[n] = t.at[2*n]
		for _, col := range t.cols {
			col[n] = col[2*n]
		}
	}
	t.at = t.at[:n+rest]
	for c := range t.cols {
		t.cols[c] = t.cols[c][:n+rest]
	}
}

func mean(a, b, weightA, weightB float32) float32 {
	switch {
	case isUnknown(a):
		return b
	case isUnknown(b) || weightA+weightB <= 0:
		return a
	}
	return (a*weightA + b*weightB) / (weightA + weightB)
}

func unknown() float32         { return float32(math.NaN()) }
func isUnknown(x float32) bool { return x != x }

// floats are figures as JSON: null if they are unknown.
type floats []float32

// MarshalJSON implements json.Marshaler.
func (f floats) MarshalJSON() ([]byte, error) {
	out := make([]byte, 0, 2+8*len(f))
	out = append(out, '[')
	for i, x := range f {
		if i > 0 {
			out = append(out, ',')
		}
		if isUnknown(x) || math.IsInf(float64(x), 0) {
			out = append(out, "null"...)
			continue
		}
		out = strconv.AppendFloat(out, float64(x), 'g', -1, 32)
	}
	return append(out, ']'), nil
}

// moments are times in seconds as JSON, to the millisecond.
type moments []float64

// MarshalJSON implements json.Marshaler.
func (m moments) MarshalJSON() ([]byte, error) {
	out := make([]byte, 0, 2+8*len(m))
	out = append(out, '[')
	for i, x := range m {
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendFloat(out, math.Round(x*1e3)/1e3, 'f', -1, 64)
	}
	return append(out, ']'), nil
}

// halve combines neighboring rows of the same step and phase, and also rows of hosts and data
// servers, so that memory and pages stay small for runs of any duration. The newest rows stay
// unchanged.
func (h *history) halve() {
	t, to := h.rows, 0
	for i := 0; i < len(t.at); to++ {
		next := i + 1
		if next < len(t.at)-openRows && t.cols[colStep][next] == t.cols[colStep][i] && t.cols[colPhase][next] == t.cols[colPhase][i] {
			h.together(to, i, next)
			i += 2
			continue
		}
		t.at[to], h.rowSeq[to] = t.at[i], h.rowSeq[i]
		for _, col := range t.cols {
			col[to] = col[i]
		}
		for _, o := range h.open {
			if o.row == i {
				o.row = to
			}
		}
		i++
	}
	t.at, h.rowSeq = t.at[:to], h.rowSeq[:to]
	for c := range t.cols {
		t.cols[c] = t.cols[c][:to]
	}
	for _, s := range h.stores {
		s.track.halve()
	}
	for _, x := range h.hosts {
		x.track.halve()
	}
	h.sides.halve()
	h.merged++
	h.turn()
}

// together combines rows a and b into row to: the sum of their times, the higher of the highest
// latencies, the mean of all other values.
func (h *history) together(to, a, b int) {
	t := h.rows
	wa, wb := t.cols[colSeconds][a], t.cols[colSeconds][b]
	t.at[to], h.rowSeq[to] = t.at[a], max(h.rowSeq[a], h.rowSeq[b])
	for c, col := range t.cols {
		switch c {
		case colSeconds:
			col[to] = wa + wb
		case colStep, colPhase:
			col[to] = col[a]
		case colP99:
			if isUnknown(col[a]) || col[b] > col[a] {
				col[to] = col[b]
			} else {
				col[to] = col[a]
			}
		default:
			col[to] = mean(col[a], col[b], wa, wb)
		}
	}
}
