package analysis

import (
	"weir/measure"
)

// announced returns the event with which a step began, nil if there is none
// that names its load.
func (d *data) announced(step int) *measure.Event {
	for _, e := range d.events {
		if e.Kind == "step" && e.Step == step && e.Clients > 0 {
			return e
		}
	}
	return nil
}
