package cluster

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"weir/loadtest/measure"
)

// An extent is the time that a slot represents, for all kinds and servers, and the average numbers
// of clients and jobs in that time.
type extent struct {
	start         time.Time
	seconds       float64
	clients, jobs float64
}

// times has the times of each worker's slots, by second.
//
// A worker's slots follow each other without a gap, but two workers do not begin and end them at
// the same moments: on a busy machine one worker is some tenths of a second later than the other.
// The result must look like the report of a single process: each moment belongs to one phase, or
// readers would count it twice. So a slot gets its share of the workers' time, and the slots of a
// second follow each other as the workers' do on average.
type times map[int64]*secondOf

// A secondOf contains the workers' reports of one second.
type secondOf struct {
	slots map[slot]map[intervalKey]extent
	inner map[slot][]extent        // of intervals that began before and ended after it
	there map[connection]float64   // seconds of it in each worker's other intervals
	busy  map[int]extent           // clients and jobs of each step, weighted by time
	first map[connection]time.Time // begin of each worker's first slot
	end   time.Time                // end of the written slots; zero: not written
}

// An intervalKey distinguishes the intervals of a slot, for all kinds and servers.
type intervalKey struct {
	by    connection
	start time.Time
	phase string
}

// of returns the reports of a second.
func (t times) of(second int64) *secondOf {
	s := t[second]
	if s == nil {
		s = &secondOf{slots: map[slot]map[intervalKey]extent{}, inner: map[slot][]extent{}, there: map[connection]float64{},
			busy: map[int]extent{}, first: map[connection]time.Time{}}
		t[second] = s
	}
	return s
}

// add records that a worker was in a slot when it measured v.
func (t times) add(at slot, v *measure.Interval, by connection) {
	s := t.of(at.second)
	if s.slots[at] == nil {
		s.slots[at] = map[intervalKey]extent{}
	}
	x, which := extent{v.Start, v.Seconds, v.Clients, v.Running}, intervalKey{by, v.Start, v.Phase}
	if _, known := s.slots[at][which]; known {
		return
	}
	x.seconds -= t.cover(at, x, by)
	s.slots[at][which] = x
	if first, ok := s.first[by]; !ok || v.Start.Before(first) {
		s.first[by] = v.Start
	}
}

// cover records the seconds that x, of a slot, covers. x covers more than one second if the worker
// was stalled at the end of the first. cover returns the number of seconds that x covers entirely
// after the first; each of them belongs to that slot if other workers were in it.
func (t times) cover(at slot, x extent, by connection) (inner float64) {
	from, end := x.start, x.end()
	for second := from.Unix(); from.Before(end) && second <= x.start.Unix()+longest; second++ {
		to := time.Unix(second+1, 0)
		if end.Before(to) {
			to = end
		}
		s, span := t.of(second), to.Sub(from).Seconds()
		if second > x.start.Unix() && second < end.Unix() {
			at.second = second
			s.inner[at] = append(s.inner[at], extent{from, span, x.clients, x.jobs})
			inner += span
		} else {
			s.there[by] += span
		}
		busy := s.busy[at.step]
		s.busy[at.step] = extent{time.Unix(second, 0), 1, busy.clients + x.clients*span, busy.jobs + x.jobs*span}
		from = to
	}
	return inner
}

// join assigns the intervals of a slot to the phase of a later step in which most workers were in
// that second. It returns the slot of that phase, or false if no worker was in that step.
func (t times) join(old slot, step int) (slot, bool) {
	s := t[old.second]
	if s == nil {
		return slot{}, false
	}
	var to slot
	most := 0.0
	for at, all := range s.slots {
		sum := 0.0
		for _, x := range all {
			sum += x.seconds
		}
		if at.step == step && (sum > most || sum == most && at.phase < to.phase) {
			to, most = at, sum
		}
	}
	if most == 0 {
		return slot{}, false
	}
	maps.Copy(s.slots[to], s.slots[old])
	delete(s.slots, old)
	return to, true
}

