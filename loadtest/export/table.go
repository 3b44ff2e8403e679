// Package export sends the metrics of a run to other tools, during the run and after it: Prometheus
// (a page to scrape, remote write, OpenMetrics text), InfluxDB and Grafana.
//
// There is one table of metrics ([Table]) and one ledger of their values, which a
// [results.Follower] fills from a run directory; the encoders differ only in the format of the
// values. The export does not affect the load: a receiver that is slow or down costs the run
// nothing, because the run directory is the queue.
//
// Files: table and rows_* define the metrics; ledger and series hold their values; page, remote,
// influx and files write them; sender follows a run and receiver uploads its points; grafana has
// the dashboard.
// them; sender follows a run and receiver uploads its points; grafana has the dashboard.
package export

import (
	"math"
	"strconv"
	"strings"

	"weir/loadtest/analysis"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/monitor"
)

// A Type is the type of a metric.
type Type int

// Types of metrics.
const (
	Counter   Type = iota // grows from 0
	Gauge                 // has a current value
	Histogram             // counts durations below bounds, each growing from 0
)

// String returns the name of the type in OpenMetrics.
func (t Type) String() string { return [...]string{"counter", "gauge", "histogram"}[t] }

// A Metric is one row of the table: a measured quantity with its unit.
type Metric struct {
	Name   string // as in Prometheus: with its unit and, for a counter, _total
	Help   string // one sentence
	Type   Type
	Group  string   // measurement of InfluxDB: metrics with the same labels
	Labels []string // in addition to run and scenario
}

// Field returns the metric's name as a field of its group.
func (m *Metric) Field() string { return strings.TrimPrefix(m.Name, prefix) }

// prefix is the start of all names.
const prefix = "weir_"

// A Label is a name and its value.
type Label struct{ Name, Value string }

// bounds returns the upper bounds of the buckets of a histogram, in seconds: 1, 2.5 and 5 of each
// power of ten, from 100 us, the time of a local disk, to the 10 minutes of a file from tape. Three
// bounds a decade give quantiles within some 40% (exact quantiles of each second are separate
// gauges), and 21 buckets cost little to store. They are classic buckets, since native histograms
// need a newer server, and neither text files nor InfluxDB have them.
func bounds() []float64 {
	return []float64{
		1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 600,
	}
}

// boundText formats a bound in the shortest way.
func boundText(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// leText formats a bound like the label le of OpenMetrics, 1.0 and not 1, so that series are the
// same in all formats.
func leText(x float64) string {
	if math.IsInf(x, 1) {
		return "+Inf"
	}
	if x == math.Trunc(x) {
		return boundText(x) + ".0"
	}
	return boundText(x)
}

// A row computes the value of a metric from a T: the increase of a counter, or the value of a
// gauge; NaN if it is unknown.
type row[T any] struct {
	metric *Metric
	label  Label // in addition to the entity's labels; may be empty
	rare   bool  // the series is created with its first value other than 0
	of     func(*T) float64
	hist   func(*T) *measure.Histogram // instead of of: the durations to add to a histogram
}

// A shape has all metrics of one kind of object, and the objects, which differ by their labels.
type shape[T any] struct {
	group    string
	labels   []string
	rows     []row[T]
	entities map[[mostLabels]string]*entity[T]
}

// counter adds a row. The name is without weir_ and _total.
func (s *shape[T]) counter(name, help string, of func(*T) float64) {
	s.add(name+"_total", help, Counter, false, of)
}

// rareCounter adds a counter that most runs do not have.
func (s *shape[T]) rareCounter(name, help string, of func(*T) float64) {
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
	m := &Metric{Name: prefix + name, Help: help, Type: kind, Group: prefix + s.group,
		Labels: append(append([]string(nil), s.labels...), label)}
	for _, value := range values {
		s.rows = append(s.rows, row[T]{metric: m, label: Label{label, value}, rare: rare, of: func(v *T) float64 { return of(v, value) }})
	}
}

// metrics appends the shape's metrics to all, each once.
func (s *shape[T]) metrics(all []*Metric) []*Metric {
	for _, r := range s.rows {
		if n := len(all); n == 0 || all[n-1] != r.metric {
			all = append(all, r.metric)
		}
	}
	return all
}

// tables are all shapes. Each ledger has its own tables, with the objects of its run.
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
	link      shape[results.LinkInterval]
	curve     shape[analysis.Step]
	found     shape[analysis.Findings]
	limit     shape[analysis.Bottleneck]
	judgment  shape[analysis.Judgment]
}

func newTables() *tables {
	return &tables{
		info: infoRows(), run: runRows(), events: eventRows(), clients: operationRows(), spans: durationRows(),
		host: hostRows(), disk: diskRows(), net: netRows(), process: processRows(), service: serviceRows(), balanced: balancedRows(),
		transfers: transferRows(), link: linkRows(),
		curve: curveRows(), found: foundRows(), limit: limitRows(), judgment: judgmentRows(),
	}
}

// Table returns all metrics in the order in which they are written.
func Table() []*Metric { return newTables().metrics() }

func (t *tables) metrics() (all []*Metric) {
	for _, s := range []interface{ metrics(all []*Metric) []*Metric }{
		&t.info, &t.run, &t.events, &t.clients, &t.spans, &t.host, &t.disk, &t.net, &t.process, &t.service, &t.balanced, &t.transfers,
		&t.link,
		&t.curve, &t.found, &t.limit, &t.judgment,
	} {
		all = s.metrics(all)
	}
	return all
}

// known returns the value that p points to, or NaN if p is nil.
func known(p *float64) float64 {
	if p == nil {
		return math.NaN()
	}
	return *p
}

// ofPart applies value to a part of a T. The result is NaN if the part does not exist.
func ofPart[T, P any](part func(*T) *P, value func(*P) float64) func(*T) float64 {
	return func(v *T) float64 {
		if p := part(v); p != nil {
			return value(p)
		}
		return math.NaN()
	}
}

// byMode returns the time in one of the modes user and system.
func byMode(mode string, user, system float64) float64 {
	if mode == "user" {
		return user
	}
	return system
}

// flag returns 1 for true and 0 for false.
func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
