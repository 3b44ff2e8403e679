package export

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"

	"weir/measure"
)

// A series is one metric with its labels, and what it says now.
type series struct {
	metric *Metric
	number int     // place in the ledger
	labels []Label // run and scenario among them, sorted by name, none empty
	value  float64
	spread *spread // of a histogram
	known  bool    // false: a gauge has nothing to say at this time
	told   bool    // it was told, and not since that it has nothing to say
	last   int64   // time of the last point, in milliseconds since 1970
}

// A spread is what a histogram has counted.
type spread struct {
	buckets []float64 // one a bound, and those above all bounds: not cumulative
	sum     float64   // seconds
	count   float64
}

// add counts h's durations, each within 1%: buckets of h that a bound cuts
// through count as below it, so that a duration of just the bound does.
func (s *spread) add(h *measure.Histogram, bounds []float64) {
	i := 0
	h.Buckets(func(from, _ float64, n int64) {
		for i > 0 && from <= bounds[i-1] {
			i-- // they come in order; this is for those who do not trust it
		}
		for i < len(bounds) && from > bounds[i] {
			i++
		}
		s.buckets[i] += float64(n)
		s.count += float64(n)
	})
	s.sum += h.Sum()
}

// values appends what s says to all: its value, or of a histogram how many
// durations are not above each bound, and at all, then their count and their sum.
func (s *series) values(all []float64) []float64 {
	if s.spread == nil {
		return append(all, s.value)
	}
	below := 0.0
	for _, n := range s.spread.buckets {
		below += n
		all = append(all, below)
	}
	return append(all, s.spread.count, s.spread.sum)
}

// A part is what Prometheus calls one of a series' values.
type part struct {
	name   string
	labels []Label
}

// parts are those of s's values, in their order.
func (s *series) parts() []part {
	name := s.metric.Name
	if s.spread == nil {
		return []part{{name, s.labels}}
	}
	var all []part
	for _, b := range append(bounds(), math.Inf(1)) {
		all = append(all, part{name + "_bucket", append(slices.Clone(s.labels), Label{"le", leText(b)})})
	}
	return append(all, part{name + "_count", s.labels}, part{name + "_sum", s.labels})
}

// A point is what a series says at a time, in milliseconds since 1970.
type point struct {
	*series
	at   int64
	gone bool // the series says nothing from then on
}

// A sink takes points. The times of a series grow with each of its points;
// what the series says is to be taken at once, since it goes on.
type sink interface {
	point(p point)
}

// mostSeries bounds the memory that damaged or hostile names can take.
const mostSeries = 500_000

// An entity is one thing with labels, and its series, one a row of its shape.
type entity[T any] struct {
	shape  *shape[T]
	labels []Label
	series []*series
	dirty  bool
}

// mostLabels is how many labels a shape has at most.
const mostLabels = 5

// of returns the entity with these values of the shape's labels, a new one if
// there is none.
func (s *shape[T]) of(l *ledger, values ...string) *entity[T] {
	var key [mostLabels]string
	copy(key[:], values)
	e := s.things[key]
	if e == nil {
		e = &entity[T]{shape: s, labels: slices.Clone(l.base), series: make([]*series, len(s.rows))}
		for i, v := range values {
			e.labels = append(e.labels, Label{s.labels[i], v})
		}
		if s.things == nil {
			s.things = map[[mostLabels]string]*entity[T]{}
		}
		s.things[key] = e
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

// take adds what v says to e's series.
func (e *entity[T]) take(l *ledger, v *T) {
	for i := range e.shape.rows {
		r := &e.shape.rows[i]
		if r.hist != nil {
			if h := r.hist(v); h.Count() > 0 {
				e.at(l, i).spread.add(h, l.bounds)
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

// say takes v and tells what e's series say then.
func (e *entity[T]) say(l *ledger, v *T, begin, end int64) {
	e.take(l, v)
	e.tell(l, begin, end)
}

// forget makes e's gauges have nothing to say until they are taken again.
func (e *entity[T]) forget() {
	for _, s := range e.series {
		if s != nil && s.metric.Type == Gauge {
			s.known = false
		}
	}
}

// tell tells the sink what e's series say at end, of a span that began at begin.
func (e *entity[T]) tell(l *ledger, begin, end int64) {
	for _, s := range e.series {
		if s != nil {
			l.tell(s, begin, end)
		}
	}
}

// open makes a series, or one that nobody sees when there are too many.
func (l *ledger) open(m *Metric, labels []Label) *series {
	s := &series{metric: m, number: len(l.all), known: m.Type != Gauge}
	for _, label := range labels {
		if label.Value != "" {
			s.labels = append(s.labels, Label{label.Name, labelValue(label.Value)})
		}
	}
	slices.SortFunc(s.labels, func(a, b Label) int { return strings.Compare(a.Name, b.Name) })
	if m.Type == Histogram {
		s.spread = l.empty()
	}
	if len(l.all) >= mostSeries {
		s.number = -1
		l.mute++
		return s
	}
	l.all = append(l.all, s)
	return s
}

// longestLabel is in bytes; receivers refuse what is much longer.
const longestLabel = 1024

// labelValue makes a value valid UTF-8 of a length that all take. What is cut
// off makes a difference all the same.
func labelValue(v string) string {
	v = strings.ToValidUTF8(v, "\uFFFD")
	if len(v) <= longestLabel {
		return v
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(v)) // never fails
	return fmt.Sprintf("%s...%x", strings.ToValidUTF8(v[:longestLabel-20], ""), h.Sum64())
}

func (l *ledger) empty() *spread { return &spread{buckets: make([]float64, len(l.bounds)+1)} }

// tell tells the sink what s says at end. What grows begins at 0 when its first
// span does, so that what it grew by in that one can be seen, too.
func (l *ledger) tell(s *series, begin, end int64) {
	if s.number < 0 {
		return
	}
	if !s.known {
		if s.told {
			l.put(s, end, true)
		}
		return
	}
	if !s.told && s.last == 0 && s.metric.Type != Gauge {
		value, spread := s.value, s.spread
		s.value = 0
		if spread != nil {
			s.spread = l.empty()
		}
		l.put(s, begin, false)
		s.value, s.spread = value, spread
	}
	l.put(s, end, false)
}

// put gives the sink a point. Times of a series always grow, whatever the
// clock of the run did.
func (l *ledger) put(s *series, at int64, gone bool) {
	if at <= s.last {
		at = s.last + 1
	}
	s.last, s.told = at, !gone
	l.now = max(l.now, at)
	if l.sink != nil && at >= l.since {
		l.sink.point(point{s, at, gone})
	}
}
