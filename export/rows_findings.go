package export

import "weir/analysis"

// curveRows has the points of the curve. Their labels are the step and its
// clients, since these do not change with time.
func curveRows() shape[analysis.Step] {
	type step = analysis.Step
	s := shape[step]{group: "curve", labels: []string{"step", "clients"}}
	s.gauge("curve_clients", "Virtual clients of the step, as planned.", func(v *step) float64 { return float64(v.Clients) })
	s.gauge("curve_active_clients", "Virtual clients that were running, mean over the hold.", func(v *step) float64 { return v.ActiveClients })
	s.gauge("curve_arrivals_per_second", "Open model: arrivals, as planned.", func(v *step) float64 { return unlessZero(v.Rate) })
	s.gauge("curve_hold_seconds", "How long the step was held.", func(v *step) float64 { return v.Hold })
	s.gauge("curve_throughput_bytes_per_second", "Throughput, mean over the hold.", func(v *step) float64 { return v.Throughput })
	s.gauge("curve_throughput_low_bytes_per_second", "Lower end of the 95% interval of the throughput.", func(v *step) float64 { return known(v.ThroughputLow) })
	s.gauge("curve_throughput_high_bytes_per_second", "Upper end of the 95% interval of the throughput.", func(v *step) float64 { return known(v.ThroughputHigh) })
	s.gauge("curve_operations_per_second", "Rate of operations ended well, mean over the hold.", func(v *step) float64 { return v.Operations })
	s.gauge("curve_per_client_bytes_per_second", "Throughput of one client, mean over the hold.", func(v *step) float64 { return v.PerClient })
	s.gauge("curve_errors", "Operations failed in the hold.", func(v *step) float64 { return float64(v.Errors) })
	s.gauge("curve_error_ratio", "Operations failed, as a share of those that ended in the hold.", func(v *step) float64 { return v.ErrorRatio })
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
		s.gauge("curve_latency_"+q.name+"_seconds", q.what+" of the latencies of the hold.", of(func(v *step) *analysis.Quantiles { return v.Latency }, q.of))
	}
	s.gauge("curve_server_cpu_ratio", "Share of the cores of the server's hosts.", func(v *step) float64 { return known(v.ServerCPU) })
	s.gauge("curve_client_cpu_ratio", "Share of the cores of the clients' hosts.", func(v *step) float64 { return known(v.ClientCPU) })
	jobRows(&s)
	s.gauge("curve_steady", "1 if the step did not drift while it was held.", of(func(v *step) *bool { return v.Steady }, func(b *bool) float64 { return flag(*b) }))
	return s
}

// jobRows has what a point of the curve tells of jobs.
func jobRows(s *shape[analysis.Step]) {
	type step = analysis.Step
	jobs := func(value func(*analysis.JobCounts) float64) func(*step) float64 {
		return of(func(v *step) *analysis.JobCounts { return v.Jobs }, value)
	}
	s.gauge("curve_jobs_running", "Jobs that were running, mean over the hold; this and what follows only of runs with jobs.", func(v *step) float64 { return unlessZero(v.RunningJobs) })
	s.gauge("curve_jobs_done", "Jobs that came to their end in the hold.", jobs(func(j *analysis.JobCounts) float64 { return float64(j.Done) }))
	s.gauge("curve_jobs_failed", "Jobs that failed in the hold.", jobs(func(j *analysis.JobCounts) float64 { return float64(j.Failed) }))
	s.gauge("curve_jobs_crashed", "Jobs that crashed in the hold.", jobs(func(j *analysis.JobCounts) float64 { return float64(j.Crashed) }))
	s.gauge("curve_job_mean_seconds", "Mean wall clock time of jobs that came to their end in the hold.", of(func(v *step) *analysis.Quantiles { return v.JobSeconds }, func(q *analysis.Quantiles) float64 { return q.Mean }))
	s.gauge("curve_job_p90_seconds", "90% quantile of these times.", of(func(v *step) *analysis.Quantiles { return v.JobSeconds }, func(q *analysis.Quantiles) float64 { return q.P90 }))
	s.gauge("curve_cpu_efficiency_ratio", "Time for which jobs computed, as a share of the time for which they ran.", func(v *step) float64 { return known(v.CPUEfficiency) })
	s.gauge("curve_cpu_efficiency_low_ratio", "Lower end of its 95% interval.", func(v *step) float64 { return known(v.CPUEfficiencyLow) })
	s.gauge("curve_cpu_efficiency_high_ratio", "Upper end of its 95% interval.", func(v *step) float64 { return known(v.CPUEfficiencyHigh) })
	s.gauge("curve_cluster_throughput_jobs", "Running jobs times their CPU efficiency.", func(v *step) float64 { return known(v.ClusterThroughput) })
	s.gauge("curve_cluster_throughput_low_jobs", "Lower end of its 95% interval.", func(v *step) float64 { return known(v.ClusterThroughputLow) })
	s.gauge("curve_cluster_throughput_high_jobs", "Upper end of its 95% interval.", func(v *step) float64 { return known(v.ClusterThroughputHigh) })
	s.gauge("curve_events_per_second", "Events that jobs were through with, mean over the hold.", func(v *step) float64 { return unlessZero(v.EventRate) })
}

