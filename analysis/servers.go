package analysis

import (
	"cmp"
	"slices"
	"time"

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

// shares lists a step's data servers by name; nil if the target did all itself.
func (t *total) shares() []Share {
	var all []Share
	named := false
	for name, s := range t.servers {
		if name == "" && did(s) == 0 {
			continue // a redirector that did what it is for
		}
		named = named || name != ""
		all = append(all, Share{Name: name, Throughput: ratio(float64(s.Moved), t.span), ThroughputShare: ratio(float64(s.Moved), float64(t.Moved)),
			Operations: ratio(float64(s.Done), t.span), OperationsShare: ratio(float64(s.Done), float64(t.Done)),
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

// A ServerSeries is one data server against time.
type ServerSeries struct {
	Name   string // "" is the target itself
	Points []ServerPoint
}

// A ServerPoint is what one data server did in a stretch of time, which is the
// same for all of them: a power of two of seconds, less where the run was shorter.
type ServerPoint struct {
	At         float64 // seconds from Series.Start to the middle of the stretch
	Throughput float64 // bytes per second
	Operations float64 // per second
	Errors     float64 // per second
}

// mostServerPoints is how many points a data server's series has at most.
const mostServerPoints = 240

// serverSums counts what each data server did against time, in memory that
// does not grow with the run.
type serverSums struct {
	bins  timeBins
	names map[string]map[int64]*serverCount
}

type serverCount struct{ moved, done, errors int64 }

func newServerSums() serverSums {
	return serverSums{bins: timeBins{most: mostServerPoints}, names: map[string]map[int64]*serverCount{}}
}

// add counts an interval around t.
func (s *serverSums) add(t time.Time, iv *measure.Interval) {
	number, halved := s.bins.place(t)
	if halved > 0 {
		for name, counts := range s.names {
			s.names[name] = halve(counts, halved, func(into, from *serverCount) *serverCount {
				into.moved, into.done, into.errors = into.moved+from.moved, into.done+from.done, into.errors+from.errors
				return into
			})
		}
	}
	counts := s.names[iv.Server]
	if counts == nil {
		counts = map[int64]*serverCount{}
		s.names[iv.Server] = counts
	}
	c := counts[number]
	if c == nil {
		c = &serverCount{}
		counts[number] = c
	}
	c.moved += iv.Moved
	c.done += iv.Done
	c.errors += iv.Errors()
}

// serverSeries lists the data servers by name, each in order of time; nil if the
// target did all itself.
func (d *data) serverSeries(start time.Time) []ServerSeries {
	s := &d.service
	if len(s.names) == 0 || len(s.names) == 1 && s.names[""] != nil {
		return nil
	}
	spans, middles := d.covered(&s.bins, start)
	var all []ServerSeries
	for name, counts := range s.names {
		one := ServerSeries{Name: name}
		did := false
		for i, span := range spans {
			if span <= 0 {
				continue // nothing was measured
			}
			c := counts[s.bins.lo+int64(i)]
			if c == nil {
				c = &serverCount{}
			}
			did = did || c.moved+c.done+c.errors > 0
			one.Points = append(one.Points, ServerPoint{At: middles[i], Throughput: float64(c.moved) / span,
				Operations: float64(c.done) / span, Errors: float64(c.errors) / span})
		}
		if did || name != "" {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b ServerSeries) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// covered returns how many seconds of each stretch were measured, and where
// their middle lies.
func (d *data) covered(b *timeBins, start time.Time) (spans, middles []float64) {
	if b.width == 0 {
		return nil, nil
	}
	spans, middles = make([]float64, b.hi-b.lo+1), make([]float64, b.hi-b.lo+1)
	for i := range d.seconds {
		x := &d.seconds[i]
		middle := x.start.Add(duration(x.seconds / 2))
		if k := floor(middle.UnixNano(), b.width) - b.lo; k >= 0 && k < int64(len(spans)) {
			spans[k] += x.seconds
			middles[k] += x.seconds * middle.Sub(start).Seconds()
		}
	}
	for i := range middles {
		middles[i] = ratio(middles[i], spans[i])
	}
	return spans, middles
}
