package analysis

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/measure"
	"weir/scenario"
	"weir/storage"
)

// A place is what at most one interval of a second is of.
type place struct {
	kind   storage.Kind
	server string
}

// A trace is what the last interval of a place counted, and in which second.
type trace struct {
	second             int
	moved, begun, done int64
}

// repeats tells whether iv stands in the file a second time, as after a copy
// that went wrong: the same second, place and counts, none of them zero.
func (d *data) repeats(second int, iv *measure.Interval) bool {
	p, t := place{iv.Kind, iv.Server}, trace{second, iv.Moved, iv.Begun, iv.Done}
	if d.traces == nil {
		d.traces = map[place]trace{}
	}
	again := d.traces[p] == t && iv.Moved+iv.Begun+iv.Done > 0
	d.traces[p] = t
	return again
}

// tellDamage tells what no run writes.
func (d *data) tellDamage(f *Findings, c *Check) {
	if d.twice > 0 {
		c.tell("%d intervals stand there twice and count twice", d.twice)
		c.worsen(Warn, "their bytes and operations count twice")
	}
	empty, moved := 0, int64(0)
	for i := range d.seconds {
		if s := &d.seconds[i]; s.seconds <= 0 && s.moved+s.done > 0 {
			empty, moved = empty+1, moved+s.moved
		}
	}
	if empty > 0 {
		c.tell("%d intervals have no length but moved %d bytes", empty, moved)
		c.worsen(Warn, "their bytes count without their time")
	}
	var unplanned []string
	for i := range f.Curve {
		step := f.Curve[i].Step
		if !slices.ContainsFunc(d.plan.Steps, func(p scenario.Step) bool { return p.Number == step }) && d.announced(step) == nil {
			unplanned = append(unplanned, strconv.Itoa(step))
		}
	}
	if len(unplanned) > 0 {
		c.tell("steps that no plan lists were held: %s", strings.Join(head(unplanned, 4), ", "))
		c.worsen(Warn, "their load is not known, only their clients")
	}
}

// Bounds from which a host that was watched counts as lost: so many seconds,
// and such a part of the run.
const (
	leastSilent = 10.0
	partSilent  = 0.05
)

// silent returns the host whose last sample lies the longest before the end of
// the last interval, and how many seconds; 0 if none was lost.
func (d *data) silent() (host string, seconds float64) {
	if len(d.seconds) == 0 {
		return "", 0
	}
	var end time.Time
	for i := range d.seconds {
		if e := d.seconds[i].end(); e.After(end) {
			end = e
		}
	}
	last := end.Sub(d.begin()).Seconds()
	for _, h := range d.watched.hostSeries() { // by name, so that the same one is named each time
		if len(h.Points) > 0 {
			if gone := last - h.last; gone > max(seconds, leastSilent, partSilent*last) {
				host, seconds = h.Host, gone
			}
		}
	}
	return host, seconds
}
