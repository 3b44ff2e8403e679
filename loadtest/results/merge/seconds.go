package merge

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/monitor"
	"weir/storage"
)

// slack is the largest difference between times that machines record for the same moment.
const slack = 50 * time.Millisecond

// A source reads the lines of one run.
type source[T any] struct {
	*run
	next func() (T, error, bool)
	head T // the first line that was not taken
	more bool
}

func (s *source[T]) advance() (err error) {
	s.head, err, s.more = s.next()
	return err
}

// eachSecond calls do for each second, in order of time, with the lines of all runs. A line of
// several seconds, from a process that was stalled, results in one call for these seconds.
func eachSecond[T any](runs []*run, lines func(*run) iter.Seq2[T, error], span func(T) (from, until time.Time),
	do func(all []*source[T], taken [][]T) error) error {
	var all []*source[T]
	for _, r := range runs {
		next, stop := iter.Pull2(lines(r))
		defer stop()
		s := &source[T]{run: r, next: next}
		if err := s.advance(); err != nil {
			return err
		}
		all = append(all, s)
	}
	for {
		var first []int64
		for _, s := range all {
			if s.more {
				from, _ := span(s.head)
				first = append(first, from.Unix())
			}
		}
		if len(first) == 0 {
			return nil
		}
		taken, err := take(all, slices.Min(first), span)
		if err != nil {
			return err
		}
		if err := do(all, taken); err != nil {
			return err
		}
	}
}

// take takes all lines that begin in a second, and in the seconds to which these lines extend.
func take[T any](all []*source[T], second int64, span func(T) (from, until time.Time)) ([][]T, error) {
	taken := make([][]T, len(all))
	for longer := true; longer; {
		longer = false
		for i, s := range all {
			for s.more {
				from, until := span(s.head)
				if from.Unix() > second {
					break
				}
				taken[i] = append(taken[i], s.head)
				if last := until.Unix() - 1; last > second {
					second, longer = last, true
				}
				if err := s.advance(); err != nil {
					return nil, err
				}
			}
		}
	}
	return taken, nil
}

func spanOf(v *measure.Interval) (from, until time.Time) {
	return v.Start, v.Start.Add(time.Duration(v.Seconds * float64(time.Second)))
}

// addIntervals writes the sums of the intervals.
func addIntervals(out measure.Sink, runs []*run) error {
	var before time.Time // end of the last sum
	return eachSecond(runs, func(r *run) iter.Seq2[*measure.Interval, error] { return r.Intervals() }, spanOf,
		func(all []*source[*measure.Interval], taken [][]*measure.Interval) error {
			total := measure.Interval{Start: before}
			var from, until time.Time
			for _, v := range slices.Concat(taken...) {
				begin, end := spanOf(v)
				if from.IsZero() || begin.Before(from) {
					from = begin
				}
				if end.After(until) {
					until = end
				}
				total.Step = max(total.Step, v.Step)
			}
			if total.Phase = phase(all, taken, total.Step, from, until); from.Sub(before) >= slack || !before.Before(until) {
				total.Start = from // otherwise clocks and ticks differ by milliseconds
			}
			total.Seconds, before = until.Sub(total.Start).Seconds(), until
			for _, v := range sum(taken, &total) {
				if err := out.Interval(v); err != nil {
					return err
				}
			}
			return nil
		})
}

// phase returns the phase of a step between from and until: the phase of the run with the least
// progress.
func phase(all []*source[*measure.Interval], taken [][]*measure.Interval, step int, from, until time.Time) (worst string) {
	order := []string{"", measure.Measured, measure.Warmup, measure.GracefulStop, measure.Ramp}
	for i, s := range all {
		for _, phase := range s.phases(step, taken[i], s.head, from, until) {
			if slices.Index(order, phase) > slices.Index(order, worst) {
				worst = phase
			}
		}
	}
	return cmp.Or(worst, measure.Ramp)
}

