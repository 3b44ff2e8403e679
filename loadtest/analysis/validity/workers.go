package validity

import (
	"cmp"
	"slices"
	"time"

	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/measure"
)

// missingFail is the share of a step's planned clients that may be missing before its place on the
// curve is wrong.
const missingFail = 0.1

// A WorkerFigure is the outcome of one worker of a run on many machines. Times are seconds since the load began.
type WorkerFigure struct {
	Name     string   `json:"worker"`
	State    string   `json:"state"` // as in the events; came: it stayed to the end
	Host     string   `json:"host,omitempty"`
	Job      string   `json:"job,omitempty"`    // its name in the batch system
	Clients  int      `json:"clients"`          // the number of its last clients, or its maximum
	Came     *float64 `json:"came_seconds"`     // nil: it never came; below 0: before the load began
	Gone     *float64 `json:"gone_seconds"`     // nil: it did not leave before the run ended
	Offset   *float64 `json:"offset_seconds"`   // by which its clock was ahead; nil: not compared
	Doubt    *float64 `json:"doubt_seconds"`    // the largest error of Offset
	Reported int      `json:"reported_seconds"` // seconds of the run that it has reported
	Why      string   `json:"why,omitempty"`    // of all states but came and left

	Scratch *measure.Scratch `json:"scratch,omitempty"` // of its jobs' copies of files; nil: no copies
}

// Workers returns the outcome of each worker, in the order of the first events about them; nil for
// a run without workers.
func Workers(d *steps.Run) []WorkerFigure {
	var all []WorkerFigure
	place := map[string]int{}
	begin := d.LoadBegan()
	for _, e := range d.Events {
		w := e.Worker
		if w == nil {
			continue
		}
		i, known := place[w.Name]
		if !known {
			i = slices.IndexFunc(all, func(f WorkerFigure) bool { return f.Came == nil && w.Job != "" && f.Job == w.Job })
			if i < 0 { // otherwise there was an event about its job before it came
				i = len(all)
				all = append(all, WorkerFigure{})
			}
			place[w.Name], all[i].Name = i, w.Name
		}
		f := &all[i]
		if w.State == measure.Stages {
			f.Scratch = w.Scratch
			continue
		}
		f.Host, f.Job, f.State, f.Why = cmp.Or(w.Host, f.Host), cmp.Or(w.Job, f.Job), w.State, e.Text
		f.Clients, f.Reported = cmp.Or(w.Clients, f.Clients), max(w.Seconds, f.Reported)
		at := e.Time.Sub(begin).Seconds() - w.Silent
		switch w.State {
		case measure.Came:
			f.Came, f.Why = &at, ""
			if w.Doubt > 0 {
				f.Offset, f.Doubt = &w.Offset, &w.Doubt
			}
		case measure.Left:
			f.Gone, f.Why = &at, ""
		case measure.Lost:
			f.Gone = &at
		}
	}
	return all
}

// MissingWorkers records for each step the number of workers and clients that were missing. If each
// client is a separate job, the number of jobs that did not begin comes from the controller.
func MissingWorkers(d *steps.Run, curve *steps.Curve, workers []WorkerFigure) {
	begun := map[int]int{}
	for _, e := range d.Events {
		begun[e.Step] += e.Missing
	}
	ends := d.HoldEnds()
	for _, s := range curve.Steps {
		if s.WorkersMissing = begun[s.Step]; !d.Plan.On.JobPerClient {
			end := ends[s.Step].Sub(d.LoadBegan()).Seconds()
			for w := range workers {
				if came, gone := workers[w].Came, workers[w].Gone; came == nil || *came > end || gone != nil &&
					workers[w].State == measure.Lost && *gone < end {
					s.WorkersMissing++
				}
			}
		}
		if s.WorkersMissing > 0 && !curve.Open() {
			s.ClientsMissing = max(0, float64(cmp.Or(s.Planned, s.Clients))-s.ActiveClients)
		}
	}
}

