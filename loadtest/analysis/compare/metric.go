package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"weir/internal/unit"
	"weir/loadtest/analysis"
)

// Better values of a Metric.
const (
	Higher  = "higher"
	Lower   = "lower"
	Neither = "neither"
)

// A Metric is one figure of each step, or of each run.
type Metric struct {
	Name   string // as in --metric
	Title  string // for people
	Better string // Higher, Lower or Neither
	Plain  bool   // may be zero: groups are compared by difference, not by ratio
	Format func(float64) string

	step func(*analysis.Step) (float64, bool) // nil for metrics of runs
	ends func(*analysis.Step) (low, high *float64)
	run  func(*analysis.Findings) (float64, bool)
}

// PerRun reports whether the metric is one number of each run, not of each step.
func (m *Metric) PerRun() bool { return m.run != nil }

// Metrics returns all metrics, the metrics of steps first.
func Metrics() []Metric {
	perSecond := func(v float64) string { return unit.Count(v) + "/s" }
	count := func(v float64) string { return unit.Count(v) + " clients" }
	cpu := func(v float64) string { return unit.Seconds(v) + "/GB" }
	middle := func(q *analysis.Quantiles) float64 { return q.P50 }
	return []Metric{
		{Name: "throughput", Title: "throughput", Better: Higher, Format: unit.Bits,
			step: func(s *analysis.Step) (float64, bool) { return s.Throughput, s.Moved > 0 },
			ends: func(s *analysis.Step) (_, _ *float64) { return s.ThroughputLow, s.ThroughputHigh }},
		{Name: "rate", Title: "rate", Better: Higher, Format: perSecond,
			step: func(s *analysis.Step) (float64, bool) { return s.Operations, s.Done > 0 },
			ends: func(s *analysis.Step) (_, _ *float64) { return s.OperationsLow, s.OperationsHigh }},
		duration("mean", "mean latency", func(s *analysis.Step) *analysis.Quantiles { return s.Latency },
			func(q *analysis.Quantiles) float64 { return q.Mean }),
		duration("p50", "median latency", func(s *analysis.Step) *analysis.Quantiles { return s.Latency }, middle),
		duration("p99", "p99 latency", func(s *analysis.Step) *analysis.Quantiles { return s.Latency },
			func(q *analysis.Quantiles) float64 { return q.P99 }),
		{Name: "error_ratio", Title: "error ratio", Better: Lower, Plain: true, Format: unit.Percent,
			step: func(s *analysis.Step) (float64, bool) { return s.ErrorRatio, s.Done+s.Errors > 0 }},
		duration("first_byte", "median time to first byte", func(s *analysis.Step) *analysis.Quantiles { return s.FirstByte }, middle),
		duration("connect", "median time to connect", func(s *analysis.Step) *analysis.Quantiles { return s.Connect }, middle),
		duration("tls_handshake", "median time of TLS handshakes", func(s *analysis.Step) *analysis.Quantiles { return s.Handshake }, middle),
		duration("login", "median time to log in", func(s *analysis.Step) *analysis.Quantiles { return s.Login }, middle),
		{Name: "server_cpu", Title: "server CPU per GB", Better: Lower, Format: cpu,
			step: func(s *analysis.Step) (float64, bool) { return perGB(s.ServerCores, s) }},
		{Name: "client_cpu", Title: "client CPU per GB", Better: Lower, Format: cpu,
			step: func(s *analysis.Step) (float64, bool) { return perGB(s.ClientCores, s) }},
		ofJobs("cluster_throughput", "cluster throughput", Higher, unit.Significant,
			func(s *analysis.Step) *float64 { return s.ClusterThroughput },
			func(s *analysis.Step) (_, _ *float64) { return s.ClusterThroughputLow, s.ClusterThroughputHigh }),
		ofJobs("cpu_efficiency", "CPU efficiency", Higher, unit.Percent, func(s *analysis.Step) *float64 { return s.CPUEfficiency },
			func(s *analysis.Step) (_, _ *float64) { return s.CPUEfficiencyLow, s.CPUEfficiencyHigh }),
		{Name: "job_mean", Title: "mean wall clock time of jobs", Better: Lower, Format: unit.Seconds,
			step: func(s *analysis.Step) (float64, bool) { x, _, ok := s.MeanJob(); return x, ok }},
		{Name: "events_rate", Title: "events", Better: Higher, Format: perSecond,
			step: func(s *analysis.Step) (float64, bool) { return s.EventRate, s.EventRate > 0 },
			ends: func(s *analysis.Step) (_, _ *float64) { return s.EventRateLow, s.EventRateHigh }},
		lost("crash_ratio", "crashed jobs", func(s *analysis.Step) *float64 { return s.CrashRatio }),
		lost("job_failure_ratio", "failed jobs", func(s *analysis.Step) *float64 { return s.JobFailureRatio }),
		{Name: "peak", Title: "throughput of the optimum", Better: Higher, Format: unit.Bits,
			run: func(f *analysis.Findings) (float64, bool) {
				if f.Optimum == nil || f.Measure == analysis.Rate {
					return 0, false
				}
				return f.Optimum.Throughput, true
			}},
		{Name: "optimum", Title: "optimum", Better: Neither, Format: count,
			run: func(f *analysis.Findings) (float64, bool) {
				if f.Optimum == nil || !f.Optimum.Inside {
					return 0, false
				}
				return float64(f.Optimum.Clients), true
			}},
		{Name: "knee", Title: "knee", Better: Higher, Format: count,
			run: func(f *analysis.Findings) (float64, bool) {
				if f.Knee == nil {
					return 0, false
				}
				return float64(f.Knee.Clients), true
			}},
	}
}

