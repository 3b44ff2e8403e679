package analysis

import (
	"cmp"
	"slices"

	"weir/measure"
	"weir/storage"
)

// A Share is what one data server did in the hold time of one step. What the
// target itself failed with, as a redirector that collapses does, stands under
// the name "".
type Share struct {
	Name            string                  `json:"name"` // "" is the target itself
	Throughput      float64                 `json:"throughput_bytes_per_second"`
	ThroughputShare float64                 `json:"throughput_share"` // of all of the step, 0 to 1
	Operations      float64                 `json:"operations_per_second"`
	OperationsShare float64                 `json:"operations_share"`
	Done            int64                   `json:"done"`
	Errors          int64                   `json:"errors"`
	ErrorsBy        map[storage.Class]int64 `json:"errors_by_class,omitempty"`
}

// served counts what one data server did in one step.
type served struct {
	moved, done, errors int64
	failed              map[storage.Class]int64
}

func (s *served) add(iv *measure.Interval) {
	s.moved += iv.Moved
	s.done += iv.Done
	for class, n := range iv.Failed {
		if !class.Failure() {
			continue
		}
		if s.failed == nil {
			s.failed = map[storage.Class]int64{}
		}
		s.failed[class] += n
		s.errors += n
	}
}

// shares lists a step's data servers by name; nil if the target did all itself.
func (t *total) shares() []Share {
	var all []Share
	named := false
	for name, s := range t.servers {
		if name == "" && s.moved+s.done+s.errors == 0 {
			continue // a redirector that did what it is for
		}
		named = named || name != ""
		all = append(all, Share{Name: name, Throughput: ratio(float64(s.moved), t.span), ThroughputShare: ratio(float64(s.moved), float64(t.moved)),
			Operations: ratio(float64(s.done), t.span), OperationsShare: ratio(float64(s.done), float64(t.done)),
			Done: s.done, Errors: s.errors, ErrorsBy: s.failed})
	}
	if !named {
		return nil
	}
	slices.SortFunc(all, func(a, b Share) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
