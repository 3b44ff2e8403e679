package analysis

import (
	"fmt"

	"weir/internal/unit"
)

// mostPaused is the share of the clients' time in pauses after errors from which
// on a step shows those pauses rather than the service.
const mostPaused = 0.02

// mostPausedStep returns the step, of those that count, with the largest share
// of pauses after errors; nil if there is none.
func (f *Findings) mostPausedStep() *Step {
	var most *Step
	for i := range f.Curve {
		if s := &f.Curve[i]; s.Excluded == "" && (most == nil || s.PausedShare > most.PausedShare) {
			most = s
		}
	}
	return most
}

// checkErrorPauses asks how much of the clients' time went into pauses after
// failed tasks.
func (d *data) checkErrorPauses(f *Findings) Check {
	c := Check{Name: "error pauses", Status: OK}
	s := f.mostPausedStep()
	switch {
	case d.plan.Model == "open":
		c.Status, c.Detail = Skipped, "clients of open load do not pause after errors"
	case s == nil:
		c.Status, c.Detail = Skipped, "no step counts"
	case s.PausedShare <= 0:
		c.Detail = "no client paused after errors"
	default:
		c.Detail = fmt.Sprintf("clients paused after errors for %s of their time at most (%s), %s in all", unit.Percent(s.PausedShare), f.at(s), unit.Seconds(s.Paused))
		if s.PausedShare > mostPaused {
			c.Status = Warn
			c.Detail += ": throughput there shows the pauses, not the service (load.error_pause)"
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
	return fmt.Sprintf("With %s clients spent %s of their time in pauses after errors, so that step shows less than the service can give.", f.at(s), unit.Percent(s.PausedShare))
}
