package analysis

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"weir/internal/unit"
	"weir/loadtest/measure"
)

// missingFail is the share of a step's planned clients that may be missing before its place on the curve is wrong.
const missingFail = 0.1

// blurred is how far the clock of a worker may be off before its seconds are not those of the others.
const blurred = 0.1

// blurredHold is the share of a step's hold that such a clock must be off by before the step's figures are wrong.
const blurredHold = 0.05

// A WorkerFigure is the outcome of one worker of a run on many machines. Times are seconds since the load began.
type WorkerFigure struct {
	Name     string   `json:"worker"`
	State    string   `json:"state"` // as in the events; came: it was there to the end
	Host     string   `json:"host,omitempty"`
	Job      string   `json:"job,omitempty"`    // as its batch system calls it
	Clients  int      `json:"clients"`          // that it was last, or the most that it could be
	Came     *float64 `json:"came_seconds"`     // nil: it never came; below 0: before the load began
	Gone     *float64 `json:"gone_seconds"`     // nil: it did not leave before the run ended
	Offset   *float64 `json:"offset_seconds"`   // how far its clock was ahead; nil: not compared
	Doubt    *float64 `json:"doubt_seconds"`    // the most by which that is wrong
	Reported int      `json:"reported_seconds"` // seconds of the run that it has reported
	Why      string   `json:"why,omitempty"`    // of all but came and left

	Scratch *measure.Scratch `json:"scratch,omitempty"` // where its jobs put their copies of files; nil: nowhere
}

