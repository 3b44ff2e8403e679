package results

import (
	"testing"
	"time"

	"weir/measure"
)

// Runs that were recorded when the event "end" had a text only.
func TestEndingOfUntypedRuns(t *testing.T) {
	for dir, want := range map[string]measure.Ending{
		"interrupted": {Outcome: measure.Interrupted, Reason: measure.ByFinish},
		"threshold":   {Outcome: measure.StoppedByRule, Reason: measure.ByThreshold},
	} {
		run := open(t, "testdata/untyped/"+dir)
		end, err := run.Ending()
		if err != nil || end == nil || end.Outcome != want.Outcome || end.Reason != want.Reason {
			t.Errorf("%s: %+v, %v; want %+v", dir, end, err, want)
		}
		p, err := run.Progress()
		if err != nil || p.Ended == nil || p.Ended.Outcome != want.Outcome || p.Steps[len(p.Steps)-1].Passed {
			t.Errorf("%s: %+v, %v", dir, p, err)
		}
		// Phases and the length of a step had other names then.
		if first := p.Steps[0]; first.Duration <= 0 || first.Want != time.Duration(run.Plan.Steps[0].Duration) || first.Want <= 0 {
			t.Errorf("%s: step %+v of %+v", dir, first, run.Plan.Steps)
		}
	}
}
