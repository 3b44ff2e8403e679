// Package export hands a run's numbers to other tools while the run goes on
// and after it: Prometheus (a page to fetch, remote write, OpenMetrics text),
// InfluxDB and Grafana.
//
// There is one table of metrics ([Table]) and one ledger that is filled from a
// run directory, by way of a [results.Follower]; encoders only differ in how
// they write what the ledger says. Nothing here touches the load: a receiver
// that is slow or dead costs the run nothing, since the run directory itself is
// the queue.
//
// The files: table and the rows_ files say what there is; ledger, series and
// seconds keep it; page, remote, influx, openmetrics and files write it; sender
// follows a run, order puts its points in order, courier brings them to a
// receiver; finder asks what the run shows; grafana has the dashboard.
package export

import (
	"math"
	"strconv"
	"strings"
)

// A Type says how a metric's values follow each other.
type Type int

// Types of metrics.
const (
	Counter   Type = iota // grows from 0
	Gauge                 // is what it is now
	Histogram             // counts durations below bounds, each growing from 0
)

// String returns the type as OpenMetrics names it.
func (t Type) String() string { return [...]string{"counter", "gauge", "histogram"}[t] }

// A Metric is one row of the table: what is measured, in which unit.
type Metric struct {
	Name   string // as in Prometheus: with its unit and, of a counter, _total
	Help   string // one sentence
	Type   Type
	Group  string   // measurement of InfluxDB: metrics with the same labels
	Labels []string // beside run and scenario
}

// Field returns the metric's name as a field of its group.
func (m *Metric) Field() string { return strings.TrimPrefix(m.Name, prefix) }

// prefix begins all names.
const prefix = "weir_"

// A Label is a name and its value.
type Label struct{ Name, Value string }

// bounds are the upper bounds of the buckets of a histogram, in seconds: 1,
// 2.5 and 5 of each power of ten, from 100 us, which a local disk takes, to the
// 10 minutes of a file from tape. Three a decade tell quantiles within some
// 40% (exact ones of each second are gauges of their own), and 21 buckets cost
// little to store. They are of the classic kind, since native histograms need
// a newer server, and neither text files nor InfluxDB have them.
func bounds() []float64 {
	return []float64{
		1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 600,
	}
}

// boundText writes a bound as shortly as can be.
func boundText(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// leText writes a bound as the label le has it in OpenMetrics, which Prometheus
// fetches, too, so that series are the same by whichever way they come: 1.0,
// not 1.
func leText(x float64) string {
	if math.IsInf(x, 1) {
		return "+Inf"
	}
	if x == math.Trunc(x) {
		return boundText(x) + ".0"
	}
	return boundText(x)
}
