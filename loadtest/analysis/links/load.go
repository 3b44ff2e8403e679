package links

import (
	"weir/loadtest/results"
)

// Load reads the records of a data challenge, other than its samples, which the caller adds with
// Sample. It returns nil for other runs.
func Load(run *results.Run) (*Sums, error) {
	if run.Plan.Challenge == nil {
		return nil, nil
	}
	s := New(run.Plan.Challenge)
	for e, err := range run.Events() {
		if err != nil {
			return nil, err
		}
		s.Event(e)
	}
	if err := run.EachLink(func(l *results.LinkInterval) error {
		s.Link(l)
		return nil
	}); err != nil {
		return nil, err
	}
	return s, run.EachTransfer(func(t *results.Transfer) error {
		s.Transfer(t)
		return nil
	})
}
