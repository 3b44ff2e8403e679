package export

import (
	"weir/loadtest/analysis"
)

// curveRows returns the points of the curve. Their labels are the step and its clients, because
// these are constant.
func curveRows() shape[analysis.Step] {
	type step = analysis.Step
	s := shape[step]{group: "curve", labels: []string{"step", "clients"}}
	s.gauge("curve_clients", "Planned virtual clients of the step.", func(v *step) float64 { return float64(v.Clients) })
	s.gauge("curve_active_clients", "Running virtual clients, mean over the measurement.", func(v *step) float64 { return v.ActiveClients })
	s.gauge("curve_arrivals_per_second", "Open model: planned arrivals.", func(v *step) float64 { return unlessZero(v.Rate) })
	s.gauge("curve_measured_seconds", "Measurement time of the step.", func(v *step) float64 { return v.Duration })
	s.gauge("curve_throughput_bytes_per_second", "Mean throughput.", func(v *step) float64 { return v.Throughput })
	s.gauge("curve_throughput_low_bytes_per_second", "Lower end of the 95% interval of the throughput.",
		func(v *step) float64 { return known(v.ThroughputLow) })
	s.gauge("curve_throughput_high_bytes_per_second", "Upper end of the 95% interval of the throughput.",
		func(v *step) float64 { return known(v.ThroughputHigh) })
	s.gauge("curve_operations_per_second", "Mean rate of operations that succeeded.", func(v *step) float64 { return v.Operations })
	s.gauge("curve_per_client_bytes_per_second", "Mean throughput of one client.", func(v *step) float64 { return v.PerClient })
	s.gauge("curve_errors", "Operations that failed.", func(v *step) float64 { return float64(v.Errors) })
	s.gauge("curve_error_ratio", "Share of ended operations that failed or had a wrong payload.",
		func(v *step) float64 { return v.ErrorRatio })
	for _, q := range []struct {
		name, what string
		of         func(*analysis.Quantiles) float64
	}{
		{"mean", "Mean", func(q *analysis.Quantiles) float64 { return q.Mean }},
		{"p50", "Median", func(q *analysis.Quantiles) float64 { return q.P50 }},
		{"p90", "90% quantile", func(q *analysis.Quantiles) float64 { return q.P90 }},
		{"p99", "99% quantile", func(q *analysis.Quantiles) float64 { return q.P99 }},
		{"max", "Longest", func(q *analysis.Quantiles) float64 { return q.Max }},
	} {
		s.gauge("curve_latency_"+q.name+"_seconds", q.what+" of the latencies.",
			ofPart(func(v *step) *analysis.Quantiles { return v.Latency }, q.of))
	}
	s.gauge("curve_server_cpu_ratio", "Used share of the cores of the server's hosts.", func(v *step) float64 { return known(v.ServerCPU) })
	s.gauge("curve_client_cpu_ratio", "Used share of the cores of the clients' hosts.", func(v *step) float64 { return known(v.ClientCPU) })
	jobRows(&s)
	s.gauge("curve_steady", "1 if the step was steady, without drift.",
		ofPart(func(v *step) *bool { return v.Steady }, func(b *bool) float64 { return flag(*b) }))
	return s
}

// jobRows adds the metrics of jobs in a point of the curve.
func jobRows(s *shape[analysis.Step]) {
	type step = analysis.Step
	jobs := func(value func(*analysis.JobCounts) float64) func(*step) float64 {
		return ofPart(func(v *step) *analysis.JobCounts { return v.Jobs }, value)
	}
	s.gauge("curve_jobs_running", "Running jobs, mean; this metric and the following ones only in runs with jobs.",
		func(v *step) float64 { return unlessZero(v.RunningJobs) })
	s.gauge("curve_jobs_done", "Jobs that completed.", jobs(func(j *analysis.JobCounts) float64 { return float64(j.Done) }))
	s.gauge("curve_jobs_failed", "Jobs that failed.", jobs(func(j *analysis.JobCounts) float64 { return float64(j.Failed) }))
	s.gauge("curve_jobs_crashed", "Jobs that crashed.", jobs(func(j *analysis.JobCounts) float64 { return float64(j.Crashed) }))
	s.gauge("curve_job_mean_seconds", "Mean wall clock time of completed jobs.",
		ofPart(func(v *step) *analysis.Quantiles { return v.JobSeconds }, func(q *analysis.Quantiles) float64 { return q.Mean }))
	s.gauge("curve_job_p90_seconds", "90% quantile of the wall clock time of completed jobs.",
		ofPart(func(v *step) *analysis.Quantiles { return v.JobSeconds }, func(q *analysis.Quantiles) float64 { return q.P90 }))
	s.gauge("curve_cpu_efficiency_ratio", "Compute time of jobs divided by their wall clock time.",
		func(v *step) float64 { return known(v.CPUEfficiency) })
	s.gauge("curve_cpu_efficiency_low_ratio", "Lower end of the 95% interval.", func(v *step) float64 { return known(v.CPUEfficiencyLow) })
	s.gauge("curve_cpu_efficiency_high_ratio", "Upper end of the 95% interval.", func(v *step) float64 { return known(v.CPUEfficiencyHigh) })
	s.gauge("curve_cluster_throughput_jobs", "Running jobs times their CPU efficiency.",
		func(v *step) float64 { return known(v.ClusterThroughput) })
	s.gauge("curve_cluster_throughput_low_jobs", "Lower end of the 95% interval.",
		func(v *step) float64 { return known(v.ClusterThroughputLow) })
	s.gauge("curve_cluster_throughput_high_jobs", "Upper end of the 95% interval.",
		func(v *step) float64 { return known(v.ClusterThroughputHigh) })
	s.gauge("curve_events_per_second", "Mean rate of completed events.", func(v *step) float64 { return unlessZero(v.EventRate) })
}

