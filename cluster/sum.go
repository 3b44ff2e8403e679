package cluster

import (
	"cmp"
	"slices"
	"time"

	"weir/measure"
	"weir/storage"
)

// Reports of a second are waited for at most this long after its end.
const grace = 3 * time.Second

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

// A sum adds the intervals of many workers second by second.
type sum struct {
	out   measure.Sink
	slots map[slot]*measure.Interval
}

func newSum(out measure.Sink) *sum { return &sum{out, map[slot]*measure.Interval{}} }

func (s *sum) add(v *measure.Interval) {
	at := slot{v.Start.Unix(), v.Step, v.Phase, v.Kind, v.Server}
	if have := s.slots[at]; have != nil {
		if v.Start.Before(have.Start) {
			have.Start = v.Start
		}
		have.Add(v)
	} else {
		s.slots[at] = v
	}
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
	var ready []*measure.Interval
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
			span[at] = first
		}
		if v.Start.Before(first.Start) {
			first.Start = v.Start
		}
		first.Seconds = max(first.Seconds, v.Seconds)
	}
	for _, v := range ready {
		at := span[slot{second: v.Start.Unix(), step: v.Step, phase: v.Phase}]
		v.Start, v.Seconds = at.Start, at.Seconds
	}
	slices.SortFunc(ready, func(a, b *measure.Interval) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Server, b.Server))
	})
	for _, v := range ready {
		if err := s.out.Interval(v); err != nil {
			return err
		}
	}
	return nil
}

func (s *sum) flush() error { return s.before(time.Unix(1<<40, 0)) }