// checkWorkers checks whether all workers of a run with several workers came, and stayed to its
// end: the clients of a missing worker are missing, although the curve is drawn over the planned
// clients. It returns nil for a run of one process.
func (d *Evidence) checkWorkers(curve *steps.Curve) *Check {
	c := &Check{Name: "workers", Status: OK}
	lost, first := d.lost()
	var never []string
	for w := range basics.Each(d.Workers) {
		if w.Came == nil {
			never = append(never, w.Why)
		}
	}
	if began := d.Run.LoadBegan(); len(never) > 0 && (first.IsZero() || began.Before(first)) {
		first = began
	}
	n := max(d.Run.Processes(), len(d.Workers))
	if n < 2 && len(lost)+len(never) == 0 {
		return nil
	}
	if len(lost) > 0 {
		c.AddSome(lost)
	}
	if len(never) > 0 {
		c.addFact("check.workers.never_started", "missing", len(never), "workers", n, "reasons", fact.List(never))
	}
	if len(lost)+len(never) > 0 {
		c.Status = Warn
		d.missed(c, curve, first)
	} else {
		c.addFact("check.workers.all", "workers", n)
	}
	if d.Run.Plan.On.JobPerClient {
		d.slots(curve, c)
	} else {
		late(d.Workers, c)
	}
	clocks(curve, d.Workers, c)
	return c
}

// lost lists the workers that were lost, and returns the time at which the first of them was lost.
func (d *Evidence) lost() (all []fact.Fact, first time.Time) {
	for _, e := range d.Run.Events {
		if e.Worker == nil || e.Worker.State != measure.Lost {
			continue
		}
		at := e.Time.Add(-basics.Duration(e.Worker.Silent)) // recorded when it was given up
		if len(all) == 0 || at.Before(first) {
			first = at
		}
		all = append(all, d.lostWorker(e.Worker.Name, at))
	}
	return all, first
}

// missed adds the number of clients that were missing from t on, if it is known, and fails if the
// curve is wrong because of it. If each client is a job, the curve is drawn over the clients that
// were present.
func (d *Evidence) missed(c *Check, curve *steps.Curve, t time.Time) {
	missing, s := d.missing(curve, t)
	if s == nil || curve.Open() {
		return
	}
	c.addFact("check.workers.clients_missing", "active", s.ActiveClients, "planned", curve.Count(cmp.Or(s.Planned, s.Clients)),
		"share", missing)
	if missing >= missingFail && !d.Run.Plan.On.JobPerClient {
		c.addFact("check.workers.curve_wrong")
		c.Status = Fail
	}
}

// slots reports the first step whose clients were never all present at once.
func (d *Evidence) slots(curve *steps.Curve, c *Check) {
	most := map[int]float64{} // by step
	for x := range basics.Each(d.Run.Seconds) {
		most[x.Step] = max(most[x.Step], x.Clients)
	}
	for _, s := range curve.Steps {
		if most[s.Step] < steps.AllThere*float64(s.Planned) {
			c.addFact("check.workers.slots", "planned", curve.Count(s.Planned), "step", s.Step, "active", most[s.Step])
			return
		}
	}
}

// late reports workers that came after the load had begun.
func late(workers []WorkerFigure, c *Check) {
	n, last := 0, 0.0
	for w := range basics.Each(workers) {
		if w.Came != nil && *w.Came > 0.5 {
			n, last = n+1, max(last, *w.Came)
		}
	}
	if n > 0 {
		c.addFact("check.workers.late", "workers", n, "seconds", last)
	}
}

// lostWorker reports that a worker was lost at t, with the step.
func (d *Evidence) lostWorker(name string, t time.Time) fact.Fact {
	for s := range basics.Each(d.Run.Seconds) {
		if t.Before(s.Start) || !t.Before(s.End()) {
			continue
		}
		if s.Phase == measure.Measured {
			return fact.New("check.workers.lost", "worker", name, "step", s.Step)
		}
		return fact.New("check.workers.lost_between", "worker", name, "step", s.Step)
	}
	return fact.New("check.workers.lost_outside", "worker", name)
}

// missing returns the largest share of planned clients that were not present in the hold of a step
// that ended after t, and that step; nil without such a step.
func (d *Evidence) missing(curve *steps.Curve, t time.Time) (share float64, worst *steps.Working) {
	ends := d.Run.HoldEnds()
	for _, s := range curve.Steps {
		planned := cmp.Or(s.Planned, s.Clients)
		if planned <= 0 || !ends[s.Step].After(t) {
			continue
		}
		if x := 1 - stats.Ratio(s.ActiveClients, float64(planned)); worst == nil || x > share {
			share, worst = x, s
		}
	}
	return max(0, share), worst
}
