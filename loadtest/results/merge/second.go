package merge

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"weir/loadtest/measure"
	"weir/storage"
)

// A source is the intervals of one run, second by second.
type source struct {
	*part
	next func() (*measure.Interval, error, bool)
	stop func()
	head *measure.Interval // the first that was not taken; nil: there are no more
	at   place             // where it was last
	seen int64             // second of the last line that was taken
}

// A place is where a run is in its plan.
type place struct {
	step  int
	phase string
}

// A span is a stretch of one second of one run in one phase of one step.
type span struct {
	place
	start, until time.Time
	lines        []*measure.Interval
}

// take adds a line.
func (x *span) take(v *measure.Interval) {
	if end := v.Start.Add(time.Duration(v.Seconds * float64(time.Second))); end.After(x.until) {
		x.until = end
	}
	x.lines = append(x.lines, v)
}

// there returns how many clients were there, and jobs ran, in client seconds and
// job seconds: each line of an interval says it of all kinds and servers.
func (x *span) there() (clients, jobs float64) {
	var most [2]float64 // of the interval
	for i, v := range x.lines {
		most[0], most[1] = max(most[0], v.Clients*v.Seconds), max(most[1], v.Running*v.Seconds)
		if i+1 == len(x.lines) || !x.lines[i+1].Start.Equal(v.Start) {
			clients, jobs, most = clients+most[0], jobs+most[1], [2]float64{}
		}
	}
	return clients, jobs
}

// addIntervals adds up what the clients of all parts saw, second by second.
func addIntervals(out measure.Sink, parts []*part) error {
	var all []*source
	defer func() {
		for _, s := range all {
			s.stop()
		}
	}()
	for _, p := range parts {
		s := &source{part: p}
		s.next, s.stop = iter.Pull2(p.Intervals())
		all = append(all, s)
		if err := s.advance(); err != nil {
			return err
		}
		if s.head != nil {
			p.first = s.head.Start
		}
	}
	var before time.Time // the end of what was written
	for {
		now, any := earliest(all)
		if !any {
			return nil
		}
		spans, err := take(all, now)
		if err != nil {
			return err
		}
		for _, sum := range together(all, spans) {
			// Machines cut their seconds some milliseconds apart, or later when they are busy; sums follow each other.
			if sum.start.Sub(before) < slack && before.Before(sum.until) {
				sum.start = before
			}
			before = sum.until
			for _, v := range sum.intervals() {
				if err := out.Interval(v); err != nil {
					return err
				}
			}
		}
	}
}

// advance takes the next line.
func (s *source) advance() error {
	v, err, ok := s.next()
	if !ok {
		s.head = nil
		return nil
	}
	s.head = v
	return err
}

// earliest is the second of the first line that was not taken.
func earliest(all []*source) (second int64, any bool) {
	for _, s := range all {
		if s.head != nil && (!any || s.head.Start.Unix() < second) {
			second, any = s.head.Start.Unix(), true
		}
	}
	return second, any
}

// take takes all lines of a second. Where a run has one of several seconds, since it was stalled, these are taken together.
func take(all []*source, now int64) ([][]*span, error) {
	spans := make([][]*span, len(all))
	for more := true; more; {
		more = false
		for i, s := range all {
			var err error
			if spans[i], err = s.second(now, spans[i]); err != nil {
				return nil, err
			}
			for _, x := range spans[i] {
				if last := x.until.Unix() - 1; last > now {
					now, more = last, true
				}
			}
		}
	}
	for i := range spans {
		spans[i] = absorbed(spans[i])
	}
	return spans, nil
}

// second adds all lines up to those of a second to spans of one phase.
func (s *source) second(now int64, spans []*span) ([]*span, error) {
	for s.head != nil && s.head.Start.Unix() <= now {
		v := s.head
		here := place{v.Step, v.Phase}
		var x *span
		if i := slices.IndexFunc(spans, func(x *span) bool { return x.place == here }); i >= 0 {
			x = spans[i]
		} else {
			x = &span{place: here, start: v.Start}
			spans = append(spans, x)
		}
		x.take(v)
		s.at = here
		if v.Start.Unix() != s.seen {
			s.reported, s.seen = s.reported+1, v.Start.Unix()
		}
		if x.until.After(s.last) {
			s.last = x.until
		}
		if err := s.advance(); err != nil {
			return nil, err
		}
	}
	return spans, nil
}

// absorbed is spans without the shortest, which count for their neighbors: phases
// of machines that begin at the same moment change some milliseconds apart,
// before or after a second's end.
func absorbed(spans []*span) []*span {
	for i := 0; i < len(spans) && len(spans) > 1; i++ {
		x := spans[i]
		if x.until.Sub(x.start) >= slack {
			continue
		}
		to := spans[max(i-1, 0)]
		if i == 0 {
			to = spans[1]
			to.start, to.lines = x.start, append(x.lines, to.lines...)
		} else {
			to.until, to.lines = x.until, append(to.lines, x.lines...)
		}
		spans = slices.Delete(spans, i, i+1)
		i--
	}
	return spans
}

