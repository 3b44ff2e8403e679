package monitor

import (
	"slices"
	"strings"
)

// Entries of [Sample.LeftOut]; the names of devices follow the prefix.
const (
	LeftOutCPU      = "CPU"
	LeftOutWaits    = "CPU pressure"
	LeftOutQuota    = "CPU quota"
	LeftOutMemory   = "memory"
	LeftOutTCP      = "TCP"
	LeftOutDisk     = "disk "
	LeftOutNet      = "interface "
	LeftOutProcess  = "process"
	LeftOutService  = "statistics of the server"
	LeftOutBalancer = "statistics of the balancer"
)

// The largest increases of counters in a second: an order of magnitude above the fastest devices.
const (
	mostBytes  = 1e12
	mostEvents = 1e10 // packets, operations, segments
	mostQueue  = 1e6  // requests in service or waiting
	mostTime   = 2    // seconds of one core
	mostBusy   = 30   // seconds of a disk: one long request may add its time when it ends
	mostCPU    = 1e5  // seconds of a process, which has as many cores

	mostLoad        = 1e7
	mostMemory      = 1 << 50
	mostConnections = 1 << 30
	mostSpeed       = 1e15 // bits per second

	speedMargin = 1.1 // of the speed that a device names
)

// A past has the values of the counters of one thing before they fell, in the order in which they
// are read; 0 for a counter that did not fall. A counter that fell was restarted, or a reading of
// it was wrong: if it jumps back, that is not an increase.
type past []float64

// rises judges the counters of one thing, such as an interface, between two looks.
type rises struct {
	seconds float64
	broken  bool // a counter is not a number: all counters are skipped
	wrong   bool // a counter fell, or rose by more than it can
	alive   bool // a counter is not 0
	i       int
	before  past
	after   past
}

// rises begins to judge counters whose past is p.
func (p past) rises(seconds float64, broken bool) rises {
	return rises{seconds: seconds, broken: broken, before: p}
}

// rose returns the increase of the next counter. most is its largest plausible increase in a
// second.
func rose[N int64 | float64](r *rises, now, before N, most float64) N {
	i, top := r.i, 0.0
	if r.i++; i < len(r.before) {
		top = r.before[i]
	}
	r.alive = r.alive || now != 0
	switch {
	case r.broken:
	case now < before:
		top, r.wrong = float64(before), true
	case top > 0 && float64(now) >= top:
		r.wrong = r.wrong || float64(before) < top/2
		top = 0
	case top > 0 && now == 0 && most == mostBytes:
		r.wrong = true // not there yet
	}
	if top > 0 {
		for len(r.after) <= i {
			r.after = append(r.after, 0)
		}
		r.after[i] = top
	}
	rise := max(0, now-before)
	r.wrong = r.wrong || r.broken || float64(rise) > min(most*(r.seconds+1), mostCounted)
	return rise
}

// past returns the values that the next sample needs.
func (r *rises) past() past { return r.after }

// bad reports whether the counters cannot be right. Counters that are all 0 after they fell are not there yet.
func (r *rises) bad() bool { return r.wrong || len(r.after) > 0 && !r.alive }

// leftOut reports whether the counters are left out of s, and notes that.
func (r *rises) leftOut(s *Sample, what string) bool {
	if r.bad() && !slices.Contains(s.LeftOut, what) {
		s.LeftOut = append(s.LeftOut, what)
	}
	return r.bad()
}

// Nothing reports whether all fields of s are left out.
func (s *Sample) Nothing() bool {
	return slices.Equal(s.LeftOut, []string{LeftOutService}) || slices.Equal(s.LeftOut, []string{LeftOutBalancer})
}

// LeftOutDisks returns the names of the disks that s leaves out.
func (s *Sample) LeftOutDisks() (names []string) {
	for _, what := range s.LeftOut {
		if name, ok := strings.CutPrefix(what, LeftOutDisk); ok {
			names = append(names, name)
		}
	}
	return names
}
