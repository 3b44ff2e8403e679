package export

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	"weir/loadtest/analysis"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/monitor"
)

// A ledger holds the values of a run's metrics. It is filled line by line, in the order of a
// Follower. A second of the clients is emitted when the next second begins, because only then all
// its lines are known: an active run and a finished run give the same points.
type ledger struct {
	t                      *tables
	bounds                 []float64
	base                   []Label
	sink                   sink  // nil: points are not used
	since                  int64 // earlier points are left out
	now                    int64 // time of the latest point
	clientsAt, hostsAt     int64 // times up to which clients and hosts were emitted
	linksAt                int64 // time up to which links were emitted; 0: there are none
	clientsCame, hostsCame bool  // since the last call of complete
	all                    []*series

	about moment
	info  *entity[moment]
	spans map[[2]string]*span // by kind of operation and population

	planned map[int]measure.Event // by step
	coming  []measure.Event       // later than the open second
	begun   bool                  // a second is open
	dirty   []*entity[measure.Interval]
	timed   []*span
}

// A span has the durations of one kind of operation of one population.
type span struct {
	*entity[measure.Sum]
	second measure.Sum
}

// newLedger returns an empty ledger for run. Points before since are left out.
func newLedger(run *results.Run, to sink, since time.Time) *ledger {
	l := &ledger{
		t: newTables(), bounds: bounds(), sink: to, base: []Label{{"run", run.About.Run}, {"scenario", run.Plan.Name}},
		spans: map[[2]string]*span{}, planned: map[int]measure.Event{},
	}
	if !since.IsZero() {
		l.since = since.UnixMilli()
	}
	l.about.start = float64(run.About.Start.UnixMilli()) / 1000
	l.info = l.t.info.of(l, run.Plan.Target, string(run.Plan.Work.Kind), string(run.Plan.Model), string(run.Plan.Driver), run.About.Weir)
	return l
}

// handlers returns functions that fill the ledger.
func (l *ledger) handlers() results.Takers {
	return results.Takers{Interval: l.interval, Sample: l.sample, Event: l.event, Link: l.link}
}

// event stores e until its second is emitted.
func (l *ledger) event(e *measure.Event) {
	if e.Kind == measure.EventStep {
		l.planned[e.Step] = *e
	}
	l.coming = append(l.coming, measure.Event{Time: e.Time, Kind: e.Kind})
}

// countEvents counts the events up to end, or all events if end is zero.
func (l *ledger) countEvents(end time.Time) {
	events := l.t.events.of(l)
	l.coming = slices.DeleteFunc(l.coming, func(e measure.Event) bool {
		if !end.IsZero() && e.Time.After(end) {
			return false
		}
		events.add(l, &e)
		if end.IsZero() {
			at := max(l.now, e.Time.UnixMilli())
			events.emit(l, at-1, at)
		}
		return true
	})
}

// interval adds v to its second. If v begins a new second, it emits the previous second first.
func (l *ledger) interval(v *measure.Interval) {
	s := &l.about.second
	if l.begun && (!v.Start.Equal(s.Start) || v.Step != s.Step || v.Phase != s.Phase) {
		l.flush()
	}
	l.begun = true
	s.Start, s.Seconds, s.Step, s.Phase, s.Clients, s.Running = v.Start, v.Seconds, v.Step, v.Phase, v.Clients, v.Running
	l.about.jobs = l.about.jobs || v.Any()
	kind := v.Kind.String()
	e := l.t.clients.of(l, kind, v.Server, v.Population)
	e.add(l, v)
	if !e.dirty {
		e.dirty = true
		l.dirty = append(l.dirty, e)
	}
	id := [2]string{kind, v.Population}
	d := l.spans[id]
	if d == nil {
		d = &span{entity: l.t.spans.of(l, kind, v.Population)}
		l.spans[id] = d
	}
	d.second.Add(&v.Sum)
	if !d.dirty {
		d.dirty = true
		l.timed = append(l.timed, d)
	}
}

// flush emits the open second.
func (l *ledger) flush() {
	if !l.begun {
		return
	}
	l.begun = false
	m := &l.about
	over := m.second.Start.Add(time.Duration(m.second.Seconds * 1e9))
	begin, end := m.second.Start.UnixMilli(), over.UnixMilli()
	m.planned = l.planned[m.second.Step]
	l.countEvents(over)
	l.info.update(l, m, begin, end)
	l.t.run.of(l).update(l, m, begin, end)
	l.t.events.of(l).emit(l, begin, end)
	for _, e := range l.dirty {
		e.emit(l, begin, end)
		e.dirty = false
	}
	for _, d := range l.timed {
		d.update(l, &d.second, begin, end)
		d.second.Reset()
		d.dirty = false
	}
	l.dirty, l.timed = l.dirty[:0], l.timed[:0]
	l.clientsAt, l.clientsCame = max(l.clientsAt, end), true
}

