package merge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/scenario"
)

// addEvents writes what happened in all runs, in the order of time: their errors
// and warnings with their source, each step once, and the runs as workers.
func addEvents(out *results.Writer, plan *scenario.Plan, parts []*part, absent []int) error {
	var all []measure.Event
	steps := map[int]measure.Event{}
	for _, p := range parts {
		for _, e := range p.events {
			switch e.Kind {
			case measure.EventStep:
				if have, ok := steps[e.Step]; !ok || e.Time.Before(have.Time) {
					steps[e.Step] = *e
				}
			case measure.EventRun, measure.EventPhase, measure.EventEnd:
			default:
				reported := *e
				reported.Text = fmt.Sprintf("worker %s%s: %s", p.name, on(p.host), e.Text)
				all = append(all, reported)
			}
		}
		all = append(all, p.workers()...)
	}
	for _, s := range plan.Steps {
		e, began := steps[s.Number]
		if !began {
			continue
		}
		e.Clients, e.Rate = s.Clients, float64(s.Rate)
		e.Text = fmt.Sprintf("step %d: %s in %s", s.Number, say.Plural(s.Clients, "client"), say.Plural(len(parts), "run"))
		all = append(all, e)
	}
	begin, last := bounds(parts)
	for _, n := range absent {
		all = append(all, measure.Event{Time: begin, Kind: measure.EventWorker,
			Text:   fmt.Sprintf("part %d is missing: its clients did not run, or their operations are unknown", n),
			Worker: &measure.Worker{Name: fmt.Sprint(n), State: measure.Absent}})
	}
	all = append(all, skew(parts, begin))
	slices.SortStableFunc(all, func(a, b measure.Event) int { return a.Time.Compare(b.Time) })
	all = append(all, ending(parts).Event(last, 0))
	for _, e := range all {
		if err := out.Event(e); err != nil {
			return err
		}
	}
	return nil
}

func on(host string) string {
	if host == "" {
		return ""
	}
	return " on " + host
}

// workers tells that a run began and how it ended.
func (p *part) workers() []measure.Event {
	came := measure.Worker{Name: p.name, State: measure.Came, Host: p.host, Clients: p.Plan.MostClients()}
	gone := measure.Worker{Name: p.name, State: measure.Left, Host: p.host, Seconds: p.reported}
	if p.reported == 0 {
		came.State = measure.Absent
		return []measure.Event{{Time: p.About.Start, Kind: measure.EventWorker, Text: fmt.Sprintf("worker %s%s (run %s) has recorded nothing",
			p.name, on(p.host), p.About.Run), Worker: &came}}
	}
	text := fmt.Sprintf("worker %s%s (run %s) came to its end", p.name, on(p.host), p.About.Run)
	switch {
	case !p.ended:
		gone.State, text = measure.Lost, fmt.Sprintf("worker %s%s (run %s) was broken off: its clients are missing from here on", p.name,
			on(p.host), p.About.Run)
	case !p.whole:
		gone.State, text = measure.Lost, fmt.Sprintf("worker %s%s (run %s) ended before its time: its clients are missing from here on", p.name,
			on(p.host), p.About.Run)
	}
	return []measure.Event{
		{Time: p.first, Kind: measure.EventWorker, Text: fmt.Sprintf("worker %s%s (run %s) began, by its own clock", p.name, on(p.host),
			p.About.Run), Worker: &came},
		{Time: p.last, Kind: measure.EventWorker, Text: text, Worker: &gone},
	}
}

// bounds are when the first run began and the last one ended.
func bounds(parts []*part) (begin, end time.Time) {
	for _, p := range parts {
		if p.reported == 0 {
			continue
		}
		if begin.IsZero() || p.first.Before(begin) {
			begin = p.first
		}
		if p.last.After(end) {
			end = p.last
		}
	}
	if begin.IsZero() {
		begin, end = parts[0].About.Start, parts[0].About.Start
	}
	return begin, end
}

// skew warns of what is not known of the clocks.
func skew(parts []*part, begin time.Time) measure.Event {
	latest := begin
	for _, p := range parts {
		if p.first.After(latest) {
			latest = p.first
		}
	}
	text := fmt.Sprintf("merged of %s that began within %s of each other by their own clocks, which were not compared: "+
		"what happened at once is known as well as these were right", say.Plural(len(parts), "run"), unit.Seconds(latest.Sub(begin).Seconds()))
	return measure.Event{Time: begin, Kind: measure.EventWarning, Text: text}
}

// ending is how the runs ended: as the one of which most may be missing, in the
// words of all that did not complete.
func ending(parts []*part) measure.Ending {
	var why []string
	all := measure.Completed()
	for _, p := range parts {
		end := measure.Ending{Outcome: measure.BrokenOff, Text: "broken off: it has no end"}
		for _, e := range p.events {
			if e.Kind == measure.EventEnd {
				end = e.Ending()
			}
		}
		if end.Outcome.Worse(all.Outcome) {
			all.Outcome, all.Reason = end.Outcome, end.Reason
		}
		if end.Outcome != measure.Complete && !slices.Contains(why, end.Text) {
			why = append(why, end.Text)
		}
	}
	if len(why) > 0 {
		all.Text = strings.Join(why, "; ")
	}
	return all
}
