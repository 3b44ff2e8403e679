package merge

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/scenario"
)

// addEvents writes the events of all runs in the order of time: errors and warnings with their
// source, each step once, and an event for each run as a worker.
func addEvents(out *results.Writer, plan *scenario.Plan, runs []*run) (err error) {
	var all []measure.Event
	steps := map[int]measure.Event{}
	for _, r := range runs {
		for _, e := range r.events {
			switch e.Kind {
			case measure.EventStep:
				if first, ok := steps[e.Step]; !ok || e.Time.Before(first.Time) {
					steps[e.Step] = *e
				}
			case measure.EventRun, measure.EventPhase, measure.EventEnd:
			default:
				of := *e
				of.Text = r.label() + ": " + e.Text
				all = append(all, of)
			}
		}
		all = append(all, r.worker()...)
	}
	for _, s := range plan.Steps {
		if e, began := steps[s.Number]; began {
			e.Clients, e.Rate = s.Clients, float64(s.Rate)
			e.Text = fmt.Sprintf("step %d: %s in %s", s.Number, say.Plural(s.Clients, "client"), say.Plural(len(runs), "run"))
			all = append(all, e)
		}
	}
	first, latest, last, ending := runs[0].About.Start, time.Time{}, runs[0].About.Start, measure.Completed()
	for _, r := range runs {
		if r.end.Outcome.Worse(ending.Outcome) {
			ending = r.end
		}
		if r.seconds > 0 && (latest.IsZero() || r.begin.Before(first)) {
			first = r.begin
		}
		if r.begin.After(latest) {
			latest = r.begin
		}
		if r.until.After(last) {
			last = r.until
		}
	}
	all = append(all, measure.Event{Time: first, Kind: measure.EventWarning, Text: fmt.Sprintf("merged of %s that began within %s of each "+
		"other by their own clocks, which were not compared: only seconds in which all of them held a step are measured",
		say.Plural(len(runs), "run"), unit.Seconds(max(latest.Sub(first), 0).Seconds()))})
	slices.SortStableFunc(all, func(a, b measure.Event) int { return a.Time.Compare(b.Time) })
	for _, e := range append(all, ending.Event(last, 0)) {
		err = errors.Join(err, out.Event(e))
	}
	return err
}

// label returns the name of the run as a worker.
func (r *run) label() string {
	if r.host == "" {
		return "worker " + r.name
	}
	return "worker " + r.name + " on " + r.host
}

// worker returns the events of the run as a worker: it started, and it ended or was lost.
func (r *run) worker() []measure.Event {
	text := r.label() + " (run " + r.About.Run + ")"
	came := measure.Worker{Name: r.name, State: measure.Came, Host: r.host, Clients: r.Plan.MostClients()}
	if r.seconds == 0 {
		came.State = measure.Absent
		return []measure.Event{{Time: r.About.Start, Kind: measure.EventWorker, Text: text + " has recorded nothing", Worker: &came}}
	}
	gone := measure.Worker{Name: r.name, State: measure.Left, Host: r.host, Seconds: r.seconds}
	end := " ended"
	switch {
	case r.end.Outcome == measure.BrokenOff:
		gone.State, end = measure.Lost, " was broken off: its clients are missing from here on"
	case r.end.Outcome != measure.Complete:
		gone.State, end = measure.Lost, " ended before its time: its clients are missing from here on"
	}
	return []measure.Event{
		{Time: r.begin, Kind: measure.EventWorker, Text: text + " began, by its own clock", Worker: &came},
		{Time: r.until, Kind: measure.EventWorker, Text: text + end, Worker: &gone},
	}
}
