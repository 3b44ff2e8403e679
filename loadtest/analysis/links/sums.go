package links

import (
	"time"

	"weir/loadtest/analysis/basics"
	"weir/loadtest/challenge"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/monitor"
	"weir/storage"
)

// Sums are the sums of the records of a data challenge, by link and minute. Their memory depends on
// the plan alone. Lines of links.jsonl are added before those of the other files.
type Sums struct {
	plan    *challenge.Challenge
	minute  time.Duration
	last    int       // largest index of a minute
	begin   time.Time // of the first line
	started bool
	index   map[[2]string]int // of links
	sites   map[string]int
	links   []linkSum
	hosts   hostSums
	control controlSum
	clock   time.Duration // the least time from a request to a first byte; below 0: clocks differ
	resumes []time.Time
	// of the transfer service and the issuer of credentials
	troubles []trouble
	ending   measure.EndTracker
}

// A linkSum sums the records of one link.
type linkSum struct {
	plan                            *challenge.Link
	source, dest                    int // indexes of sites
	limit                           int // copies in flight that link and sites permit
	minutes                         []minute
	files, bytes                    int64
	moved                           int64 // pauses included
	failed, expired, retried, label int64
	failures                        map[Failure]int64 // without their number
	queue, transfer, verify, whole  durations
	until                           time.Time // end of the last line
	sizes                           sizeSums
	odd                             int64   // copies that began before their request or after their end, by the service's clock
	unproven                        int64   // copies that failed after their last byte, before they were verified
	elastic                         float64 // see elasticity
	elasticKnown                    bool
	base                            float64 // rate of a copy in minutes at the target; 0: unknown
	usual                           float64 // seconds of the verification of a copy in minutes at the target; 0: unknown
}

// A line is an interval of a link with the index of its reason and the mean number of copies that ran.
type line struct {
	*results.LinkInterval
	reason  int
	running float64
}

// lineOf returns the line of an interval. Without a transfer service no copy waits for one: weir has
// requested it from a site, which has not responded yet.
func (s *Sums) lineOf(v *results.LinkInterval) line {
	of := line{v, reasonIndex(v.Reason), max(0, v.Flight-v.Queued)}
	if s.plan.Inject.By == challenge.Direct {
		of.running = v.Flight
		if of.reason == queued {
			of.reason = saturated
		}
	}
	return of
}

// New returns the sums of a challenge without records.
func New(c *challenge.Challenge) *Sums {
	s := &Sums{plan: c, minute: minuteOf(c), last: 4 * mostMinutes / max(1, len(c.Links)), index: map[[2]string]int{}, sites: map[string]int{},
		links: make([]linkSum, len(c.Links))}
	for i := range c.Sites {
		s.sites[c.Sites[i].Name] = i
	}
	for i := range c.Links {
		l, sum := &c.Links[i], &s.links[i]
		s.index[[2]string{l.From, l.To}] = i
		sum.plan, sum.source, sum.dest, sum.failures = l, s.sites[l.From], s.sites[l.To], map[Failure]int64{}
		sum.limit = l.InFlight
	}
	s.hosts = newHostSums(c)
	return s
}

// Link adds a line of links.jsonl. Links that the plan does not have are left out.
func (s *Sums) Link(v *results.LinkInterval) {
	i, known := s.index[[2]string{v.Source, v.Dest}]
	if !known {
		return
	}
	if !s.started {
		s.begin, s.started = v.Start, true
	}
	l := &s.links[i]
	s.control.line(s, l, v)
	l.moved += v.Moved
	l.until = v.Start.Add(basics.Duration(v.Seconds))
	if v.Target <= 0 {
		return
	}
	of := s.lineOf(v)
	s.spread(v.Start, l.until, func(minute, part int, share float64) { l.at(minute).add(&of, share, part) })
	m := l.at(s.minuteOf(v.Start))
	m.started, m.done, m.failed = m.started+int32(v.Started), m.done+int32(v.Done), m.failed+int32(v.Failed)
}