// foundRows has the answers of the whole run.
func foundRows() shape[analysis.Findings] {
	type f = analysis.Findings
	s := shape[f]{group: "findings"}
	s.each("validity", "1 for what the run is: valid, suspect or invalid.", Gauge, false, "status", []string{analysis.Valid, analysis.Suspect, analysis.Invalid},
		func(v *f, status string) float64 { return flag(v.Validity.Status == status) })
	knee := func(name, help string, value func(*analysis.Knee) float64) {
		s.gauge("knee_"+name, help, of(func(v *f) *analysis.Knee { return v.Knee }, value))
	}
	knee("clients", "The load from which on more clients bring clearly less each.", func(k *analysis.Knee) float64 { return float64(k.Clients) })
	knee("clients_low", "Lower end of its 95% interval.", func(k *analysis.Knee) float64 { return known(k.ClientsLow) })
	knee("clients_high", "Upper end of its 95% interval.", func(k *analysis.Knee) float64 { return known(k.ClientsHigh) })
	knee("throughput_bytes_per_second", "Throughput at the knee.", func(k *analysis.Knee) float64 { return k.Throughput })
	optimum := func(name, help string, value func(*analysis.Optimum) float64) {
		s.gauge("optimum_"+name, help, of(func(v *f) *analysis.Optimum { return v.Optimum }, value))
	}
	optimum("clients", "The least tested number of clients that gives as much as any.", func(o *analysis.Optimum) float64 { return float64(o.Clients) })
	optimum("clients_low", "Lightest tested load that cannot be told from the best.", func(o *analysis.Optimum) float64 { return float64(o.ClientsLow) })
	optimum("clients_high", "Heaviest tested load that cannot be told from the best.", func(o *analysis.Optimum) float64 { return float64(o.ClientsHigh) })
	optimum("throughput_bytes_per_second", "Throughput at the optimum.", func(o *analysis.Optimum) float64 { return o.Throughput })
	optimum("throughput_low_bytes_per_second", "Lower end of its 95% interval.", func(o *analysis.Optimum) float64 { return known(o.Low) })
	optimum("throughput_high_bytes_per_second", "Upper end of its 95% interval.", func(o *analysis.Optimum) float64 { return known(o.High) })
	optimum("operations_per_second", "Rate of operations at the optimum.", func(o *analysis.Optimum) float64 { return o.Operations })
	optimum("inside_tested_range", "1 if a maximum was found, 0 if the heaviest load gave most.", func(o *analysis.Optimum) float64 { return flag(o.Inside) })
	return s
}

func limitRows() shape[analysis.Bottleneck] {
	s := shape[analysis.Bottleneck]{group: "bottleneck", labels: []string{"resource", "host", "side"}}
	s.gauge("bottleneck_from_clients", "The lightest load at which the resource is used up.", func(b *analysis.Bottleneck) float64 { return float64(b.From) })
	return s
}

func judgmentRows() shape[analysis.Judgment] {
	s := shape[analysis.Judgment]{group: "threshold", labels: []string{"threshold"}}
	s.gauge("threshold_met", "1 for a threshold of the scenario that was met.", func(j *analysis.Judgment) float64 { return flag(j.Met) })
	return s
}
