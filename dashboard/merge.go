package dashboard

// halve puts neighboring rows of the same step and phase together, and those of
// hosts and data servers, so that memory and pages stay small however long a run
// is. The newest rows stay as they are.
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

// together makes row to of rows a and b: the sum of their time, the larger of
// the highest latencies, the mean of all else.
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
