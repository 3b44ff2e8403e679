package export

import (
	"time"

	"weir/measure"
	"weir/monitor"
)

// event keeps e until its second is told.
func (l *ledger) event(e *measure.Event) {
	if e.Kind == "step" {
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
		l.events.take(l, e)
		if end.IsZero() {
			at := max(l.now, e.Time.UnixMilli())
			l.events.tell(l, at-1, at)
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
	s.Start, s.Seconds, s.Step, s.Phase, s.Clients = v.Start, v.Seconds, v.Step, v.Phase, v.Clients
	kind := v.Kind.String()
	e := get(l, l.clients, [2]string{kind, v.Server}, &l.t.clients, kind, v.Server)
	e.take(l, v)
	if !e.dirty {
		e.dirty = true
		l.dirty = append(l.dirty, e)
	}
	d := l.spans[kind]
	if d == nil {
		d = &span{entity: newEntity(l, &l.t.spans, kind)}
		l.spans[kind] = d
	}
	d.second.add(v)
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
	l.info.take(l, m)
	l.info.tell(l, begin, end)
	l.run.take(l, m)
	l.run.tell(l, begin, end)
	l.events.tell(l, begin, end)
	for _, e := range l.dirty {
		e.tell(l, begin, end)
		e.dirty = false
	}
	for _, d := range l.timed {
		d.take(l, &d.second)
		d.tell(l, begin, end)
		d.second.reset()
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
	host := get(l, l.hosts, [2]string{v.Host, v.Role}, &l.t.host, v.Host, v.Role)
	host.take(l, v)
	host.tell(l, begin, end)
	for i := range v.Disks {
		d := &diskSecond{v.Disks[i], v.Seconds}
		e := get(l, l.disks, [3]string{v.Host, v.Role, d.Name}, &l.t.disk, v.Host, v.Role, d.Name)
		e.take(l, d)
		e.tell(l, begin, end)
	}
	for i := range v.Nets {
		n := &v.Nets[i]
		e := get(l, l.nets, [3]string{v.Host, v.Role, n.Name}, &l.t.net, v.Host, v.Role, n.Name)
		e.take(l, n)
		e.tell(l, begin, end)
	}
	for i := range v.Procs {
		p := &v.Procs[i]
		e := get(l, l.procs, [3]string{v.Host, p.Role, p.Name}, &l.t.process, v.Host, p.Role, p.Name)
		e.take(l, p)
		e.tell(l, begin, end)
	}
	if s := v.Service; s != nil {
		e := get(l, l.serves, [3]string{v.Host, s.Kind, s.Program}, &l.t.service, v.Host, s.Kind, s.Program)
		e.take(l, s)
		e.tell(l, begin, end)
	}
}
