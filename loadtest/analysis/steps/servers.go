package steps

import (
	"cmp"
	"slices"
	"time"

	"weir/internal/stats"
	"weir/loadtest/measure"
	"weir/storage"
)

// A Share has the means of one data server in the measurement time of one step. Failures of the
// target itself, for example of an overloaded redirector, have the name "".
type Share struct {
	Name            string                  `json:"name"` // "" is the target itself
	Throughput      float64                 `json:"throughput_bytes_per_second"`
	ThroughputShare float64                 `json:"throughput_share"` // of the whole step, 0 to 1
	Operations      float64                 `json:"operations_per_second"`
	OperationsShare float64                 `json:"operations_share"`
	Done            int64                   `json:"done"`
	Errors          int64                   `json:"errors"`
	ErrorsBy        map[storage.Class]int64 `json:"errors_by_class,omitempty"`
}

// shares returns a step's data servers by name, or nil if the target processed everything itself.
func (t *Total) shares() []Share {
	var all []Share
	named := false
	for name, s := range t.Servers {
		if name == "" && Did(s) == 0 {
			continue // a redirector that only redirected
		}
		named = named || name != ""
		all = append(all, Share{Name: name, Throughput: stats.Ratio(float64(s.Moved), t.Span),
			ThroughputShare: stats.Ratio(float64(s.Moved), float64(t.Moved)),
			Operations:      stats.Ratio(float64(s.Done), t.Span), OperationsShare: stats.Ratio(float64(s.Done), float64(t.Done)),
			Done: s.Done, Errors: s.Errors(), ErrorsBy: s.Failures()})
	}
	if !named {
		return nil
	}
	slices.SortFunc(all, func(a, b Share) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// Did returns 0 if nothing was done, moved or failed.
func Did(s *measure.Sum) int64 { return s.Moved + s.Done + s.Errors() }

// A ServerSeries is one data server over time.
type ServerSeries struct {
	Name   string // "" is the target itself
	Points []ServerPoint
}

// A ServerPoint has the means of one data server in a bin of time, which is the same for all
// servers: a power of two of seconds, or less in a shorter run.
type ServerPoint struct {
	At         float64 // seconds from Series.Start to the middle of the bin
	Throughput float64 // bytes per second
	Operations float64 // per second
	Errors     float64 // per second
}

// MostServerPoints is the maximum number of points of a data server's series.
const MostServerPoints = 240

// A serverCount has the counts of one data server in one bin of time.
type serverCount struct{ Moved, done, errors int64 }

func (c *serverCount) add(moved, done, errors int64) {
	c.Moved, c.done, c.errors = c.Moved+moved, c.done+done, c.errors+errors
}

func newServerSums() Binned[string, serverCount] {
	return NewBinned[string](MostServerPoints, func(into, from *serverCount) { into.add(from.Moved, from.done, from.errors) })
}

// ServerSeries returns the data servers by name, each in order of time, or nil if the target
// processed everything itself.
func (d *Run) ServerSeries(start time.Time) []ServerSeries {
	s := &d.Service
	if len(s.Of) == 0 || len(s.Of) == 1 && s.Of[""] != nil {
		return nil
	}
	spans, middles := d.Covered(&s.TimeBins, start)
	var all []ServerSeries
	for name, counts := range s.Of {
		one := ServerSeries{Name: name}
		active := false
		for i, span := range spans {
			if span <= 0 {
				continue // nothing was measured
			}
			var c serverCount
			if there := counts[s.Lo+int64(i)]; there != nil {
				c = *there
			}
			active = active || c != serverCount{}
			one.Points = append(one.Points, ServerPoint{At: middles[i], Throughput: float64(c.Moved) / span,
				Operations: float64(c.done) / span, Errors: float64(c.errors) / span})
		}
		if active || name != "" {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b ServerSeries) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