// sample adds and emits a sample of a host.
func (l *ledger) sample(v *monitor.Sample) {
	end := v.Time.UnixMilli()
	begin := v.Time.Add(-time.Duration(v.Seconds * 1e9)).UnixMilli()
	l.hostsAt, l.hostsCame = max(l.hostsAt, end), true
	switch {
	case v.Balancer != nil:
		for i := range v.Balancer.Servers {
			b := &v.Balancer.Servers[i]
			l.t.balanced.of(l, b.Service, b.Name).update(l, b, begin, end)
		}
		return
	case v.Transfers != nil:
		l.t.transfers.of(l, v.Host).update(l, v.Transfers, begin, end)
		return
	}
	l.t.host.of(l, v.Host, string(v.Role)).update(l, v, begin, end)
	for i := range v.Disks {
		d := &diskSecond{v.Disks[i], v.Seconds}
		l.t.disk.of(l, v.Host, string(v.Role), d.Name).update(l, d, begin, end)
	}
	for i := range v.Nets {
		l.t.net.of(l, v.Host, string(v.Role), v.Nets[i].Name).update(l, &v.Nets[i], begin, end)
	}
	for i := range v.Procs {
		l.t.process.of(l, v.Host, string(v.Procs[i].Role), v.Procs[i].Name).update(l, &v.Procs[i], begin, end)
	}
	if s := v.Service; s != nil {
		l.t.service.of(l, v.Host, s.Kind, s.Program).update(l, s, begin, end)
	}
}

// link adds and emits an interval of a link.
func (l *ledger) link(v *results.LinkInterval) {
	begin, end := v.Start.UnixMilli(), v.Start.Add(time.Duration(v.Seconds*1e9)).UnixMilli()
	l.linksAt = max(l.linksAt, end)
	l.t.link.of(l, v.Source, v.Dest).update(l, v, begin, end)
}

// findings emits the findings of the analysis, at the time of the last point.
func (l *ledger) findings(f *analysis.Findings) {
	at := l.now
	for i := range f.Curve {
		s := &f.Curve[i]
		l.t.curve.of(l, strconv.Itoa(s.Step), strconv.Itoa(s.Clients)).update(l, s, at, at)
	}
	l.t.found.of(l).update(l, f, at, at)
	for _, e := range l.t.limit.entities {
		e.expire()
	}
	for i := range f.Bottleneck {
		b := &f.Bottleneck[i]
		l.t.limit.of(l, b.Resource, b.Host, b.Side).add(l, b)
	}
	for _, e := range l.t.limit.entities {
		e.emit(l, at, at)
	}
	for i := range f.Thresholds {
		j := &f.Thresholds[i]
		l.t.judgment.of(l, j.Threshold).update(l, j, at, at)
	}
}

// end emits the last second, all events and the findings f, which may be nil, and ends all series.
func (l *ledger) end(f *analysis.Findings) {
	l.flush()
	l.countEvents(time.Time{})
	if f != nil {
		l.findings(f)
	}
	at := l.now + 1000
	for _, s := range l.all {
		if s.emitted {
			l.put(s, at, true)
		}
	}
}

// ordered passes points on in the order of their time, over all series. Clients and hosts are in
// different files of the run directory, which are read one after the other. Since points are sent
// in order, a receiver has all points up to some time and no later points.
type ordered struct {
	to      sink
	waiting []point
}

// point implements sink.
func (o *ordered) point(p point) {
	now := *p.series
	if b := now.buckets; b != nil {
		now.buckets = &buckets{counts: slices.Clone(b.counts), sum: b.sum, count: b.count}
	}
	p.series = &now
	o.waiting = append(o.waiting, p)
}

// release passes on all points up to a time.
func (o *ordered) release(upTo int64) {
	slices.SortStableFunc(o.waiting, func(a, b point) int { return cmp.Compare(a.at, b.at) })
	n := 0
	for n < len(o.waiting) && o.waiting[n].at <= upTo {
		o.to.point(o.waiting[n])
		n++
	}
	o.waiting = slices.Delete(o.waiting, 0, n)
}

// Limits of the wait for earlier points.
const (
	lateHosts = 3 * time.Second  // for hosts that respond slowly
	noClients = 30 * time.Second // while there are no clients, as in a cool-down
)

// complete returns the time up to which no more points are expected. more reports whether there may
// be more to read. It is called once after each Poll: a file without new lines has been read
// completely.
func (l *ledger) complete(more bool) int64 {
	upTo := l.completeBut(more)
	if l.linksAt > 0 { // lines of links are up to ten seconds long
		upTo = min(upTo, max(l.linksAt, upTo-noClients.Milliseconds()))
	}
	return upTo
}

// completeBut works like complete, without the links.
func (l *ledger) completeBut(more bool) int64 {
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