// workers returns the number of workers in the second; a worker that was there for a part of it
// counts by its share.
func (s *secondOf) workers() float64 {
	sum, most := 0.0, 0.0
	for _, x := range s.there {
		sum += x
		most = max(most, x)
	}
	for at, all := range s.inner {
		if len(s.slots[at]) > 0 {
			sum, most = sum+float64(len(all)), max(most, 1)
		}
	}
	if most == 0 {
		return 1
	}
	return sum / most
}

// longest is the length of the longest interval, in seconds, that is accepted.
const longest = 60

// forget removes all seconds before the given second.
func (t times) forget(second int64) {
	for at := range t {
		if at < second {
			delete(t, at)
		}
	}
}

// extents returns the times of slots that are about to be written, when all seconds before until
// are known. Workers that are jobs begin and end at any time: each of their slots is a whole
// second.
func (t times) extents(of map[slot]bool, until int64, jobs bool) map[slot]extent {
	all := map[slot]extent{}
	var order []slot
	for at := range of {
		if s := t[at.second]; s == nil || len(s.slots[at]) == 0 {
			continue
		}
		if jobs {
			x := t[at.second].busy[at.step]
			for _, s := range t.silent(at.second, until) {
				busy := s.busy[at.step]
				x.clients, x.jobs = x.clients+busy.clients, x.jobs+busy.jobs
				if len(s.inner) > 0 { // a worker was stalled for all of it and did not end in it
					x.seconds += busy.seconds
				}
			}
			x.clients, x.jobs = x.clients/x.seconds, x.jobs/x.seconds
			all[at] = x
			continue
		}
		all[at] = t.mean(at, until)
		order = append(order, at)
	}
	slices.SortFunc(order, func(a, b slot) int {
		return cmp.Or(cmp.Compare(a.second, b.second), all[a].start.Compare(all[b].start))
	})
	for _, at := range order {
		all[at] = t.follow(at.second, all[at])
	}
	return all
}

// follow moves x, of a second, behind the slots that were written before it. The result begins
// within its second nevertheless, because its begin identifies the second.
func (t times) follow(second int64, x extent) extent {
	s := t[second]
	if s.end.IsZero() {
		s.end = meanOf(slices.Collect(maps.Values(s.first)))
		if before := t[second-1]; before != nil && before.end.After(s.end) {
			s.end = before.end
		}
	}
	if s.end.After(x.start) {
		x.start = s.end
	}
	if last := time.Unix(second+1, 0).Add(-time.Microsecond); x.start.After(last) {
		x.start = last
	}
	s.end = x.end()
	return x
}

// silent returns the seconds after second, up to until, in which no worker began an interval: their
// time belongs to second.
func (t times) silent(second, until int64) iter.Seq2[int64, *secondOf] {
	return func(yield func(int64, *secondOf) bool) {
		for second++; second < until && t[second] != nil && len(t[second].slots) == 0 && yield(second, t[second]); second++ {
		}
	}
}

// mean returns a slot's share of the workers' time, and the workers in it, each weighted by its
// time.
func (t times) mean(at slot, until int64) extent {
	s := t[at.second]
	var starts []time.Time
	var sum extent
	for _, x := range s.slots[at] {
		starts = append(starts, x.start)
	}
	all := slices.AppendSeq(slices.Clone(s.inner[at]), maps.Values(s.slots[at]))
	for second, later := range t.silent(at.second, until) {
		at.second = second
		all = append(all, later.inner[at]...)
	}
	for _, x := range all {
		sum.seconds += x.seconds
		sum.clients += x.clients * x.seconds
		sum.jobs += x.jobs * x.seconds
	}
	sum.start, sum.seconds = meanOf(starts), sum.seconds/s.workers()
	if sum.seconds > 0 {
		sum.clients /= sum.seconds
		sum.jobs /= sum.seconds
	}
	return sum
}

func (x extent) end() time.Time { return x.start.Add(time.Duration(x.seconds * float64(time.Second))) }

func meanOf(all []time.Time) time.Time {
	var later time.Duration
	for _, t := range all {
		later += t.Sub(all[0])
	}
	return all[0].Add(later / time.Duration(len(all)))
}