// slack is how far apart phases of runs may change and still do so at once.
const slack = 50 * time.Millisecond

// together makes of the spans of one second of all runs what all of them did.
// Where they go through the same phases at the same moments each phase is added
// up by itself; else the whole second counts for the phase of the one that is
// least far, so that a step is held only while all hold it.
func together(all []*source, spans [][]*span) []*total {
	step := 0
	for _, s := range spans {
		for _, x := range s {
			step = max(step, x.step)
		}
	}
	if model := alike(all, spans, step); model != nil {
		var out []*total
		for k := range model {
			var same []*span
			for _, s := range spans {
				if len(s) > 0 {
					same = append(same, s[k])
				}
			}
			out = append(out, sum(model[k].place, same))
		}
		return out
	}
	return []*total{sum(place{step, label(all, spans, step)}, slices.Concat(spans...))}
}

// alike returns the spans of one run if those of all that are in the step are
// the same, else nil.
func alike(all []*source, spans [][]*span, step int) []*span {
	var model []*span
	for i, s := range all {
		mine := spans[i]
		if len(mine) == 0 {
			if s.steps[step] && s.state(nil, step) != "" {
				return nil // it has not begun the step, or has left it
			}
			continue
		}
		if model == nil {
			model = mine
		}
		if len(mine) != len(model) {
			return nil
		}
		for k := range mine {
			if mine[k].place != model[k].place || apart(mine[k].start, model[k].start) || apart(mine[k].until, model[k].until) {
				return nil
			}
		}
	}
	return model
}

func apart(a, b time.Time) bool { return a.Sub(b).Abs() > slack }

// rank is the order in which phases keep others from being the second's.
func rank(phase string) int {
	return slices.Index([]string{"", measure.Measured, measure.Warmup, measure.GracefulStop, measure.Ramp}, phase)
}

// label is the phase of a second in which the runs are at different places of a
// step, or of several.
func label(all []*source, spans [][]*span, step int) string {
	worst := ""
	for i, s := range all {
		phases := []string{s.state(spans[i], step)}
		for _, x := range spans[i] {
			if x.step == step {
				phases = append(phases, x.phase)
			}
		}
		for _, phase := range phases {
			if rank(phase) > rank(worst) {
				worst = phase
			}
		}
	}
	return cmp.Or(worst, measure.Ramp)
}

// state is in which phase of a step a run is that has no line of it, "" if
// it has one, or takes no part in the step any more.
func (s *source) state(spans []*span, step int) string {
	for _, x := range spans {
		if x.step == step {
			return ""
		}
	}
	switch {
	case !s.steps[step]:
		return ""
	case s.at.step < step:
		return measure.Ramp // it has not begun it
	case s.at.step == step && s.head != nil && s.head.Step == step && s.at.phase == s.head.Phase:
		return "" // a second is missing
	case s.head != nil || s.whole:
		return measure.GracefulStop // it has left it
	}
	return "" // it was ended, or killed
}

// A total is what all runs did in a stretch of a second.
type total struct {
	span
	of []*span
}

// sum puts spans together. There is at least one.
func sum(at place, spans []*span) *total {
	t := &total{span: span{place: at, start: spans[0].start, until: spans[0].until}, of: spans}
	for _, x := range spans {
		if x.start.Before(t.start) {
			t.start = x.start
		}
		if x.until.After(t.until) {
			t.until = x.until
		}
	}
	return t
}

// intervals are what was added up, all with the same start and length: one for
// each kind of operation and data server.
func (t *total) intervals() []*measure.Interval {
	type address struct {
		kind       storage.Kind
		server     string
		population string
	}
	sums := map[address]*measure.Interval{}
	clients, running := 0.0, 0.0
	for _, x := range t.of {
		there, jobs := x.there()
		clients, running = clients+there, running+jobs
		for _, v := range x.lines {
			k := address{v.Kind, v.Server, v.Population}
			if sums[k] == nil {
				sums[k] = v
			} else {
				sums[k].Add(v)
			}
		}
	}
	seconds := t.until.Sub(t.start).Seconds()
	if seconds > 0 {
		clients, running = clients/seconds, running/seconds
	}
	var out []*measure.Interval
	for _, v := range sums {
		v.Start, v.Seconds, v.Step, v.Phase, v.Clients, v.Running = t.start, seconds, t.step, t.phase, clients, running
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b *measure.Interval) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Server, b.Server), cmp.Compare(a.Population, b.Population))
	})
	return out
}
