package scenario

import (
	"fmt"
	"time"

	"weir/internal/unit"
)

// A Find says how the load that gives most is searched for. It stands in a
// plan in place of steps.
type Find struct {
	Min    int           `json:"min_clients"` // the search begins here
	Max    int           `json:"max_clients"` // and never goes beyond
	Within unit.Fraction `json:"within"`      // the optimum is known well enough when its interval is no wider, as a share
	Time   unit.Duration `json:"time"`        // at most, from the first step on, all interrupted parts together

	Ramp    unit.Duration `json:"ramp"`
	Settle  unit.Duration `json:"settle"`
	Hold    unit.Duration `json:"hold"`         // of most steps
	Longest unit.Duration `json:"longest_hold"` // of those that large files or noise make longer
	Cool    unit.Duration `json:"cool"`         // rest between steps, at least
	Calm    unit.Duration `json:"longest_cool"` // rest at most, if the servers are still busy
}

// Check refuses what no search can keep to.
func (f *Find) Check() error {
	switch {
	case f.Min < 1 || f.Max < f.Min || f.Max > maxClients:
		return fmt.Errorf("a search from %d to %d clients: begin with 1 or more, and end with as many or more, %d at most", f.Min, f.Max, maxClients)
	case !(f.Within > 0) || f.Within >= 1:
		return fmt.Errorf("within %v: use more than 0 and less than 100%%", f.Within)
	case f.Hold <= 0 || f.Longest < f.Hold || f.Cool <= 0 || f.Calm < f.Cool || min(f.Ramp, f.Settle) < 0:
		return fmt.Errorf("hold %v to %v, cool %v to %v, ramp %v, settle %v: hold and cool are above 0, and the longest are not shorter",
			f.Hold, f.Longest, f.Cool, f.Calm, f.Ramp, f.Settle)
	case time.Duration(max(f.Time, f.Longest, f.Calm, f.Ramp, f.Settle)) > longest:
		return fmt.Errorf("time %v: use up to 366d", f.Time)
	case f.Time < f.Ramp+f.Settle+f.Hold:
		return fmt.Errorf("time %v: too short, one step takes %v", f.Time, f.Ramp+f.Settle+f.Hold)
	}
	return nil
}