// minuteOf returns the index of the minute of a time, 0 before the beginning.
func (s *Sums) minuteOf(t time.Time) int { return s.nth(max(0, t.Sub(s.begin))) }

// nth returns the index of the minute at a time since the beginning. Times far beyond the plan, of a
// challenge that was resumed much later, share the last minute.
func (s *Sums) nth(since time.Duration) int { return int(min(since/s.minute, time.Duration(s.last))) }

// spread calls each with the parts of minutes that a span touches, and their share of the span.
func (s *Sums) spread(from, to time.Time, each func(minute, part int, share float64)) {
	a, b := max(0, from.Sub(s.begin)), max(0, to.Sub(s.begin))
	length := s.minute / parts
	if b <= a {
		each(s.nth(a), int(a%s.minute/length), 1)
		return
	}
	for at := a; at < b; {
		end := min(b, (at/length+1)*length)
		each(s.nth(at), int(at%s.minute/length), float64(end-at)/float64(b-a))
		at = end
	}
}

// at returns a minute of a link, which it makes if necessary.
func (l *linkSum) at(i int) *minute {
	for len(l.minutes) <= i {
		l.minutes = append(l.minutes, minute{})
	}
	return &l.minutes[i]
}

// Transfer adds a line of transfers.jsonl.
func (s *Sums) Transfer(t *results.Transfer) {
	i, known := s.index[[2]string{t.Source, t.Dest}]
	if !known || !s.started || t.Class == storage.Canceled {
		return
	}
	l := &s.links[i]
	if t.Label {
		l.label++
	}
	if !t.Last {
		l.retried++
	}
	if t.Done {
		s.arrived(l, t)
		return
	}
	l.failed++
	if t.Wrong() {
		s.wrong(l, t)
	}
	m := l.at(s.minuteOf(t.End))
	end, at := EndUnknown, atUnknown
	switch t.Site {
	case "":
	case t.Source:
		end, at = EndSource, atSource
	case t.Dest:
		end, at = EndDest, atDest
	}
	l.failures[Failure{Class: t.Class, End: end}]++
	m.at[at]++
	m.classes[at] = t.Class
	switch {
	case t.Expired:
		l.expired++
		m.expired++
	case t.Class == storage.Denied:
		m.denied++
	case t.Moved >= t.Size && t.Class == storage.Timeout:
		m.unproven++
		l.unproven++
	case t.Class == storage.Refused, t.Class == storage.Timeout, t.Class == storage.Reset:
		m.lost++
	case t.Class == storage.ServerFailed && at == atDest:
		m.full++
	}
}

// wrong takes the bytes of a copy that was complete and failed its verification out of the minutes in
// which they were reported: the file is not there.
func (s *Sums) wrong(l *linkSum, t *results.Transfer) {
	from, to := t.Begin, t.LastByte
	if from.IsZero() {
		from = t.Asked
	}
	if to.IsZero() {
		to = t.End
	}
	s.spread(from, to, func(minute, part int, share float64) {
		m := l.at(minute)
		m.moved, m.wrong = m.moved-share*float64(t.Moved), m.wrong+share*float64(t.Moved)
		m.part[part].moved -= float32(share * float64(t.Moved))
	})
}

// mostOdd is the share of copies with an impossible begin from which the phases of a link mean
// nothing: those that seem possible are only the longest.
const mostOdd = 0.01

// settle removes what rounding leaves of minutes whose copies all failed their verification, and the
// phases of links whose service has another clock.
func (s *Sums) settle() {
	for i := range s.links {
		if l := &s.links[i]; float64(l.odd) > mostOdd*float64(l.files) {
			l.forget()
		}
		for k := range s.links[i].minutes {
			m := &s.links[i].minutes[k]
			m.moved = max(0, m.moved)
			for p := range m.part {
				m.part[p].moved = max(0, m.part[p].moved)
			}
		}
	}
}

