package export

import (
	"time"

	"weir/measure"
	"weir/monitor"
)

// event keeps e until its second is told.
func (l *ledger) event(e *measure.Event) {
	if e.Kind == measure.EventStep {
		l.planned[e.Step] = *e
	}
	l.coming = append(l.coming, measure.Event{Time: e.Time, Kind: e.Kind})
}

// happen counts the events up to end, of all times if it is zero.
func (l *ledger) happen(end time.Time) {
	kept := l.coming[:0]
	for i := range l.coming {
		e := &l.coming[i]
		if !end.IsZero() && e.Time.After(end) {
			kept = append(kept, *e)
			continue
		}
		l.t.events.of(l).take(l, e)
		if end.IsZero() {
			at := max(l.now, e.Time.UnixMilli())
			l.t.events.of(l).tell(l, at-1, at)
		}
	}
	l.coming = kept
}

// interval adds v to its second, and tells the one before it if v begins another.
func (l *ledger) interval(v *measure.Interval) {
	s := &l.about.second
	if l.begun && (!v.Start.Equal(s.Start) || v.Step != s.Step || v.Phase != s.Phase) {
		l.flush()
	}
	l.begun = true
	s.Start, s.Seconds, s.Step, s.Phase, s.Clients, s.Running = v.Start, v.Seconds, v.Step, v.Phase, v.Clients, v.Running
	l.about.jobs = l.about.jobs || v.Any()
	kind := v.Kind.String()
	e := l.t.clients.of(l, kind, v.Server)
	e.take(l, v)
	if !e.dirty {
		e.dirty = true
		l.dirty = append(l.dirty, e)
	}
	d := l.spans[kind]
	if d == nil {
		d = &span{entity: l.t.spans.of(l, kind)}
		l.spans[kind] = d
	}
	d.second.Add(&v.Sum)
	if !d.dirty {
		d.dirty = true
		l.timed = append(l.timed, d)
	}
}

// flush tells the second that is open.
func (l *ledger) flush() {
	if !l.begun {
		return
	}
	l.begun = false
	m := &l.about
	over := m.second.Start.Add(time.Duration(m.second.Seconds * 1e9))
	begin, end := m.second.Start.UnixMilli(), over.UnixMilli()
	m.planned = l.planned[m.second.Step]
	l.happen(over)
	l.info.say(l, m, begin, end)
	l.t.run.of(l).say(l, m, begin, end)
	l.t.events.of(l).tell(l, begin, end)
	for _, e := range l.dirty {
		e.tell(l, begin, end)
		e.dirty = false
	}
	for _, d := range l.timed {
		d.say(l, &d.second, begin, end)
		d.second.Reset()
		d.dirty = false
	}
	l.dirty, l.timed = l.dirty[:0], l.timed[:0]
	l.clientsAt, l.clientsCame = max(l.clientsAt, end), true
}

// sample adds and tells what a host went through.
func (l *ledger) sample(v *monitor.Sample) {
	end := v.Time.UnixMilli()
	begin := v.Time.Add(-time.Duration(v.Seconds * 1e9)).UnixMilli()
	l.hostsAt, l.hostsCame = max(l.hostsAt, end), true
	switch {
	case v.Balancer != nil:
		for i := range v.Balancer.Servers {
			b := &v.Balancer.Servers[i]
			l.t.balanced.of(l, b.Service, b.Name).say(l, b, begin, end)
		}
		return
	case v.Transfers != nil:
		l.t.transfers.of(l, v.Host).say(l, v.Transfers, begin, end)
		return
	}
	l.t.host.of(l, v.Host, string(v.Role)).say(l, v, begin, end)
	for i := range v.Disks {
		d := &diskSecond{v.Disks[i], v.Seconds}
		l.t.disk.of(l, v.Host, string(v.Role), d.Name).say(l, d, begin, end)
	}
	for i := range v.Nets {
		n := &v.Nets[i]
		l.t.net.of(l, v.Host, string(v.Role), n.Name).say(l, n, begin, end)
	}
	for i := range v.Procs {
		p := &v.Procs[i]
		l.t.process.of(l, v.Host, string(p.Role), p.Name).say(l, p, begin, end)
	}
	if s := v.Service; s != nil {
		l.t.service.of(l, v.Host, s.Kind, s.Program).say(l, s, begin, end)
	}
}
