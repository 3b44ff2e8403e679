package analysis

import (
	"strings"

	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/scenario"
)

// A figure is a value and, if it is known, its 95% interval.
type figure struct {
	value     float64
	low, high *float64
	known     bool
}

func known(x float64) figure { return figure{value: x, known: true} }

// judge compares v with t. It returns a fact in doubt if the interval contains the limit, so that
// another run may be judged differently.
func (v figure) judge(t scenario.Threshold) (met bool, certain *bool, doubt []fact.Fact) {
	met = t.Met(v.value)
	if v.low == nil || v.high == nil {
		return met, nil, nil
	}
	sure := t.Met(*v.low) == met && t.Met(*v.high) == met
	if !sure {
		doubt = []fact.Fact{fact.New("threshold.uncertain", "low", shown(t, *v.low), "high", shown(t, *v.high))}
	}
	return met, &sure, doubt
}

// figureOf returns the value of one of scenario.Quantities in a step, in base units.
func figureOf(s *steps.Working, name string) figure {
	share := func(x *float64) figure { return figure{value: basics.Value(x), known: x != nil} }
	ended := float64(s.Done + s.Errors)
	each := func(x float64) figure { return figure{value: stats.Ratio(x, ended), known: ended > 0} }
	switch name {
	case "throughput":
		return figure{s.Throughput, s.ThroughputLow, s.ThroughputHigh, true}
	case "per_client":
		return figure{s.PerClient, basics.Over(s.ThroughputLow, s.ActiveClients), basics.Over(s.ThroughputHigh, s.ActiveClients), true}
	case "rate":
		return figure{s.Operations, s.OperationsLow, s.OperationsHigh, true}
	case "per_client_rate":
		return figure{s.PerClientRate, basics.Over(s.OperationsLow, s.ActiveClients), basics.Over(s.OperationsHigh, s.ActiveClients), true}
	case "error_ratio":
		return each(min(float64(s.Bad()), ended))
	case "missed_ratio":
		all := ended + float64(s.Missed)
		return figure{value: stats.Ratio(float64(s.Missed), all), known: all > 0}
	case "wait_ratio":
		return each(float64(s.Waits))
	case "cpu_efficiency":
		return figure{basics.Value(s.CPUEfficiency), s.CPUEfficiencyLow, s.CPUEfficiencyHigh, s.CPUEfficiency != nil}
	case "cluster_throughput":
		return figure{basics.Value(s.ClusterThroughput), s.ClusterThroughputLow, s.ClusterThroughputHigh, s.ClusterThroughput != nil}
	case "events_rate":
		return figure{s.EventRate, s.EventRateLow, s.EventRateHigh, s.Jobs != nil && !s.Programs}
	case "job_failure_ratio":
		return share(s.JobFailureRatio)
	case "crash_ratio":
		return share(s.CrashRatio)
	case "server_cpu":
		return share(s.ServerCPU)
	case "client_cpu":
		return share(s.ClientCPU)
	case "imbalance":
		if s.Balance == nil {
			return figure{}
		}
		return known(s.Balance.Imbalance)
	}
	return quantileOf(s.Figures, name)
}

// quantileOf returns a figure of a duration, such as latency_p99.
func quantileOf(s *steps.Figures, name string) figure {
	i := strings.LastIndexByte(name, '_')
	if i < 0 {
		return figure{}
	}
	q := map[string]*steps.Quantiles{
		"latency": s.Latency, "first_byte": s.FirstByte, "connect": s.Connect, "tls_handshake": s.Handshake, "login": s.Login,
		"redirect": s.Redirect, "job": s.JobSeconds,
	}[name[:i]]
	if q == nil || q.Count == 0 {
		return figure{}
	}
	value, ok := map[string]float64{"mean": q.Mean, "p50": q.P50, "p90": q.P90, "p95": q.P95, "p99": q.P99, "p999": q.P999,
		"max": q.Max}[name[i+1:]]
	return figure{value: value, known: ok}
}
