package export

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// ordered hands points on in the order of their time, over all series. The run
// directory has clients and hosts in files of their own, and reading catches up
// with one before the other. Since points are sent in order, what a receiver has
// got ends at one time, and what it has not got begins there.
type ordered struct {
	to      sink
	waiting []point
}

// point implements sink.
func (o *ordered) point(p point) {
	says := *p.series
	if says.spread != nil {
		says.spread = &spread{buckets: slices.Clone(says.spread.buckets), sum: says.spread.sum, count: says.spread.count}
	}
	p.series = &says
	o.waiting = append(o.waiting, p)
}

// release hands on what is not later than upTo.
func (o *ordered) release(upTo int64) {
	slices.SortStableFunc(o.waiting, func(a, b point) int { return cmp.Compare(a.at, b.at) })
	n := 0
	for n < len(o.waiting) && o.waiting[n].at <= upTo {
		o.to.point(o.waiting[n])
		n++
	}
	kept := copy(o.waiting, o.waiting[n:])
	clear(o.waiting[kept:])
	o.waiting = o.waiting[:kept]
}

// How long points wait for earlier ones.
const (
	lateHosts = 3 * time.Second  // of hosts that answer slowly
	noClients = 30 * time.Second // while no clients are there, as in a rest
)

// settled is the time up to which no more points are to be expected. more tells
// that there may be more to be read. It is asked once after each Poll: a file
// of which nothing came has nothing more.
func (l *ledger) settled(more bool) int64 {
	clients, hosts := l.clientsCame, l.hostsCame
	l.clientsCame, l.hostsCame = false, false
	late := lateHosts.Milliseconds()
	switch {
	case more && clients && hosts:
		return min(l.clientsAt, l.hostsAt) - late
	case more && hosts:
		return l.hostsAt - late
	case more && clients:
		return l.clientsAt - late
	}
	return max(l.clientsAt-late, l.hostsAt-noClients.Milliseconds())
}

// always is later than all points.
const always = math.MaxInt64
