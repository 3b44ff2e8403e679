// Package merge makes one run of several runs of the same plan that were started at the same time,
// on several machines.
//
// Measurements and samples are added second by second, by the clocks of the machines, which were
// not compared. A second counts as the hold of a step only if all runs held that step throughout
// it: runs that began a few seconds apart have a shorter hold, and runs that never held a step
// together have no hold.
package merge

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/scenario"
)

// Runs makes dir a run directory with the sum of the runs in dirs. It fills in Start and
// Environment of about. It returns an error for runs of different plans, the same run twice, runs
// that did not overlap in time, searches, runs over emulated links, resumed runs, and a run that
// has not ended.
func Runs(dir string, dirs []string, about results.About) (err error) {
	runs, err := open(dirs)
	if err != nil {
		return err
	}
	plan, err := sumPlan(runs)
	if err != nil {
		return err
	}
	about.Start, about.Environment = runs[0].About.Start, runs[0].About.Environment
	for _, r := range runs {
		about.Discard = about.Discard || r.About.Discard
		if r.About.Start.Before(about.Start) {
			about.Start = r.About.Start
		}
	}
	out, err := results.Create(dir, plan, about)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	return errors.Join(addIntervals(out, runs), addSamples(out, runs), addEvents(out, plan, runs))
}

// A run is one of the merged runs.
type run struct {
	*results.Run
	name    string // name as a worker in the result
	host    string // its machine
	boot    string // distinguishes machines of the same name
	events  []*measure.Event
	begun   time.Time    // start of its first step
	over    time.Time    // time of its last event
	steps   map[int]bool // steps that began
	end     measure.Ending
	last    place     // of the latest added interval
	begin   time.Time // start of its first interval
	until   time.Time // end of the latest added interval
	second  int64     // in which that interval began
	seconds int       // number of seconds with intervals
}

// A place is a position in the plan.
type place struct {
	step  int
	phase string
}

// open opens the runs and reads their events.
func open(dirs []string) (runs []*run, err error) {
	seen := map[string]string{}
	for i, dir := range dirs {
		of, err := results.Open(dir)
		if err != nil {
			return nil, err
		}
		id := fmt.Sprint(of.About.Run, of.About.Start.UnixNano())
		if before, twice := seen[id]; twice {
			return nil, fmt.Errorf("%s and %s are the same run (%s): name it once", before, dir, of.About.Run)
		}
		seen[id] = dir
		r := &run{Run: of, name: fmt.Sprint(i + 1), steps: map[int]bool{},
			end: measure.Ending{Outcome: measure.BrokenOff, Text: "broken off: it has no end"}}
		var e struct {
			Host string `json:"hostname"`
			Boot string `json:"boot_time"`
		}
		_ = json.Unmarshal(of.About.Environment, &e) // environment of another program: unknown
		r.host, r.boot = e.Host, e.Boot
		if err := r.readEvents(); err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	if len(runs) < 2 {
		return nil, errors.New("name at least two runs to merge")
	}
	latest, soonest := runs[0], runs[0]
	for _, r := range runs {
		if r.begun.After(latest.begun) {
			latest = r
		}
		if r.over.Before(soonest.over) {
			soonest = r
		}
	}
	if latest.begun.After(soonest.over) {
		return nil, fmt.Errorf("%s was over at %s, and %s began at %s: only simultaneous loads can be added; start the runs together",
			soonest.Dir, soonest.over.Local().Format(time.TimeOnly), latest.Dir, latest.begun.Local().Format(time.TimeOnly))
	}
	return runs, nil
}

// readEvents reads the events. It returns an error if the run cannot be added to others.
func (r *run) readEvents() error {
	switch {
	case r.Plan.Find != nil:
		return fmt.Errorf("%s: a search cannot be merged with others: each chose its own loads", r.Dir)
	case len(r.Plan.Links) > 0:
		return fmt.Errorf("%s: its links were emulated on its own machine: it cannot be merged with others", r.Dir)
	}
	if f, err := results.Follow(r.Dir); err != nil {
		return err
	} else if !f.Over() {
		return fmt.Errorf("%s: the run still goes on: merge it when it has ended", r.Dir)
	}
	for e, err := range r.Events() {
		if err != nil {
			return err
		}
		switch e.Kind {
		case measure.EventResume:
			return fmt.Errorf("%s: the run was resumed, and the numbers of its steps are no longer those of the others", r.Dir)
		case measure.EventStep:
			if len(r.steps) == 0 {
				r.begun = e.Time
			}
			r.steps[e.Step] = true
		case measure.EventEnd:
			r.end = e.Ending()
		}
		r.events, r.over = append(r.events, e), e.Time
	}
	if r.end.Outcome == measure.BrokenOff { // the time of its end is unknown
		r.over = r.About.Start.Add(r.Plan.Time())
	}
	return nil
}

// sumPlan returns the plan of all runs together: each step has the clients and the rate of all
// runs.
func sumPlan(runs []*run) (*scenario.Plan, error) {
	plan := *runs[0].Plan
	for _, r := range runs[1:] {
		if keys := plan.Differs(r.Plan); len(keys) > 0 {
			return nil, fmt.Errorf("%s and %s are runs of different plans: %s %s not the same", runs[0].Dir, r.Dir, strings.Join(keys, ", "),
				say.Either(len(keys), "is", "are"))
		}
	}
	plan.Steps = append([]scenario.Step(nil), plan.Steps...)
	for i := range plan.Steps {
		plan.Steps[i].Clients *= len(runs)
		plan.Steps[i].Rate *= unit.Rate(len(runs))
	}
	plan.Stop = scenario.Stop{} // each run had its own conditions
	return &plan, nil
}