// workers returns the outcome of each worker, in the order of the first events about them; nil for a run of none.
func (d *data) workers() []WorkerFigure {
	var all []WorkerFigure
	place := map[string]int{}
	begin := d.loadBegan()
	for _, e := range d.events {
		w := e.Worker
		if w == nil {
			continue
		}
		i, known := place[w.Name]
		if !known {
			i = slices.IndexFunc(all, func(f WorkerFigure) bool { return f.Came == nil && w.Job != "" && f.Job == w.Job })
			if i < 0 { // else there was an event about its job before it came
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

// missingWorkers notes for each step how many workers and clients were missing. Where each client is a job of its
// own, the controller says how many did not begin.
func (d *data) missingWorkers(f *Findings) {
	begun := map[int]int{}
	for _, e := range d.events {
		begun[e.Step] += e.Missing
	}
	ends := d.holdEnds()
	for s := range each(f.Curve) {
		if s.WorkersMissing = begun[s.Step]; !d.plan.On.JobPerClient {
			end := ends[s.Step].Sub(d.loadBegan()).Seconds()
			for w := range f.Workers {
				if came, gone := f.Workers[w].Came, f.Workers[w].Gone; came == nil || *came > end || gone != nil &&
					f.Workers[w].State == measure.Lost && *gone < end {
					s.WorkersMissing++
				}
			}
		}
		if s.WorkersMissing > 0 && !f.Open() {
			s.ClientsMissing = max(0, float64(cmp.Or(s.Planned, s.Clients))-s.ActiveClients)
		}
	}
}

// holdEnds returns when the hold of each step ended.
func (d *data) holdEnds() map[int]time.Time {
	ends := map[int]time.Time{}
	for s := range each(d.seconds) {
		if s.phase == measure.Measured {
			ends[s.step] = s.end()
		}
	}
	return ends
}

// loadBegan is when the first step began.
func (d *data) loadBegan() time.Time {
	for _, e := range d.events {
		if e.Kind == measure.EventStep {
			return e.Time
		}
	}
	return d.begin()
}

// checkWorkers asks whether all workers of a run of many came, and stayed to its end: the clients of one that is not
// there are missing, though the curve is drawn over the planned ones. It returns nil for a run of one process.
func (d *data) checkWorkers(f *Findings) *Check {
	c := &Check{Name: "workers", Status: OK}
	lost, first := d.lost()
	var never []string
	for w := range each(f.Workers) {
		if w.Came == nil {
			never = append(never, w.Why)
		}
	}
	if began := d.loadBegan(); len(never) > 0 && (first.IsZero() || began.Before(first)) {
		first = began
	}
	n := max(d.processes(), len(f.Workers))
	if n < 2 && len(lost)+len(never) == 0 {
		return nil
	}
	if len(lost) > 0 {
		c.addDetail("lost %s", strings.Join(head(lost, 3), ", "))
	}
	if len(never) > 0 {
		c.addDetail("%d of %d never started: %s", len(never), n, strings.Join(head(never, 3), "; "))
	}
	if len(lost)+len(never) > 0 {
		c.Status = Warn
		if text, fail := d.missed(f, first); text != "" {
			c.Detail += ": " + text
			if fail {
				c.Status = Fail
			}
		}
	} else {
		c.addDetail("all %d stayed until the end", n)
	}
	if d.plan.On.JobPerClient {
		d.slots(f, c)
	} else {
		late(f.Workers, c)
	}
	clocks(f, c)
	return c
}

// lost names the workers that were lost, and when the first one was.
func (d *data) lost() (who []string, first time.Time) {
	for _, e := range d.events {
		if e.Worker == nil || e.Worker.State != measure.Lost {
			continue
		}
		at := e.Time.Add(-duration(e.Worker.Silent)) // the event came when it was given up
		if len(who) == 0 || at.Before(first) {
			first = at
		}
		who = append(who, "worker "+e.Worker.Name+d.when(at))
	}
	return who, first
}

// missed says how many clients were missing from t on, "" if that is not known, and whether the curve is wrong
// because of it. Where each client is a job the curve is drawn over those that were there.
func (d *data) missed(f *Findings, t time.Time) (text string, fail bool) {
	missing, s := d.missing(f, t)
	if s == nil || f.Open() {
		return "", false
	}
	text = fmt.Sprintf("on average %.1f of the %s were active, %s were missing", s.ActiveClients, f.count(cmp.Or(s.Planned, s.Clients)),
		unit.Percent(missing))
	if missing < missingFail || d.plan.On.JobPerClient {
		return text, false
	}
	return text + ": the curve is wrong from there on", true
}

// slots reports on the first step whose clients were never all there at once.
func (d *data) slots(f *Findings, c *Check) {
	most := map[int]float64{} // by step
	for x := range each(d.seconds) {
		most[x.step] = max(most[x.step], x.clients)
	}
	for s := range each(f.Curve) {
		if most[s.Step] < allThere*float64(s.Planned) {
			c.addDetail("of the %s of step %d at most %.0f were active at once: others waited for slots, or started after the first had ended",
				f.count(s.Planned), s.Step, most[s.Step])
			return
		}
	}
}

// late reports on workers that came when the load had begun.
func late(workers []WorkerFigure, c *Check) {
	n, last := 0, 0.0
	for w := range each(workers) {
		if w.Came != nil && *w.Came > 0.5 {
			n, last = n+1, max(last, *w.Came)
		}
	}
	if n > 0 {
		c.addDetail("%d started late, the last one %s after the load began", n, unit.Seconds(last))
	}
}

// clocks tells how well the clocks of workers are known. Seconds of workers whose clocks are further apart than is
// known are not the same ones: that matters if it is much of a step's hold.
func clocks(f *Findings, c *Check) {
	most, doubt, known := 0.0, 0.0, 0
	hosts := map[string]bool{}
	for w := range each(f.Workers) {
		if w.Came == nil {
			continue
		}
		hosts[w.Host] = true
		if w.Offset != nil && w.Doubt != nil {
			known++
			most, doubt = max(most, math.Abs(*w.Offset)), max(doubt, *w.Doubt)
		}
	}
	if known == 0 {
		if len(hosts) >= 2 {
			c.note("the clocks of the machines of the workers, which were not compared", "run the workers under one controller, "+
				"or synchronize the clocks by NTP")
		}
		return
	}
	c.addDetail("their clocks were up to %s off, known within %s", unit.Seconds(most), unit.Seconds(doubt))
	shortest := math.Inf(1)
	for s := range each(f.Curve) {
		shortest = min(shortest, s.Duration)
	}
	switch {
	case doubt > blurredHold*shortest:
		c.worsen(Warn, "up to %s of the shortest step may belong to another load", unit.Percent(ratio(doubt, shortest)))
	case doubt > blurred:
		c.note(fmt.Sprintf("the seconds of different workers against each other: their clocks are known only within %s", unit.Seconds(doubt)),
			"use a network or a controller with shorter delays")
	}
}

// processes returns the largest number of processes of one machine that the clients of a step were in.
func (d *data) processes() (most int) {
	for _, e := range d.events {
		if e.Kind == measure.EventStep {
			most = max(most, e.Processes)
		}
	}
	return most
}

// when says in which phase of which step t lies.
func (d *data) when(t time.Time) string {
	for s := range each(d.seconds) {
		if t.Before(s.start) || !t.Before(s.end()) {
			continue
		}
		if s.phase == measure.Measured {
			return fmt.Sprintf(" during the measurement of step %d", s.step)
		}
		return fmt.Sprintf(" before or after the measurement of step %d", s.step)
	}
	return " outside of all steps"
}

// missing returns the largest share of planned clients that were not there in the hold of a step that ended after t,
// and that step; nil if there is none.
func (d *data) missing(f *Findings, t time.Time) (share float64, worst *Step) {
	ends := d.holdEnds()
	for s := range each(f.Curve) {
		planned := cmp.Or(s.Planned, s.Clients)
		if planned <= 0 || !ends[s.Step].After(t) {
			continue
		}
		if x := 1 - ratio(s.ActiveClients, float64(planned)); worst == nil || x > share {
			share, worst = x, s
		}
	}
	return max(0, share), worst
}
