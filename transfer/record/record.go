// Package record creates a run directory of requests: the copies between sites, attempt by attempt
// and second by second, and the samples of the hosts of the sites during that time. Transfers thus
// have the same records as any other run.
//
// It reads from a coordinator and changes nothing there. It is the only connection between
// transfers and the readers of run directories, which do not depend on coordinators.
package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/scenario"
	"weir/transfer"
	"weir/transfer/client"
)

// A Step is one case: requests that belong together.
type Step struct {
	Name     string // the case, in words
	Requests []int64
	AtOnce   int // copies that ran at once; 0: computed from the attempts
	Notes    []Note
}

// A Note is something that happened meanwhile, such as a site that was switched off.
type Note struct {
	Time time.Time
	Text string
}

// A Run is the content of a run directory.
type Run struct {
	Name    string // of the scenario
	Weir    string // version of the program
	Command []string
	Steps   []Step // one after another
}

// Write creates the run directory dir of ended requests, or of the present state of requests that
// have not ended.
func Write(ctx context.Context, c *client.Client, dir string, r Run) (err error) {
	var all []*taken
	for i := range r.Steps {
		t, err := take(ctx, c, i+1, &r.Steps[i])
		if err != nil {
			return err
		}
		all = append(all, t)
	}
	if len(all) == 0 {
		return errors.New("there is nothing to record: name some requests")
	}
	sites, err := hosts(ctx, c, all)
	if err != nil {
		return err
	}
	w, err := results.Create(dir, plan(r, all), results.About{Weir: r.Weir, Command: r.Command, Start: all[0].begin})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if err := events(w, all); err != nil {
		return err
	}
	for _, t := range all {
		for _, iv := range t.intervals(sites) {
			if err := w.Interval(iv); err != nil {
				return err
			}
		}
		for i := range t.list {
			if err := w.Transfer(&t.list[i]); err != nil {
				return err
			}
		}
	}
	for _, s := range samples(sites, all) {
		if err := w.Sample(s); err != nil {
			return err
		}
	}
	return nil
}

// ByTime makes steps of requests: requests that were open at the same time are one step.
func ByTime(ctx context.Context, c *client.Client, ids []int64) ([]Step, error) {
	var all []transfer.Request
	for _, id := range ids {
		r, err := c.Request(ctx, id)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b transfer.Request) int { return cmp.Or(a.Made.Compare(b.Made), cmp.Compare(a.ID, b.ID)) })
	var steps []Step
	var end time.Time
	for _, r := range all {
		if n := len(steps); n > 0 && r.Made.Before(end) {
			s := &steps[n-1]
			s.Requests = append(s.Requests, r.ID)
			s.Name = say.Plural(len(s.Requests), "request")
		} else {
			steps = append(steps, Step{Requests: []int64{r.ID}, Name: fmt.Sprintf("request %d: %s to %s", r.ID, r.Dataset, r.To)})
		}
		ended := r.Ended
		if !r.Status.Ended() {
			ended = time.Now()
		}
		if ended.After(end) {
			end = ended
		}
	}
	return steps, nil
}

// plan returns the plan of the run, as far as the format of run directories can express it.
func plan(r Run, all []*taken) *scenario.Plan {
	p := &scenario.Plan{Version: scenario.PlanVersion, Name: r.Name, Driver: "transfer", Model: "closed"}
	p.Work.Kind, p.Work.Verify, p.Work.Sum = "copy", 1, "adler32"
	var from, to []string
	for _, t := range all {
		p.Steps = append(p.Steps, scenario.Step{Number: t.step, Clients: t.atOnce, Duration: unit.Duration(t.end.Sub(t.begin))})
		for _, a := range t.list {
			to = append(to, a.Dest)
			if a.Source != "" {
				from = append(from, a.Source)
			}
		}
	}
	p.Target = "sites " + named(from) + " to " + named(to)
	return p
}

func named(names []string) string {
	slices.Sort(names)
	names = slices.Compact(names)
	text := ""
	for i, n := range names {
		switch {
		case i > 0 && i == len(names)-1:
			text += " and "
		case i > 0:
			text += ", "
		}
		text += n
	}
	return text
}

// events writes the single events of the run.
func events(w *results.Writer, all []*taken) error {
	list := []measure.Event{{Time: all[0].begin, Kind: "run", Text: "begins"}}
	for _, t := range all {
		list = append(list, measure.Event{Time: t.begin, Kind: measure.EventStep, Step: t.step, Clients: t.atOnce,
			Duration: t.end.Sub(t.begin).Seconds(), Text: t.name})
		for _, n := range t.notes {
			list = append(list, measure.Event{Time: n.Time, Kind: measure.EventSite, Step: t.step, Text: n.Text})
		}
		list = append(list, t.failures()...)
	}
	slices.SortStableFunc(list, func(a, b measure.Event) int { return a.Time.Compare(b.Time) })
	list = append(list, measure.Completed().Event(all[len(all)-1].end, 0))
	for _, e := range list {
		if err := w.Event(e); err != nil {
			return err
		}
	}
	return nil
}