// phases returns the phases of a step in which the run is between from and until, given its lines
// in that time. next is its next line, or nil.
func (r *run) phases(step int, lines []*measure.Interval, next *measure.Interval, from, until time.Time) (all []string) {
	if len(lines) == 0 {
		switch {
		case !r.steps[step], next == nil && r.end.Outcome != measure.Complete:
			return nil // the run was stopped or killed
		case r.last.step < step:
			return []string{measure.Ramp} // the run has not begun the step
		case next != nil && r.last == place{next.Step, next.Phase}:
			return nil // a second is missing
		}
		return []string{measure.GracefulStop} // the run has left the step
	}
	begin, _ := spanOf(lines[0])
	_, end := spanOf(lines[len(lines)-1])
	if begin.Sub(from) > slack && begin.Sub(r.until) > slack {
		all = append(all, measure.Ramp)
	}
	if until.Sub(end) > slack && (next == nil || next.Start.Sub(end) > slack) {
		all = append(all, measure.GracefulStop)
	}
	if r.begin.IsZero() {
		r.begin = begin
	}
	for _, v := range lines {
		if all = append(all, v.Phase); v.Step != step {
			all = append(all, measure.Ramp)
		}
		if at := v.Start.Unix(); at != r.second {
			r.second, r.seconds = at, r.seconds+1
		}
		r.last = place{v.Step, v.Phase}
		_, r.until = spanOf(v)
	}
	return all
}

// sum adds up the lines of all runs: one interval for each kind of operation, data server and
// population, in the time and phase of total.
func sum(taken [][]*measure.Interval, total *measure.Interval) []*measure.Interval {
	type key struct {
		kind               storage.Kind
		server, population string
	}
	sums, all := map[key]*measure.Interval{}, []*measure.Interval(nil)
	for _, lines := range taken {
		var clients, jobs float64 // of one interval: each line has the total of all kinds and servers
		for i, v := range lines {
			clients, jobs = max(clients, v.Clients*v.Seconds), max(jobs, v.Running*v.Seconds)
			if i+1 == len(lines) || !lines[i+1].Start.Equal(v.Start) {
				total.Clients, total.Running = total.Clients+clients/total.Seconds, total.Running+jobs/total.Seconds
				clients, jobs = 0, 0
			}
			if k := (key{v.Kind, v.Server, v.Population}); sums[k] == nil {
				sums[k], all = v, append(all, v)
			} else {
				v.Clients = 0
				sums[k].Add(v)
			}
		}
	}
	for _, v := range all {
		v.Start, v.Seconds, v.Step, v.Phase = total.Start, total.Seconds, total.Step, total.Phase
		v.Clients, v.Running = total.Clients, total.Running
	}
	return all
}

// addSamples writes the samples of all hosts. If several runs monitored a host, the samples of the
// first of these runs are used in each second, and the clients of the other runs on the same
// machine are added.
func addSamples(out *results.Writer, runs []*run) error {
	return eachSecond(runs, func(r *run) iter.Seq2[*monitor.Sample, error] { return r.Samples() },
		func(s *monitor.Sample) (from, until time.Time) { return s.Time, s.Time },
		func(all []*source[*monitor.Sample], taken [][]*monitor.Sample) (err error) {
			first := map[string]int{} // the run whose samples of a host are used
			var samples []*monitor.Sample
			for i, r := range all {
				for _, s := range taken[i] {
					if slices.ContainsFunc(r.Plan.Hosts, func(h monitor.Host) bool { return h.Name == s.Host && h.NodeExporter+h.XRootDReport == "" }) {
						s.Host = r.machine(runs)
					}
					if of, ok := first[s.Host]; !ok || of == i {
						first[s.Host], samples = i, append(samples, s)
						continue
					}
					join(samples[slices.IndexFunc(samples, func(t *monitor.Sample) bool { return t.Host == s.Host })], s, r.name)
				}
			}
			slices.SortStableFunc(samples, func(a, b *monitor.Sample) int { return a.Time.Compare(b.Time) })
			for _, s := range samples {
				if err := out.Sample(s); err != nil {
					return err
				}
			}
			return nil
		})
}

// join adds to s the clients of another run on the same machine, and the processes that only that
// run monitored.
func join(s, other *monitor.Sample, worker string) {
	for _, p := range other.Procs {
		if p.Role == "client" {
			p.Name += " (worker " + worker + ")"
		} else if slices.ContainsFunc(s.Procs, func(q monitor.Proc) bool { return q.Name == p.Name && q.Role == p.Role }) {
			continue
		}
		s.Procs = append(s.Procs, p)
	}
	s.Cost += other.Cost
}

// machine returns the name of the run's machine. Different machines with the same name get
// different names.
func (r *run) machine(runs []*run) string {
	name := cmp.Or(r.host, "machine of worker "+r.name)
	if slices.ContainsFunc(runs, func(o *run) bool { return o.host == r.host && o.boot != r.boot }) {
		name += " (booted " + r.boot + ")"
	}
	return name
}