// arrived adds a copy that arrived. Phases count only as far as the clocks of this machine and the
// service agree.
func (s *Sums) arrived(l *linkSum, t *results.Transfer) {
	l.files, l.bytes = l.files+1, l.bytes+t.Size
	if t.Asked.IsZero() {
		return
	}
	whole := t.End.Sub(t.Asked)
	l.whole.add(whole)
	l.sizes.add(float64(t.Size), whole.Seconds())
	at := l.at(s.minuteOf(t.End))
	at.arrived, at.whole = at.arrived+1, at.whole+float32(whole.Seconds())
	if t.Begin.IsZero() {
		return
	}
	begin := t.Begin
	if early := begin.Sub(t.Asked); early < 0 && early >= -s.coarse() {
		if t.End.Before(t.Asked) {
			return
		}
		begin = t.Asked
	}
	if early := begin.Sub(t.Asked); early < 0 || begin.After(t.End) {
		s.clock = min(s.clock, early, t.End.Sub(begin))
		if ahead := begin.Sub(t.End); 10*max(-early, ahead) > whole {
			l.odd++
		}
		return
	}
	m := l.at(s.minuteOf(t.End))
	l.queue.add(begin.Sub(t.Asked))
	last := t.End
	if known := !t.LastByte.IsZero() && !t.LastByte.Before(begin) && !t.LastByte.After(t.End); known {
		last = t.LastByte
		l.verify.add(t.End.Sub(last))
	}
	l.transfer.add(last.Sub(begin))
	m.ended++
	m.queue += float32(begin.Sub(t.Asked).Seconds())
	m.transfer += float32(last.Sub(begin).Seconds())
	m.verify += float32(t.End.Sub(last).Seconds())
	s.spread(begin, last, func(minute, _ int, share float64) {
		l.at(minute).moving += float32(share * last.Sub(begin).Seconds())
	})
}

// coarse returns the error of the times of the service: FTS reports whole seconds. A copy that began
// up to that before its request began at once, and the clocks need not differ.
func (s *Sums) coarse() time.Duration {
	if s.plan.Inject.By == challenge.FTS {
		return time.Second
	}
	return 0
}

// forget removes the phases of all copies.
func (l *linkSum) forget() {
	l.queue, l.transfer, l.verify = durations{}, durations{}, durations{}
	for i := range l.minutes {
		m := &l.minutes[i]
		m.ended, m.queue, m.transfer, m.verify, m.moving = 0, 0, 0, 0, 0
	}
}

// Event adds a line of events.jsonl.
func (s *Sums) Event(e *measure.Event) {
	s.ending.Saw(e)
	if e.Kind == measure.EventResume {
		s.resumes = append(s.resumes, e.Time)
	}
	if e.Kind == measure.EventService && e.Service != nil {
		s.answered(e)
	}
}

// Sample adds a line of hosts.jsonl.
func (s *Sums) Sample(m *monitor.Sample) {
	if s.started && m.Seconds > 0 {
		s.hosts.add(s.minuteOf(m.Time.Add(-basics.Duration(m.Seconds/2))), m)
	}
}

// A sizeSums sums sizes and durations of copies, for the line through them.
type sizeSums struct{ n, x, y, xx, xy float64 }

func (s *sizeSums) add(size, seconds float64) {
	s.n++
	s.x, s.y, s.xx, s.xy = s.x+size, s.y+seconds, s.xx+size*size, s.xy+size*seconds
}

// fixed returns the share of the mean duration that does not depend on the size. ok is false if the
// sizes hardly differ.
func (s *sizeSums) fixed() (share float64, ok bool) {
	if s.n < 20 {
		return 0, false
	}
	variance := s.xx/s.n - s.x*s.x/s.n/s.n
	if mean := s.x / s.n; variance < 0.04*mean*mean || s.y <= 0 {
		return 0, false
	}
	slope := (s.xy/s.n - s.x*s.y/s.n/s.n) / variance
	return min(1, max(0, 1-slope*s.x/s.y)), true
}
