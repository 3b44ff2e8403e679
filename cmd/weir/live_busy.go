package main

import (
	"fmt"
	"slices"
	"time"

	"weir/measure"
	"weir/monitor"
)

// The sides whose processes are watched.
const (
	serverSide = iota
	clientSide
	sides
)

// busy is how much each side's processes do while a step is held. A sample
// counts with the share of it that the hold covers, as in the analysis: of
// short steps most samples are of the ramp and of the step before, too. What is
// not known yet when the step's line is told, the last second of its hold at
// most, is left out.
type busy struct {
	held  [][2]time.Time // stretches that are held, of this step
	told  time.Time      // up to here it is known what was held
	looks []glance       // samples that reach further
	sums  [sides]cores   // over the hold
	last  [sides]cores   // of the step, the newest sample of each host
}

// cores are, for each host, cores times seconds used and there.
type cores map[string][2]float64

// A glance is what a sample says of both sides.
type glance struct {
	host     string
	from, to time.Time
	there    float64        // cores times seconds
	used     [sides]float64 // the same; below 0 where no process is watched
}

// interval takes what the clients saw, second by second.
func (b *busy) interval(v *measure.Interval) {
	end := v.Start.Add(time.Duration(v.Seconds * float64(time.Second)))
	if n := len(b.held); v.Phase == measure.Hold {
		if n > 0 && !v.Start.After(b.held[n-1][1].Add(50*time.Millisecond)) {
			b.held[n-1][1] = end
		} else {
			b.held = append(b.held, [2]time.Time{v.Start, end})
		}
	}
	if end.After(b.told) {
		b.told = end
		b.count()
	}
}

// sample takes what a host went through.
func (b *busy) sample(s *monitor.Sample) {
	g := glance{host: s.Host, from: s.Time.Add(-time.Duration(s.Seconds * float64(time.Second))), to: s.Time,
		there: s.Seconds * float64(s.Cores), used: [sides]float64{-1, -1}}
	for i := range s.Procs {
		p, side := &s.Procs[i], clientSide
		if p.Role == "server" {
			side = serverSide
		}
		g.used[side] = max(g.used[side], 0) + p.User + p.System
	}
	for side := range g.used {
		if g.used[side] >= 0 {
			b.last[side].put(g.host, [2]float64{g.used[side], g.there})
		}
	}
	b.looks = append(b.looks, g)
	b.count()
}

// count adds the samples of which it is known how much of them was held.
func (b *busy) count() {
	b.looks = slices.DeleteFunc(b.looks, func(g glance) bool {
		if g.to.After(b.told) {
			return false
		}
		share := 0.0
		for _, h := range b.held {
			from, to := later(g.from, h[0]), g.to
			if h[1].Before(to) {
				to = h[1]
			}
			share += max(to.Sub(from).Seconds(), 0)
		}
		share /= max(g.to.Sub(g.from).Seconds(), 1e-9)
		for side, used := range g.used {
			if share > 0 && used >= 0 {
				sum := b.sums[side][g.host]
				b.sums[side].put(g.host, [2]float64{sum[0] + share*used, sum[1] + share*g.there})
			}
		}
		return true
	})
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// next forgets the step.
func (b *busy) next() { b.held, b.sums, b.last = nil, [sides]cores{}, [sides]cores{} }

// share is that of the busiest host's cores, below 0 if it is not known. While
// nothing is known of the hold it is that of the last second.
func (b *busy) share(side int) float64 {
	from := b.sums[side]
	if len(from) == 0 {
		from = b.last[side]
	}
	most := -1.0
	for _, h := range from {
		if h[1] > 0 {
			most = max(most, h[0]/h[1])
		}
	}
	return most
}

// text is the share for people.
func (b *busy) text(side int) string {
	share := b.share(side)
	if share < 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100*share)
}

// put makes the map where there is none.
func (c *cores) put(host string, x [2]float64) {
	if *c == nil {
		*c = cores{}
	}
	(*c)[host] = x
}
