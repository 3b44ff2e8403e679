package analysis

import (
	"fmt"
	"strings"

	"weir/internal/say"
	"weir/loadtest/measure"
)

// announced returns the event with which a step began, nil if there is none that names its load.
func (d *data) announced(step int) *measure.Event {
	for _, e := range d.events {
		if e.Kind == measure.EventStep && e.Step == step && e.Clients > 0 {
			return e
		}
	}
	return nil
}

// repeated reports whether a step was broken off and, after the run was resumed, another one was held: it is not a
// point of the curve then.
func (d *data) repeated(step int) bool {
	later := false
	for _, t := range d.steps {
		later = later || t.number > step && t.span > 0
	}
	for _, e := range d.events {
		if e.Kind == measure.EventResume && e.Step == step && step > 0 {
			return later
		}
	}
	return false
}

// interrupted sums the times, in seconds, between the parts of a run that was resumed: from the last interval before
// each resume to the first one after it.
func (d *data) interrupted() (seconds float64) {
	for _, e := range d.events {
		if e.Kind != measure.EventResume {
			continue
		}
		for i := 1; i < len(d.seconds); i++ {
			a, b := &d.seconds[i-1], &d.seconds[i]
			if a.step != b.step && !b.end().Before(e.Time) {
				seconds += max(0, b.start.Sub(a.end()).Seconds())
				break
			}
		}
	}
	return seconds
}

// noteResumed adds to the check that the run was resumed, which is no fault.
func (d *data) noteResumed(c *Check) {
	var again []string
	times := int64(0)
	for _, e := range d.events {
		if e.Kind != measure.EventResume {
			continue
		}
		times++
		if d.repeated(e.Step) {
			again = append(again, fmt.Sprint(e.Step))
		}
	}
	if times == 0 {
		return
	}
	text := "the run was resumed " + say.Times(times)
	if len(again) > 0 {
		text += fmt.Sprintf("; the interrupted part of step %s does not count", strings.Join(again, ", "))
	}
	c.addDetail("%s", text)
}

// search returns the last decision of a search, "" if the run was none.
func (d *data) search() string {
	text := ""
	for _, e := range d.events {
		if e.Kind == measure.EventSearch {
			text = e.Text
		}
	}
	return text
}
