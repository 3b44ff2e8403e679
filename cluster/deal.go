package cluster

import (
	"weir/link"
	"weir/scenario"
)

// deal says how many of n clients each of the workers has, as evenly as their
// room allows: those of each link's site get that link's part. If there is not
// enough room the sum is less.
func deal(n int, workers []*remote, links scenario.Links) []int {
	out := make([]int, len(workers))
	if len(links) == 0 {
		pour(n, workers, out, func(*remote) bool { return true })
		return out
	}
	for site, mine := range link.Deal(n, links) {
		pour(mine, workers, out, func(w *remote) bool { return w.site == site })
	}
	return out
}

// pour deals n clients to the workers that are meant, in rounds: who is full
// leaves, and the others share what is left.
func pour(n int, workers []*remote, out []int, meant func(*remote) bool) {
	for n > 0 {
		var open []int
		for i, w := range workers {
			if meant(w) && (w.room <= 0 || out[i] < w.room) {
				open = append(open, i)
			}
		}
		if len(open) == 0 {
			return
		}
		each, more := n/len(open), n%len(open)
		for place, i := range open {
			want := each
			if place < more {
				want++
			}
			if room := workers[i].room; room > 0 {
				want = min(want, room-out[i])
			}
			out[i] += want
			n -= want
		}
	}
}