// foundRows returns the findings of the whole run.
func foundRows() shape[analysis.Findings] {
	type f = analysis.Findings
	s := shape[f]{group: "findings"}
	s.each("validity", "1 for the validity of the run: valid, suspect or invalid.", Gauge, false, "status",
		[]string{analysis.Valid, analysis.Suspect, analysis.Invalid},
		func(v *f, status string) float64 { return flag(v.Validity.Status == status) })
	knee := func(name, help string, value func(*analysis.Knee) float64) {
		s.gauge("knee_"+name, help, ofPart(func(v *f) *analysis.Knee { return v.Knee }, value))
	}
	knee("clients", "Load above which each further client adds clearly less.", func(k *analysis.Knee) float64 { return float64(k.Clients) })
	knee("clients_low", "Lower end of the 95% interval.", func(k *analysis.Knee) float64 { return known(k.ClientsLow) })
	knee("clients_high", "Upper end of the 95% interval.", func(k *analysis.Knee) float64 { return known(k.ClientsHigh) })
	knee("throughput_bytes_per_second", "Throughput at the knee.", func(k *analysis.Knee) float64 { return k.Throughput })
	optimum := func(name, help string, value func(*analysis.Optimum) float64) {
		s.gauge("optimum_"+name, help, ofPart(func(v *f) *analysis.Optimum { return v.Optimum }, value))
	}
	optimum("clients", "Smallest tested number of clients with the maximum throughput.",
		func(o *analysis.Optimum) float64 { return float64(o.Clients) })
	optimum("clients_low", "Lightest tested load that does not differ significantly from the best.",
		func(o *analysis.Optimum) float64 { return float64(o.ClientsLow) })
	optimum("clients_high", "Heaviest tested load that does not differ significantly from the best.",
		func(o *analysis.Optimum) float64 { return float64(o.ClientsHigh) })
	optimum("throughput_bytes_per_second", "Throughput at the optimum.", func(o *analysis.Optimum) float64 { return o.Throughput })
	optimum("throughput_low_bytes_per_second", "Lower end of the 95% interval.", func(o *analysis.Optimum) float64 { return known(o.Low) })
	optimum("throughput_high_bytes_per_second", "Upper end of the 95% interval.", func(o *analysis.Optimum) float64 { return known(o.High) })
	optimum("operations_per_second", "Rate of operations at the optimum.", func(o *analysis.Optimum) float64 { return o.Operations })
	optimum("inside_tested_range", "1 if the maximum lies inside the tested range, 0 if the heaviest load gave most.",
		func(o *analysis.Optimum) float64 { return flag(o.Inside) })
	return s
}

func limitRows() shape[analysis.Bottleneck] {
	s := shape[analysis.Bottleneck]{group: "bottleneck", labels: []string{"resource", "host", "side"}}
	s.gauge("bottleneck_from_clients", "Lightest load at which the resource is exhausted.",
		func(b *analysis.Bottleneck) float64 { return float64(b.From) })
	return s
}

func judgmentRows() shape[analysis.Judgment] {
	s := shape[analysis.Judgment]{group: "threshold", labels: []string{"threshold"}}
	s.gauge("threshold_met", "1 if the threshold of the scenario was met.", func(j *analysis.Judgment) float64 { return flag(j.Met) })
	return s
}
