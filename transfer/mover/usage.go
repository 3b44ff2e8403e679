package mover

import "time"

// A meter is what the process had used, and moved, at some time.
type meter struct {
	cpu   time.Duration
	bytes int64
}

func (m *Mover) meter() meter { return meter{cpu: cpu(), bytes: m.moved.Load()} }

// share returns the part of the CPU seconds since a that belongs to bytes of an
// attempt: all that were moved meanwhile share the time by their bytes. Threads of
// Go serve many attempts, so nothing finer is known.
func (a meter) share(b meter, bytes int64) float64 {
	all := max(b.bytes-a.bytes, bytes)
	if all <= 0 {
		return 0
	}
	return (b.cpu - a.cpu).Seconds() * float64(bytes) / float64(all)
}
