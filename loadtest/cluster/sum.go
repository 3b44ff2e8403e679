package cluster

import (
	"cmp"
	"math"
	"slices"
	"time"

	"weir/loadtest/measure"
	"weir/storage"
)

// A slot identifies the intervals of different workers that belong together. Phases end at slightly
// different moments in different workers, so a second in which a phase changes has a slot for each
// phase.
type slot struct {
	second     int64
	step       int
	phase      string
	kind       storage.Kind
	server     string
	population string
}

func slotOf(v *measure.Interval) slot {
	return slot{v.Start.Unix(), v.Step, v.Phase, v.Kind, v.Server, v.Population}
}

// whole returns the slot for all kinds, servers and populations.
func (at slot) whole() slot {
	at.kind, at.server, at.population = 0, "", ""
	return at
}

// slotOf returns the slot of v.
func (s *sum) slotOf(v *measure.Interval) slot {
	at := slotOf(v)
	if s.phase != nil {
		at.phase = ""
	}
	return at
}

// A claim is a report of a worker that is to be acknowledged.
type claim struct {
	connection
	no int64
}

// A known slot has the reports about it and their sum.
type known struct {
	*measure.Interval
	claims []claim
}

// A sum adds the intervals of many workers second by second.
type sum struct {
	out measure.Sink
	// phase is set if the controller, not the workers, determines the phases: they are known when a
	// second is written.
	phase   func(second int64) string
	slots   map[slot]*known
	mark    int64           // all seconds before this one have been written
	past    map[slot]bool   // slots that a killed controller has written
	written map[int64]int   // the last step of each second that it wrote
	step    int             // the last step that a worker reported
	since   int64           // the second in which that step began
	extents map[slot]extent // times of its seconds, for all kinds and servers
	times   times
}

func newSum(out measure.Sink) *sum { return &sum{out: out, slots: map[slot]*known{}, times: times{}} }

// An addResult is the outcome of adding an interval.
type addResult int

const (
	added      addResult = iota
	wasWritten           // a controller that was killed has written it
	tooLate              // the other intervals of its second have been written
)

// add adds an interval. A second is written once: an interval that arrives after its second was
// written counts in the first second that is still open, but the time of its clients does not
// count.
func (s *sum) add(v *measure.Interval, c claim) addResult {
	at, is := s.slotOf(v), added
	switch {
	case s.past[at], s.phase == nil && at.step < s.written[at.second]: // in the order of steps
		s.times.add(at.whole(), v, c.connection)
		c.written(c.no)
		return wasWritten
	case at.second < s.mark:
		at.second, is = s.mark, tooLate
		v.Start = time.Unix(s.mark, 0)
	default:
		s.times.add(at.whole(), v, c.connection)
	}
	if at.step > s.step {
		s.step, s.since = at.step, at.second
	}
	s.put(at, &known{v, []claim{c}})
	return is
}

// put adds the reports and the sum of a slot.
func (s *sum) put(at slot, v *known) {
	have := s.slots[at]
	if have == nil {
		s.slots[at] = v
		return
	}
	have.Add(v.Interval)
	have.claims = append(have.claims, v.claims...)
}

// catchUp handles a worker that continued its last step while the others were in the next step for
// longer than a second. Its intervals of that time count in their step: the worker was silent when
// that step began, and its clients are among the clients that load the service.
func (s *sum) catchUp() {
	if s.phase != nil {
		return
	}
	for at, v := range s.slots {
		if at.step >= s.step || at.second <= s.since {
			continue
		}
		to, ok := s.times.join(at.whole(), s.step)
		if !ok {
			continue
		}
		delete(s.slots, at)
		at.step, at.phase = to.step, to.phase
		v.Step, v.Phase = to.step, to.phase
		s.put(at, v)
	}
}

// before writes all seconds that ended before t.
func (s *sum) before(t time.Time) error {
	err := s.write(t.Unix(), func(at slot) bool { return at.second < t.Unix() })
	s.mark = max(s.mark, t.Unix())
	s.times.forget(t.Unix() - 1) // the next second begins at the end of the last
	return err
}

// over writes all seconds of the phases that no worker is in any more when all rest after a step.
func (s *sum) over() error {
	return s.write(math.MaxInt64, func(at slot) bool { return at.phase != measure.GracefulStop })
}

// write writes some of the slots, when all seconds before until are known.
func (s *sum) write(until int64, is func(slot) bool) error {
	s.catchUp()
	var ready []*known
	wholes := map[slot]bool{}
	for at, v := range s.slots {
		if is(at) {
			ready = append(ready, v)
			wholes[at.whole()] = true
			delete(s.slots, at)
		}
	}
	extents := s.times.extents(wholes, until, s.phase != nil)
	for at, was := range s.extents { // the controller was killed between two lines
		if now, ok := extents[at]; ok {
			now.start, now.seconds = was.start, was.seconds
			extents[at] = now
		}
	}
	for _, v := range ready {
		at := s.slotOf(v.Interval)
		x, known := extents[at.whole()]
		if !known { // all its reports were too late
			x.start = time.Unix(at.second, 0)
		}
		v.Start, v.Seconds, v.Clients, v.Running = x.start, x.seconds, x.clients, x.jobs
		if s.phase != nil {
			v.Phase = s.phase(at.second)
		}
	}
	slices.SortFunc(ready, func(a, b *known) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Server, b.Server),
			cmp.Compare(a.Population, b.Population))
	})
	for _, v := range ready {
		if err := s.out.Interval(v.Interval); err != nil {
			return err
		}
		for _, c := range v.claims {
			c.written(c.no)
		}
	}
	return nil
}

// flush writes all remaining slots.
func (s *sum) flush() error {
	err := s.write(math.MaxInt64, func(slot) bool { return true })
	clear(s.times)
	return err
}
