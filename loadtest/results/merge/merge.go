// Package merge makes one run of several that were recorded apart: parts of one
// plan, or the same plan at the same time on several machines.
//
// What clients saw adds up second by second, by the clocks of the machines as
// they were: they were not compared while the runs were measured. Only seconds in which
// all runs held a step count as its hold; so runs that began a little apart
// have a shorter hold, and runs that never held a step together have none.
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

// Runs makes dir a run directory in which the given ones are added up. about
// says by whom; its Start and Environment are filled in. It refuses runs of different
// plans, of the same part, the same run twice, and those that cannot be added
// up: searches, runs over emulated links, resumed ones, and one that still goes on.
func Runs(dir string, dirs []string, about results.About) (err error) {
	parts, err := open(dirs)
	if err != nil {
		return err
	}
	plan, absent, err := whole(parts)
	if err != nil {
		return err
	}
	about.Start, about.Environment = parts[0].About.Start, parts[0].About.Environment
	for _, p := range parts {
		about.Discard = about.Discard || p.About.Discard
		if p.About.Start.Before(about.Start) {
			about.Start = p.About.Start
		}
	}
	out, err := results.Create(dir, plan, about)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	return errors.Join(addIntervals(out, parts), addSamples(out, parts), addEvents(out, plan, parts, absent))
}

// A part is one of the runs.
type part struct {
	*results.Run
	name     string // of the worker that it is
	host     string // its machine
	boot     string // tells machines of the same name apart
	events   []*measure.Event
	begun    time.Time    // of its first step
	over     time.Time    // of its last event
	steps    map[int]bool // that it began
	whole    bool         // it completed its last step
	ended    bool         // it ended, and was not killed
	first    time.Time    // of its load
	last     time.Time    // the time of its last report
	reported int          // seconds
}

// open opens the runs and reads their events.
func open(dirs []string) ([]*part, error) {
	var parts []*part
	seen := map[string]string{}
	for i, dir := range dirs {
		run, err := results.Open(dir)
		if err != nil {
			return nil, err
		}
		id := fmt.Sprint(run.About.Run, run.About.Start.UnixNano())
		if before, twice := seen[id]; twice {
			return nil, fmt.Errorf("%s and %s are the same run (%s): name it once", before, dir, run.About.Run)
		}
		seen[id] = dir
		p := &part{Run: run, name: fmt.Sprint(i + 1), steps: map[int]bool{}}
		if p.Plan.Part != nil {
			p.name = fmt.Sprint(p.Plan.Part.Number)
		}
		p.about()
		if err := p.read(); err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	if len(parts) == 0 || len(parts) == 1 && parts[0].Plan.Part == nil {
		return nil, errors.New("name at least two runs to merge")
	}
	return parts, atOnce(parts)
}

// atOnce refuses runs of which one was over before another began.
func atOnce(parts []*part) error {
	latest, soonest := parts[0], parts[0]
	for _, p := range parts {
		if p.begun.After(latest.begun) {
			latest = p
		}
		if p.over.Before(soonest.over) {
			soonest = p
		}
	}
	if !latest.begun.After(soonest.over) {
		return nil
	}
	return fmt.Errorf("%s was over at %s, and %s began at %s: only simultaneous loads can be added (weir run --begin has runs on "+
		"several machines begin together)",
		soonest.Dir, soonest.over.Local().Format(time.TimeOnly), latest.Dir, latest.begun.Local().Format(time.TimeOnly))
}

// about reads on which machine the run was.
func (p *part) about() {
	var e struct {
		Host string `json:"hostname"`
		Boot string `json:"boot_time"`
	}
	_ = json.Unmarshal(p.About.Environment, &e) // of another program: not known
	p.host, p.boot = e.Host, e.Boot
}

// read reads the events, and refuses a run that is none to be added up.
func (p *part) read() error {
	switch {
	case p.Plan.Find != nil:
		return fmt.Errorf("%s: a search cannot be merged with others: each chose its own loads", p.Dir)
	case len(p.Plan.Links) > 0:
		return fmt.Errorf("%s: its links were emulated on its own machine: it cannot be merged with others", p.Dir)
	}
	if f, err := results.Follow(p.Dir); err != nil {
		return err
	} else if !f.Over() {
		return fmt.Errorf("%s: the run still goes on: merge it when it has ended", p.Dir)
	}
	for e, err := range p.Events() {
		if err != nil {
			return err
		}
		switch e.Kind {
		case "resume":
			return fmt.Errorf("%s: the run was resumed, and the numbers of its steps are no longer those of the others", p.Dir)
		case "step":
			if len(p.steps) == 0 {
				p.begun = e.Time
			}
			p.steps[e.Step] = true
		case "end":
			p.ended, p.whole = true, e.Ending().Outcome == measure.Complete
		}
		p.events, p.over = append(p.events, e), e.Time
	}
	if !p.ended { // killed: at an unknown time
		p.over = p.About.Start.Add(p.Plan.Time())
	}
	return nil
}

// whole returns the plan that the runs are of together, and the numbers of parts
// that are missing.
func whole(parts []*part) (*scenario.Plan, []int, error) {
	first := parts[0]
	one := planOf(first)
	at := map[int]string{}
	for _, p := range parts {
		if (p.Plan.Part == nil) != (first.Plan.Part == nil) {
			return nil, nil, fmt.Errorf("%s is part of a plan, and %s is not: merge runs of one kind", cond(p.Plan.Part != nil, p, first).Dir,
				cond(p.Plan.Part == nil, p, first).Dir)
		}
		if keys := one.Differs(planOf(p)); len(keys) > 0 {
			return nil, nil, fmt.Errorf("%s and %s are runs of different plans: %s %s not the same", first.Dir, p.Dir, strings.Join(keys, ", "),
				say.Either(len(keys), "is", "are"))
		}
		if p.Plan.Part == nil {
			continue
		}
		number, of := p.Plan.Part.Number, p.Plan.Part.Of
		if of != first.Plan.Part.Of {
			return nil, nil, fmt.Errorf("%s is one of %d parts, and %s one of %d: they overlap", first.Dir, first.Plan.Part.Of, p.Dir, of)
		}
		if before := at[number]; before != "" {
			return nil, nil, fmt.Errorf("%s and %s are both part %d of %d: name one of them", before, p.Dir, number, of)
		}
		at[number] = p.Dir
	}
	plan := *one
	if first.Plan.Part == nil {
		return times(&plan, len(parts)), nil, nil
	}
	var absent []int
	for i := range first.Plan.Part.Of {
		if at[i+1] == "" {
			absent = append(absent, i+1)
		}
	}
	return &plan, absent, nil
}

func cond[T any](is bool, a, b T) T {
	if is {
		return a
	}
	return b
}

// planOf is the plan that p's is a part of, or its own.
func planOf(p *part) *scenario.Plan {
	if p.Plan.Part != nil {
		return p.Plan.Part.Whole
	}
	return p.Plan
}

// times is the plan of n runs of p at the same time.
func times(p *scenario.Plan, n int) *scenario.Plan {
	p.Steps = append([]scenario.Step(nil), p.Steps...)
	for i := range p.Steps {
		p.Steps[i].Clients *= n
		p.Steps[i].Rate *= unit.Rate(n)
	}
	p.Stop = scenario.Stop{} // each had its own
	return p
}
