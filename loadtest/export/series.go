package export

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"

	"weir/loadtest/measure"
)

// A series is one metric with its labels and its current value.
type series struct {
	metric  *Metric
	number  int     // index in the ledger; -1: not exported
	labels  []Label // including run and scenario, sorted by name, not empty
	value   float64
	buckets *buckets // of a histogram
	known   bool     // false: a gauge currently has no value
	emitted bool     // the last point was a value
	last    int64    // time of the last point, in milliseconds since 1970
}

// buckets are the counts of a histogram.
type buckets struct {
	counts []float64 // per bound, and above all bounds: not cumulative
	sum    float64   // seconds
	count  float64
}

// add counts h's durations, each within 1%: counters of h that contain a bound count as below it,
// so that a duration equal to the bound does.
func (s *buckets) add(h *measure.Histogram, bounds []float64) {
	h.Buckets(func(from, _ float64, n int64) {
		i, _ := slices.BinarySearch(bounds, from)
		s.counts[i] += float64(n)
		s.count += float64(n)
	})
	s.sum += h.Sum()
}

// values appends the value of s to all. For a histogram it appends the number of durations up to
// each bound, their total number, and their sum.
func (s *series) values(all []float64) []float64 {
	if s.buckets == nil {
		return append(all, s.value)
	}
	below := 0.0
	for _, n := range s.buckets.counts {
		below += n
		all = append(all, below)
	}
	return append(all, s.buckets.count, s.buckets.sum)
}

// A part is the name of a value of a series in Prometheus.
type part struct {
	name   string
	labels []Label
}

// parts returns the names of s's values, in their order.
func (s *series) parts() []part {
	name := s.metric.Name
	if s.buckets == nil {
		return []part{{name, s.labels}}
	}
	var all []part
	for _, b := range append(bounds(), math.Inf(1)) {
		all = append(all, part{name + "_bucket", append(slices.Clone(s.labels), Label{"le", leText(b)})})
	}
	return append(all, part{name + "_count", s.labels}, part{name + "_sum", s.labels})
}

// A point is the value of a series at a time, in milliseconds since 1970.
type point struct {
	*series
	at   int64
	gone bool // the series has no value from this time on
}

// A sink receives points. The times of a series increase. The sink reads the value of the series before it returns.
type sink interface {
	point(p point)
}

// mostSeries limits the memory that damaged or hostile names can use.
const mostSeries = 500_000

// An entity is an object with labels, and its series, one for each row of its shape.
type entity[T any] struct {
	shape  *shape[T]
	labels []Label
	series []*series
	dirty  bool
}

// mostLabels is the maximum number of labels of a shape.
const mostLabels = 5

// of returns the entity with the given values of the shape's labels. It creates the entity if
// necessary.
func (s *shape[T]) of(l *ledger, values ...string) *entity[T] {
	var key [mostLabels]string
	copy(key[:], values)
	e := s.entities[key]
	if e == nil {
		e = &entity[T]{shape: s, labels: slices.Clone(l.base), series: make([]*series, len(s.rows))}
		for i, v := range values {
			e.labels = append(e.labels, Label{s.labels[i], v})
		}
		if s.entities == nil {
			s.entities = map[[mostLabels]string]*entity[T]{}
		}
		s.entities[key] = e
	}
	return e
}

// at returns the series of row i.
func (e *entity[T]) at(l *ledger, i int) *series {
	if e.series[i] == nil {
		r := &e.shape.rows[i]
		e.series[i] = l.open(r.metric, append(slices.Clone(e.labels), r.label))
	}
	return e.series[i]
}

// add adds v to e's series.
func (e *entity[T]) add(l *ledger, v *T) {
	for i := range e.shape.rows {
		r := &e.shape.rows[i]
		if r.hist != nil {
			if h := r.hist(v); h.Count() > 0 {
				e.at(l, i).buckets.add(h, l.bounds)
			}
			continue
		}
		x := r.of(v)
		switch {
		case math.IsNaN(x):
			if s := e.series[i]; s != nil && r.metric.Type == Gauge {
				s.known = false
			}
		case r.metric.Type == Gauge:
			s := e.at(l, i)
			s.value, s.known = x, true
		case x != 0 || !r.rare || e.series[i] != nil:
			e.at(l, i).value += x
		}
	}
}

// update adds v and emits e's series.
func (e *entity[T]) update(l *ledger, v *T, begin, end int64) {
	e.add(l, v)
	e.emit(l, begin, end)
}

// expire removes the values of e's gauges until they are set again.
func (e *entity[T]) expire() {
	for _, s := range e.series {
		if s != nil && s.metric.Type == Gauge {
			s.known = false
		}
	}
}

// emit passes e's series to the sink, for a span from begin to end.
func (e *entity[T]) emit(l *ledger, begin, end int64) {
	for _, s := range e.series {
		if s != nil {
			l.emit(s, begin, end)
		}
	}
}

// open creates a series, which is not exported if there are too many series.
func (l *ledger) open(m *Metric, labels []Label) *series {
	s := &series{metric: m, number: len(l.all), known: m.Type != Gauge}
	for _, label := range labels {
		if label.Value != "" {
			s.labels = append(s.labels, Label{label.Name, labelValue(label.Value)})
		}
	}
	slices.SortFunc(s.labels, func(a, b Label) int { return cmp.Compare(a.Name, b.Name) })
	if m.Type == Histogram {
		s.buckets = l.empty()
	}
	if len(l.all) >= mostSeries {
		s.number = -1
		return s
	}
	l.all = append(l.all, s)
	return s
}

// longestLabel is the maximum length of a label in bytes; receivers reject much longer labels.
const longestLabel = 1024

// labelValue converts a value to valid UTF-8 of a length that all receivers accept. A hash keeps
// long values distinct.
func labelValue(v string) string {
	v = strings.ToValidUTF8(v, "\uFFFD")
	if len(v) <= longestLabel {
		return v
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(v)) // never fails
	return fmt.Sprintf("%s...%x", strings.ToValidUTF8(v[:longestLabel-20], ""), h.Sum64())
}

func (l *ledger) empty() *buckets { return &buckets{counts: make([]float64, len(l.bounds)+1)} }

// emit passes the value of s at end to the sink. Counters and histograms start at 0 when their
// first span begins, so that their increase in it is visible.
func (l *ledger) emit(s *series, begin, end int64) {
	if s.number < 0 {
		return
	}
	if !s.known {
		if s.emitted {
			l.put(s, end, true)
		}
		return
	}
	if !s.emitted && s.last == 0 && s.metric.Type != Gauge {
		value, buckets := s.value, s.buckets
		s.value = 0
		if buckets != nil {
			s.buckets = l.empty()
		}
		l.put(s, begin, false)
		s.value, s.buckets = value, buckets
	}
	l.put(s, end, false)
}

// put passes a point to the sink. Times of a series always increase, even if the clock of the run
// was set back.
func (l *ledger) put(s *series, at int64, gone bool) {
	if at <= s.last {
		at = s.last + 1
	}
	s.last, s.emitted = at, !gone
	l.now = max(l.now, at)
	if l.sink != nil && at >= l.since {
		l.sink.point(point{s, at, gone})
	}
}
