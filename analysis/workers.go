package analysis

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/internal/unit"
	"weir/measure"
)

// missingFail is the share of a step's planned clients that may be missing
// before its place on the curve is wrong.
const missingFail = 0.1

// blurred is how far the clock of a worker may be off before its seconds are not
// those of the others.
const blurred = 0.1

// blurredHold is the share of a step's hold that such a clock must be off by
// before the step's figures are wrong.
const blurredHold = 0.05

// A WorkerFigure is what became of one worker of a run on many machines. Times
// are seconds since the load began.
type WorkerFigure struct {
	Name    string   `json:"worker"`
	State   string   `json:"state"` // as in the events; came: it was there to the end
	Host    string   `json:"host,omitempty"`
	Job     string   `json:"job,omitempty"`  // as its batch system calls it
	Clients int      `json:"clients"`        // that it was last, or the most that it could be
	Came    *float64 `json:"came_seconds"`   // nil: it never came; below 0: before the load began
	Gone    *float64 `json:"gone_seconds"`   // nil: it did not leave before the run ended
	Offset  *float64 `json:"offset_seconds"` // how far its clock was ahead; nil: nobody compared them
	Doubt   *float64 `json:"doubt_seconds"`  // the most by which that is wrong
	Told    int      `json:"told_seconds"`   // seconds of the run that it has told of
	Why     string   `json:"why,omitempty"`  // of all but came and left
}

// workers returns what became of each worker, in the order in which they are
// first told of; nil for a run of none.
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
			if i < 0 { // else its job was told of before it came
				i = len(all)
				all = append(all, WorkerFigure{})
			}
			place[w.Name], all[i].Name = i, w.Name
		}
		f := &all[i]
		f.Host, f.Job, f.State, f.Why = cmp.Or(w.Host, f.Host), cmp.Or(w.Job, f.Job), w.State, ""
		f.Clients, f.Told = cmp.Or(w.Clients, f.Clients), max(w.Seconds, f.Told)
		at := e.Time.Sub(begin).Seconds() - w.Silent
		switch w.State {
		case measure.Came:
			f.Came = &at
			if w.Doubt > 0 {
				f.Offset, f.Doubt = &w.Offset, &w.Doubt
			}
		case measure.Left:
			f.Gone = &at
		case measure.Lost:
			f.Gone, f.Why = &at, e.Text
		default:
			f.Why = e.Text
		}
	}
	return all
}

