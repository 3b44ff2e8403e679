package analysis

import (
	"fmt"
	"strings"

	"weir/internal/say"
	"weir/internal/stats"
	"weir/internal/unit"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/storage"
)

// A Minimum is the data that the best step of a run must have for the result to be valid.
type Minimum struct {
	Operations int64   // that ended while it was held
	EachClient float64 // of these, for each active client of the closed model
	Batches    int     // means of the throughput, or of the rate, that its interval is made of
	HalfWidth  float64 // of that 95% interval, as a share of the mean: at most
}

// LeastData returns the minimum that checks are made with. Twenty operations are the fewest with which a 95% interval
// of their median is not the whole range of them but for a few; with fewer than three for each client the operations
// that the hold cuts at its ends weigh as much as the others.
func LeastData() Minimum {
	return Minimum{Operations: 20, EachClient: 3, Batches: stats.LeastBatches, HalfWidth: 0.25}
}

// checkEnough asks whether there is enough data to rely on: at the best step, which the result is, too little warns.
func (d *data) checkEnough(f *Findings, best int) Check {
	c := Check{Name: "enough data", Status: OK}
	switch {
	case d.transfers != nil:
		return c.skip("a record of transfers has the result of each file")
	case best < 0:
		return c.skip("no step has a result")
	}
	s := &f.Curve[best]
	if lacks := d.lacks(f, s); len(lacks) > 0 {
		c.Detail = fmt.Sprintf("the best step (%s, measured for %s) has %s", f.at(s), unit.Seconds(s.Duration), strings.Join(lacks, ", "))
		effect := "another run may give another result"
		if f.Optimum.Unclear {
			effect = "no peak can be named"
		}
		c.worsen(Warn, "%s: %s", effect, s.longer())
		return c
	}
	c.Detail = fmt.Sprintf("the best step has %s and %s", say.Plural(int(s.Done), "operation"), say.Plural(s.Batches, "batch mean"))
	var others []string
	for i := range f.Curve {
		if f.Curve[i].Excluded == "" && len(d.few(&f.Curve[i])) > 0 {
			others = append(others, f.at(&f.Curve[i]))
		}
	}
	if len(others) > 0 {
		c.note("how much the best step differs from steps with too little data: "+strings.Join(head(others, 4), ", "), s.longer())
	}
	return c
}

// longer says how to get more data.
func (s *Step) longer() string {
	if s.bounded {
		return "have each client do more jobs (load.jobs)"
	}
	return "measure longer (load.duration)"
}

// lacks says what the best step has less of than LeastData asks for.
func (d *data) lacks(f *Findings, s *Step) []string {
	all := d.few(s)
	mean, _, _ := f.yield(s)
	low, high := f.bounds(s)
	if half, most := ratio(high-low, 2*mean), LeastData().HalfWidth; half > most {
		all = append(all, fmt.Sprintf("an interval of +-%.0f%% (%.0f%% at most)", 100*half, 100*most))
	}
	return all
}

// few says what a step has too few of.
func (d *data) few(s *Step) (all []string) {
	least := LeastData()
	each := ratio(float64(s.Done), s.ActiveClients)
	switch {
	case s.Done < least.Operations:
		all = append(all, fmt.Sprintf("%s (at least %d needed)", say.Plural(int(s.Done), "operation"), least.Operations))
	case d.plan.Model != scenario.OpenModel && !s.bounded && each < least.EachClient:
		all = append(all, fmt.Sprintf("%.2g operations per client (at least %g needed)", each, least.EachClient))
	}
	if s.Batches < least.Batches {
		all = append(all, fmt.Sprintf("%s (at least %d needed)", say.Plural(s.Batches, "batch mean"), least.Batches))
	}
	return all
}

// mostPaused is the share of the clients' time in pauses after errors from which on a step shows those pauses rather
// than the service.
const mostPaused = 0.02

// mostPausedStep returns the step, of those that count, with the largest share of pauses after errors; nil if there
// is none.
func (f *Findings) mostPausedStep() *Step {
	return f.stepWithMost(func(s *Step) float64 { return s.PausedShare })
}

