package analysis

import (
	"cmp"
	"slices"
	"time"

	"weir/loadtest/measure"
	"weir/storage"
)

// A Share is what one data server did in the measurement time of one step. Failures of the target itself, as of an
// overloaded redirector, have the name "".
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

// shares lists a step's data servers by name; nil if the target did all itself.
func (t *total) shares() []Share {
	var all []Share
	named := false
	for name, s := range t.servers {
		if name == "" && did(s) == 0 {
			continue // a redirector that only redirected
		}
		named = named || name != ""
		all = append(all, Share{Name: name, Throughput: ratio(float64(s.Moved), t.span),
			ThroughputShare: ratio(float64(s.Moved), float64(t.Moved)),
			Operations:      ratio(float64(s.Done), t.span), OperationsShare: ratio(float64(s.Done), float64(t.Done)),
			Done: s.Done, Errors: s.Errors(), ErrorsBy: s.Failures()})
	}
	if !named {
		return nil
	}
	slices.SortFunc(all, func(a, b Share) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// did is 0 where nothing was done, moved or failed.
func did(s *measure.Sum) int64 { return s.Moved + s.Done + s.Errors() }

// A ServerSeries is one data server over time.
type ServerSeries struct {
	Name   string // "" is the target itself
	Points []ServerPoint
}

// A ServerPoint is what one data server did in a stretch of time, which is the same for all of them: a power of two
// of seconds, less where the run was shorter.
type ServerPoint struct {
	At         float64 // seconds from Series.Start to the middle of the stretch
	Throughput float64 // bytes per second
	Operations float64 // per second
	Errors     float64 // per second
}

// mostServerPoints is how many points a data server's series has at most.
const mostServerPoints = 240

// A serverCount is what one data server did in one stretch of time.
type serverCount struct{ moved, done, errors int64 }

func (c *serverCount) add(moved, done, errors int64) {
	c.moved, c.done, c.errors = c.moved+moved, c.done+done, c.errors+errors
}

func newServerSums() binned[string, serverCount] {
	return newBinned[string](mostServerPoints, func(into, from *serverCount) { into.add(from.moved, from.done, from.errors) })
}

// clientBytes returns what clients saw of each backend, by its place and the stretch of time.
func (d *data) clientBytes() map[int]map[int64]float64 {
	moved := map[int]map[int64]float64{}
	for name, counts := range d.service.of {
		if name == "" || name == measure.Others {
			continue
		}
		place := d.backends.place(name)
		if moved[place] == nil {
			moved[place] = map[int64]float64{}
		}
		for k, c := range counts {
			moved[place][k] += float64(c.moved)
		}
	}
	return moved
}

// serverSeries lists the data servers by name, each in order of time; nil if the target did all itself.
func (d *data) serverSeries(start time.Time) []ServerSeries {
	s := &d.service
	if len(s.of) == 0 || len(s.of) == 1 && s.of[""] != nil {
		return nil
	}
	spans, middles := d.covered(&s.timeBins, start)
	var all []ServerSeries
	for name, counts := range s.of {
		one := ServerSeries{Name: name}
		active := false
		for i, span := range spans {
			if span <= 0 {
				continue // nothing was measured
			}
			var c serverCount
			if there := counts[s.lo+int64(i)]; there != nil {
				c = *there
			}
			active = active || c != serverCount{}
			one.Points = append(one.Points, ServerPoint{At: middles[i], Throughput: float64(c.moved) / span,
				Operations: float64(c.done) / span, Errors: float64(c.errors) / span})
		}
		if active || name != "" {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b ServerSeries) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
