package export

import (
	"math"

	"weir/analysis"
	"weir/measure"
	"weir/monitor"
)

// A row is how a metric's value comes out of a T: what is added to a counter,
// or what a gauge shows now; NaN for what is not known.
type row[T any] struct {
	metric *Metric
	label  Label // beside the entity's own, or none
	rare   bool  // there is no series before the first value that is not 0
	of     func(*T) float64
	hist   func(*T) *measure.Histogram // instead of of: what is added to a histogram
}

// A shape is all rows of one kind of thing, and the things there are, which
// differ by their labels.
type shape[T any] struct {
	group  string
	labels []string
	rows   []row[T]
	things map[[mostLabels]string]*entity[T]
}

// counter adds a row. The name is without weir_ and _total.
func (s *shape[T]) counter(name, help string, of func(*T) float64) {
	s.add(name+"_total", help, Counter, false, of)
}

// seldom adds a counter that most runs do not have.
func (s *shape[T]) seldom(name, help string, of func(*T) float64) {
	s.add(name+"_total", help, Counter, true, of)
}

// gauge adds a row. The name is without weir_.
func (s *shape[T]) gauge(name, help string, of func(*T) float64) {
	s.add(name, help, Gauge, false, of)
}

func (s *shape[T]) add(name, help string, kind Type, rare bool, of func(*T) float64) {
	m := &Metric{Name: prefix + name, Help: help, Type: kind, Group: prefix + s.group, Labels: s.labels}
	s.rows = append(s.rows, row[T]{metric: m, rare: rare, of: of})
}

// histogram adds a row. The name is without weir_.
func (s *shape[T]) histogram(name, help string, of func(*T) *measure.Histogram) {
	s.add(name, help, Histogram, true, nil)
	s.rows[len(s.rows)-1].hist = of
}

// each adds one row for each value of a label, all of one metric.
func (s *shape[T]) each(name, help string, kind Type, rare bool, label string, values []string, of func(v *T, value string) float64) {
	m := &Metric{Name: prefix + name, Help: help, Type: kind, Group: prefix + s.group, Labels: append(append([]string(nil), s.labels...), label)}
	for _, value := range values {
		s.rows = append(s.rows, row[T]{metric: m, label: Label{label, value}, rare: rare, of: func(v *T) float64 { return of(v, value) }})
	}
}

// metrics adds the shape's metrics to all, each once.
func (s *shape[T]) metrics(all []*Metric) []*Metric {
	for _, r := range s.rows {
		if n := len(all); n == 0 || all[n-1] != r.metric {
			all = append(all, r.metric)
		}
	}
	return all
}

// tables are all shapes there are. A ledger has its own, with the run's things
// in them; a metric's address tells it apart.
type tables struct {
	info      shape[moment]
	run       shape[moment]
	events    shape[measure.Event]
	clients   shape[measure.Interval]
	spans     shape[measure.Sum]
	host      shape[monitor.Sample]
	disk      shape[diskSecond]
	net       shape[monitor.Net]
	process   shape[monitor.Proc]
	service   shape[monitor.Service]
	balanced  shape[monitor.Balanced]
	transfers shape[monitor.Transfers]
	curve     shape[analysis.Step]
	found     shape[analysis.Findings]
	limit     shape[analysis.Bottleneck]
	judgment  shape[analysis.Judgment]
}

func newTables() *tables {
	return &tables{
		info: infoRows(), run: runRows(), events: eventRows(), clients: operationRows(), spans: durationRows(),
		host: hostRows(), disk: diskRows(), net: netRows(), process: processRows(), service: serviceRows(), balanced: balancedRows(), transfers: transferRows(),
		curve: curveRows(), found: foundRows(), limit: limitRows(), judgment: judgmentRows(),
	}
}

// Table returns all metrics there are, in the order in which they are written.
func Table() []*Metric { return newTables().metrics() }

func (t *tables) metrics() []*Metric {
	all := t.info.metrics(nil)
	all = t.events.metrics(t.run.metrics(all))
	all = t.spans.metrics(t.clients.metrics(all))
	all = t.net.metrics(t.disk.metrics(t.host.metrics(all)))
	all = t.service.metrics(t.process.metrics(all))
	all = t.transfers.metrics(t.balanced.metrics(all))
	all = t.found.metrics(t.curve.metrics(all))
	return t.judgment.metrics(t.limit.metrics(all))
}

// known is what p points to, NaN for nothing.
func known(p *float64) float64 {
	if p == nil {
		return math.NaN()
	}
	return *p
}

// of makes a value of a T from one of a part of it: NaN where that is not there.
func of[T, P any](part func(*T) *P, value func(*P) float64) func(*T) float64 {
	return func(v *T) float64 {
		if p := part(v); p != nil {
			return value(p)
		}
		return math.NaN()
	}
}

// byMode is the time that was spent in one of the modes.
func byMode(mode string, user, system float64) float64 {
	if mode == "user" {
		return user
	}
	return system
}

// flag is 1 for true.
func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