// ofJobs returns a metric of jobs, with its interval.
func ofJobs(name, title, better string, format func(float64) string, of func(*analysis.Step) *float64,
	ends func(*analysis.Step) (low, high *float64)) Metric {
	return Metric{Name: name, Title: title, Better: better, Format: format, ends: ends, step: func(s *analysis.Step) (float64, bool) {
		if x := of(s); x != nil {
			return *x, true
		}
		return 0, false
	}}
}

// lost returns a metric that is a share of jobs that did not complete.
func lost(name, title string, of func(*analysis.Step) *float64) Metric {
	m := ofJobs(name, title, Lower, unit.Percent, of, nil)
	m.Plain = true
	return m
}

func duration(name, title string, of func(*analysis.Step) *analysis.Quantiles, which func(*analysis.Quantiles) float64) Metric {
	return Metric{Name: name, Title: title, Better: Lower, Format: unit.Seconds, step: func(s *analysis.Step) (float64, bool) {
		if q := of(s); q != nil {
			return which(q), true
		}
		return 0, false
	}}
}

// perGB converts busy cores into CPU seconds for each 10^9 bytes of payload.
func perGB(cores *float64, s *analysis.Step) (float64, bool) {
	if cores == nil || s.Throughput <= 0 {
		return 0, false
	}
	return *cores / (s.Throughput / 1e9), true
}

// usual returns the metrics that are compared unless others are given: with each additional metric,
// every difference is harder to detect (see Holm).
func usual(measure string) []string {
	switch measure {
	case ofCPU:
		return []string{"cluster_throughput", "cpu_efficiency", "job_mean", "crash_ratio", "job_failure_ratio"}
	case ofEvents:
		return []string{"events_rate", "job_mean", "crash_ratio", "job_failure_ratio"}
	}
	return []string{measure, "p50", "p99", "error_ratio"}
}

// Values by which runs of jobs are compared, in addition to the measures of other runs. The number
// of moved bytes does not describe jobs: jobs that stage files move more for the same work.
const (
	ofCPU    = "jobs that compute"
	ofEvents = "jobs that only read"
)

// choose returns the named metrics in the order of names; "all" selects all metrics.
func choose(names []string) ([]Metric, error) {
	all := Metrics()
	var chosen []Metric
	for _, name := range names {
		if name == "all" {
			chosen = append(chosen, all...)
			continue
		}
		i := slices.IndexFunc(all, func(m Metric) bool { return m.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown metric %q: use all, or some of %s", name, strings.Join(MetricNames(), ", "))
		}
		chosen = append(chosen, all[i])
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(chosen, func(m Metric) bool {
		twice := seen[m.Name]
		seen[m.Name] = true
		return twice
	}), nil
}

// MetricOf returns the metric of that name, nil if it does not exist.
func MetricOf(name string) *Metric {
	for _, m := range Metrics() {
		if m.Name == name {
			return &m
		}
	}
	return nil
}

// MetricNames returns the names of all metrics.
func MetricNames() []string {
	var names []string
	for _, m := range Metrics() {
		names = append(names, m.Name)
	}
	return names
}

// scale converts a value to the scale on which groups are compared: logarithms, so that a shift is
// a ratio, unless the metric may be zero.
func (m *Metric) scale(v float64) (float64, bool) {
	if m.Plain {
		return v, finite(v)
	}
	return math.Log(v), v > 0 && !math.IsInf(v, 0)
}

// unscale is the inverse of scale, also for a shift: a ratio, or a difference.
func (m *Metric) unscale(v float64) float64 {
	if m.Plain {
		return v
	}
	return min(math.Exp(v), math.MaxFloat64)
}
