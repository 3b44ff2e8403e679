package record

import (
	"slices"
	"time"
)

// shares divide the bytes that a site's agent moved among the copies that it ran at each moment.
// Values between two moments are linear.
type shares struct {
	at      []time.Time // moments, ascending
	bytes   []float64   // of one copy that ran from the first moment on
	covered []float64   // seconds with samples until then
}

// divide computes the shares of the copies whose bytes the site's agent moved.
func (s *site) divide(all []*taken) {
	copies := map[time.Time]int{} // changes of the number of copies
	for _, t := range all {
		for i := range t.list {
			if a := &t.list[i]; a.Moved > 0 && a.End.After(a.Begin) && !a.Begin.IsZero() && moverName(a) == s.name {
				copies[a.Begin.Round(0)]++
				copies[a.End.Round(0)]--
			}
		}
	}
	if len(copies) == 0 {
		return
	}
	var at []time.Time
	for moment := range copies {
		at = append(at, moment)
	}
	for i := range s.samples {
		if x := &s.samples[i]; x.Seconds <= fine {
			at = append(at, x.Time.Add(-seconds(x.Seconds)).Round(0), x.Time.Round(0))
		}
	}
	slices.SortFunc(at, time.Time.Compare)
	at = slices.CompactFunc(at, time.Time.Equal)
	d := &shares{at: at, bytes: make([]float64, len(at)), covered: make([]float64, len(at))}
	running, next := 0, 0
	for k := range at[:len(at)-1] {
		running += copies[at[k]]
		for next < len(s.samples) && !s.samples[next].Time.After(at[k]) {
			next++
		}
		d.bytes[k+1], d.covered[k+1] = d.bytes[k], d.covered[k]
		if next == len(s.samples) {
			continue
		}
		x := &s.samples[next]
		if x.Seconds > fine || x.Time.Add(-seconds(x.Seconds)).After(at[k]) {
			continue
		}
		length := at[k+1].Sub(at[k]).Seconds()
		d.covered[k+1] += length
		if running > 0 {
			d.bytes[k+1] += x.MovedBytes * length / float64(running)
		}
	}
	s.shares = d
}

// between returns the bytes of one copy between two moments, 0 if the samples do not cover them.
func (d *shares) between(from, to time.Time) float64 {
	if d == nil || !to.After(from) {
		return 0
	}
	if covered := d.value(d.covered, to) - d.value(d.covered, from); covered < to.Sub(from).Seconds()*9/10 {
		return 0
	}
	return d.value(d.bytes, to) - d.value(d.bytes, from)
}

// value returns one of the sums at a moment.
func (d *shares) value(sums []float64, at time.Time) float64 {
	i, found := slices.BinarySearchFunc(d.at, at, time.Time.Compare)
	switch {
	case found:
		return sums[i]
	case i == 0:
		return 0
	case i == len(d.at):
		return sums[i-1]
	}
	part := at.Sub(d.at[i-1]).Seconds() / d.at[i].Sub(d.at[i-1]).Seconds()
	return sums[i-1] + part*(sums[i]-sums[i-1])
}