// stepWithMost returns the step, of those that count, with the largest share; nil if there is none.
func (f *Findings) stepWithMost(share func(*Step) float64) *Step {
	var most *Step
	for s := range each(f.Curve) {
		if s.Excluded == "" && (most == nil || share(s) > share(most)) {
			most = s
		}
	}
	return most
}

// checkErrorPauses asks how much of the clients' time went into pauses after failed tasks.
func (d *data) checkErrorPauses(f *Findings) Check {
	c := Check{Name: "error pauses", Status: OK}
	s := f.mostPausedStep()
	switch {
	case d.plan.Model == scenario.OpenModel:
		c.Status, c.Detail = Skipped, "clients do not pause after errors in the open model"
	case s == nil:
		c.Status, c.Detail = Skipped, "all steps are excluded"
	case s.PausedShare <= 0:
		c.Detail = "no client paused after errors"
	default:
		c.Detail = fmt.Sprintf("clients paused after errors for at most %s of their time (%s), %s in total", unit.Percent(s.PausedShare), f.at(s),
			unit.Seconds(s.Paused))
		if s.PausedShare > mostPaused {
			c.Status = Warn
		}
	}
	return c
}

// pauseText says so in the verdict, "" if pauses do not matter.
func (f *Findings) pauseText() string {
	s := f.mostPausedStep()
	if s == nil || s.PausedShare <= mostPaused {
		return ""
	}
	return fmt.Sprintf("At %s clients spent %s of their time in pauses after errors: that step shows less than the service can give.", f.at(s),
		unit.Percent(s.PausedShare))
}

// askedText says in the verdict for how long clients paused because the service asked them to; "" if that hardly matters.
func (f *Findings) askedText() string {
	s := f.stepWithMost(func(s *Step) float64 { return s.AskedShare })
	if s == nil || s.AskedShare <= mostPaused {
		return ""
	}
	return fmt.Sprintf("At %s clients paused for %s of their time because the service asked them to (429 or 503 with Retry-After).",
		f.at(s), unit.Percent(s.AskedShare))
}

// From so many sessions per operation on a session that was to be kept was kept in part only, or not at all.
const (
	sessionsInPart = 0.05
	sessionsNone   = 0.5
)

// sessions counts the sessions that clients made for each operation, and says so where they were to keep theirs: a
// service may close each connection.
func (d *data) sessions(f *Findings) {
	made, ended, done := 0.0, 0.0, int64(0)
	for s := range each(f.Curve) {
		made += s.SessionRate * s.Duration
		ended += float64(s.Done + s.Errors)
		done += s.Done
	}
	if ended == 0 {
		return
	}
	each := made / ended
	f.Sessions = &each
	how := "kept in part"
	switch {
	case len(d.plan.Populations) > 0 || d.plan.Work.Session != workload.KeptSession || d.plan.Work.Kind == workload.LoginWork:
		return
	case done == 0:
		f.Work = d.plan.WorkTextWith("session to be kept")
		return
	case each >= sessionsNone:
		how = "not kept"
	case each < sessionsInPart:
		return
	}
	f.Work = d.plan.WorkTextWith(fmt.Sprintf("session %s (%s made per operation)", how, unit.Significant(each)))
}

// signing says whether the service had requests signed, where clients of the XRootD protocol proved who they are, and how often
// credentials were renewed.
func (d *data) signing(f *Findings) {
	signed, ended := 0.0, 0.0
	for s := range each(f.Curve) {
		signed += float64(s.Signed)
		ended += float64(s.Done + s.Errors)
	}
	switch {
	case ended == 0:
	case signed > 0:
		f.Work += fmt.Sprintf(", requests signed (%s per operation)", unit.Significant(signed/ended))
	case d.plan.Driver == storage.XRootD && d.plan.Auth.Method != "" && d.plan.Auth.Method != storage.NoAuth:
		f.Work += ", requests not signed"
	}
	if f.Renewed = d.renewed; f.Renewed > 0 {
		f.Work += ", credentials renewed " + say.Times(f.Renewed)
	}
}
