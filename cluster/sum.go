package cluster

import (
	"cmp"
	"slices"
	"time"

	"weir/measure"
	"weir/storage"
)

// slot says which intervals of different workers belong together. Phases end
// at slightly different moments in different workers, so a second in which a
// phase changes has one slot for each.
type slot struct {
	second int64
	step   int
	phase  string
	kind   storage.Kind
	server string
}

func slotOf(v *measure.Interval) slot { return slot{v.Start.Unix(), v.Step, v.Phase, v.Kind, v.Server} }

// slotOf is where v belongs.
func (s *sum) slotOf(v *measure.Interval) slot {
	at := slotOf(v)
	if s.phase != nil {
		at.phase = ""
	}
	return at
}

// A claim is a report of a worker that is to be acknowledged.
type claim struct {
	line
	no int64
}

// A known slot has what was told of it, and the reports that told it.
type known struct {
	*measure.Interval
	claims []claim
}

// A sum adds the intervals of many workers second by second.
type sum struct {
	out   measure.Sink
	phase func(second int64) string // where the phases are the controller's, not the workers': known when a second is written
	slots map[slot]*known
	past  map[slot]bool             // written by a controller that was killed
	spans map[slot]measure.Interval // its seconds, for all kinds and servers
}

func newSum(out measure.Sink) *sum { return &sum{out: out, slots: map[slot]*known{}} }

// add takes an interval, and returns false if its slot has been written before:
// then it is known.
func (s *sum) add(v *measure.Interval, c claim) bool {
	at := s.slotOf(v)
	if s.past[at] {
		c.written(c.no)
		return false
	}
	have := s.slots[at]
	if have == nil {
		have = &known{Interval: v}
		s.slots[at] = have
	} else {
		if v.Start.Before(have.Start) {
			have.Start = v.Start
		}
		have.Add(v)
	}
	have.claims = append(have.claims, c)
	return true
}

// before writes all seconds that ended before t. Workers begin a second some
// microseconds apart, and not all of them are heard of each kind and server
// first: what belongs to one second is given one start and one length, as a
// lone process gives them, or readers would take it for several seconds.
func (s *sum) before(t time.Time) error {
	return s.write(func(at slot) bool { return at.second < t.Unix() })
}

// over writes all seconds of the phases that no worker is in any more when all
// rest after a step.
func (s *sum) over() error { return s.write(func(at slot) bool { return at.phase != measure.Drain }) }

func (s *sum) write(is func(slot) bool) error {
	var ready []*known
	span := map[slot]*measure.Interval{} // one for all kinds and servers
	for at, v := range s.slots {
		if !is(at) {
			continue
		}
		ready = append(ready, v)
		delete(s.slots, at)
		at.kind, at.server = 0, ""
		first := span[at]
		if first == nil {
			first = &measure.Interval{Start: v.Start}
			if begun, ok := s.spans[at]; ok { // it was killed between two lines
				first = &begun
			}
			span[at] = first
		}
		if v.Start.Before(first.Start) {
			first.Start = v.Start
		}
		first.Seconds = max(first.Seconds, v.Seconds)
	}
	for _, v := range ready {
		at := s.slotOf(v.Interval)
		at.kind, at.server = 0, ""
		v.Start, v.Seconds = span[at].Start, span[at].Seconds
		if s.phase != nil {
			v.Phase = s.phase(at.second)
		}
	}
	slices.SortFunc(ready, func(a, b *known) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Server, b.Server))
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

func (s *sum) flush() error { return s.before(time.Unix(1<<40, 0)) }