// missingWorkers notes for each step how many workers and clients were missing. Where
// each client is a job of its own, the controller says how many did not begin.
func (d *data) missingWorkers(f *Findings) {
	begun := map[int]int{}
	for _, e := range d.events {
		begun[e.Step] += e.Missing
	}
	ends := d.holdEnds()
	for i := range f.Curve {
		s := &f.Curve[i]
		if s.WorkersMissing = begun[s.Step]; !d.plan.On.JobPerClient {
			end := ends[s.Step].Sub(d.loadBegan()).Seconds()
			for w := range f.Workers {
				if came, gone := f.Workers[w].Came, f.Workers[w].Gone; came == nil || *came > end || gone != nil && f.Workers[w].State == measure.Lost && *gone < end {
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
	for i := range d.seconds {
		if s := &d.seconds[i]; s.phase == measure.Hold {
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

// checkWorkers asks whether all workers of a run of many came, and stayed to its
// end: the clients of one that is not there are missing, though the curve is
// drawn over the planned ones. It returns nil for a run of one process.
func (d *data) checkWorkers(f *Findings) *Check {
	c := &Check{Name: "workers", Status: OK}
	lost, first := d.lost()
	never, since := d.never(f.Workers)
	if len(never) > 0 && (first.IsZero() || since.Before(first)) {
		first = since
	}
	n := max(d.processes(), len(f.Workers))
	if n < 2 && len(lost)+len(never) == 0 {
		return nil
	}
	var said []string
	if len(lost) > 0 {
		said = append(said, "lost "+strings.Join(head(lost, 3), ", "))
	}
	if len(never) > 0 {
		said = append(said, fmt.Sprintf("%d of %d never came: %s", len(never), n, strings.Join(head(never, 3), "; ")))
	}
	if len(said) > 0 {
		c.Status = Warn
		if text, fail := d.missed(f, first); text != "" {
			said[len(said)-1] += ": " + text
			if fail {
				c.Status = Fail
			}
		}
	} else {
		said = append(said, fmt.Sprintf("all %d stayed to the end", n))
	}
	if d.plan.On.JobPerClient {
		said = append(said, d.slots(f)...)
	} else {
		said = append(said, late(f.Workers)...)
	}
	said = append(said, clocks(f, c)...)
	c.Detail = strings.Join(said, "; ")
	return c
}

// lost names the workers that were lost, and when the first one was.
func (d *data) lost() (who []string, first time.Time) {
	for _, e := range d.events {
		name, _, ok := strings.Cut(e.Text, " was lost: ")
		at := e.Time
		switch {
		case e.Worker != nil && e.Worker.State == measure.Lost:
			name = "worker " + e.Worker.Name
			at = at.Add(-time.Duration(e.Worker.Silent * float64(time.Second))) // it was given up only then
		case !ok || e.Kind != measure.EventWarning || !strings.HasPrefix(name, "worker "):
			continue
		}
		if len(who) == 0 || at.Before(first) {
			first = at
		}
		who = append(who, name+d.when(at))
	}
	return who, first
}

// never says of each worker that was not there why, and since when that counts.
func (d *data) never(workers []WorkerFigure) (why []string, since time.Time) {
	for i := range workers {
		if w := &workers[i]; w.Came == nil {
			why = append(why, w.Why)
			since = d.loadBegan()
		}
	}
	return why, since
}

// missed says how many clients were missing from t on, "" if that is not known,
// and whether the curve is wrong because of it. Where each client is a job the
// curve is drawn over those that were there.
func (d *data) missed(f *Findings, t time.Time) (text string, fail bool) {
	missing, s := d.missing(f, t)
	if s == nil || f.Open() {
		return "", false
	}
	text = fmt.Sprintf("%.1f of the %s were there on average, %s were missing", s.ActiveClients, f.count(cmp.Or(s.Planned, s.Clients)), unit.Percent(missing))
	if missing < missingFail || d.plan.On.JobPerClient {
		return text, false
	}
	return text + ", so the curve from there on is not that of its loads", true
}

// slots tells of steps whose clients were never all there at once.
func (d *data) slots(f *Findings) []string {
	most := map[int]float64{} // by step
	for i := range d.seconds {
		x := &d.seconds[i]
		most[x.step] = max(most[x.step], x.clients)
	}
	for i := range f.Curve {
		if s := &f.Curve[i]; most[s.Step] < allThere*float64(s.Planned) {
			return []string{fmt.Sprintf("of the %s of step %d no more than %.0f were active at once: others waited for slots, or came when the first had ended", f.count(s.Planned), s.Step, most[s.Step])}
		}
	}
	return nil
}

// late tells of workers that came when the load had begun.
func late(workers []WorkerFigure) []string {
	n, last := 0, 0.0
	for i := range workers {
		if at := workers[i].Came; at != nil && *at > 0.5 {
			n, last = n+1, max(last, *at)
		}
	}
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d came late, the last one %s after the load began", n, unit.Seconds(last))}
}

// clocks tells how well the clocks of workers are known. Seconds of workers
// whose clocks are further apart than is known are not the same ones: that
// matters if it is much of a step's hold.
func clocks(f *Findings, c *Check) []string {
	most, doubt, known, came := 0.0, 0.0, 0, 0
	hosts := map[string]bool{}
	for i := range f.Workers {
		w := &f.Workers[i]
		if w.Came == nil {
			continue
		}
		came++
		hosts[w.Host] = true
		if w.Offset != nil && w.Doubt != nil {
			known++
			most, doubt = max(most, abs(*w.Offset)), max(doubt, *w.Doubt)
		}
	}
	switch {
	case came == 0 || known == 0 && len(hosts) < 2:
		return nil
	case known == 0:
		c.note("the clocks of the workers' machines, which were not compared", "run the workers under one controller, or keep the clocks by NTP")
		return nil
	}
	text := fmt.Sprintf("their clocks were up to %s off, known within %s", unit.Seconds(most), unit.Seconds(doubt))
	shortest := math.Inf(1)
	for i := range f.Curve {
		shortest = min(shortest, f.Curve[i].Hold)
	}
	switch {
	case doubt > blurredHold*shortest:
		c.worsen(Warn, "up to %s of the shortest step may be of another load", unit.Percent(ratio(doubt, shortest)))
	case doubt > blurred:
		c.note(fmt.Sprintf("seconds of different workers against each other: their clocks are known within %s only", unit.Seconds(doubt)), "use a network or a controller with shorter delays")
	}
	return []string{text}
}

func abs(x float64) float64 { return max(x, -x) }

// inProcesses reads how many processes a step of an older run had, whose events say so
// in their text alone.
var inProcesses = regexp.MustCompile(`clients in (\d{1,6}) processes$`)

// processes returns the largest number of processes of one machine that the clients of
// a step were in.
func (d *data) processes() int {
	most := 0
	for _, e := range d.events {
		if e.Kind != measure.EventStep {
			continue
		}
		n := e.Processes
		if m := inProcesses.FindStringSubmatch(e.Text); n == 0 && m != nil {
			n, _ = strconv.Atoi(m[1]) // digits, by the expression
		}
		most = max(most, n)
	}
	return most
}

// when says in which phase of which step t lies.
func (d *data) when(t time.Time) string {
	for i := range d.seconds {
		s := &d.seconds[i]
		if t.Before(s.start) || !t.Before(s.end()) {
			continue
		}
		if s.phase == measure.Hold {
			return fmt.Sprintf(" while step %d was held", s.step)
		}
		return fmt.Sprintf(" in step %d before or after its hold", s.step)
	}
	return " outside of all steps"
}

// missing returns the largest share of planned clients that were not there in
// the hold of a step that ended after t, and that step; nil if there is none.
func (d *data) missing(f *Findings, t time.Time) (share float64, worst *Step) {
	ends := d.holdEnds()
	for i := range f.Curve {
		s := &f.Curve[i]
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
