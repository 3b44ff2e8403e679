package export

import "strings"

// panels are the pictures of the dashboard. RUN stands for the selector of the
// run, LAST(x) for what x said last in the time that is shown.
func panels() []panel {
	all := []panel{heading("What it showed")}
	all = append(all, answers()...)
	all = append(all, heading("Load and what came of it"))
	all = append(all, loads()...)
	all = append(all, heading("Jobs and links, where there are any"))
	all = append(all, jobsAndLinks()...)
	all = append(all, heading("Hosts"))
	all = append(all, machines()...)
	for i := range all {
		for k := range all[i].queries {
			q := &all[i].queries[k]
			q.expr = strings.ReplaceAll(q.expr, "RUN", `run="$run"`)
		}
	}
	return all
}

// last is what a metric said last in the time that is shown: findings are told
// once, at the end of a step or of the run.
func last(metric string) string { return "last_over_time(" + metric + "{RUN}[$__range])" }

func stat(title, unit, what, expr, legend string) panel {
	mode := "auto"
	if legend != "" {
		mode = "name"
	}
	return panel{title: title, kind: "stat", unit: unit, what: what, width: 6, height: 4, instant: true, queries: []query{{expr, legend}}, options: object{
		"reduceOptions": object{"calcs": []string{"lastNotNull"}, "fields": "", "values": false}, "textMode": mode, "colorMode": "none", "graphMode": "none",
	}}
}

// answers are the findings.
func answers() []panel {
	byStep := []any{
		object{"id": "merge", "options": object{}},
		object{"id": "convertFieldType", "options": object{"conversions": []any{object{"targetField": "clients", "destinationType": "number"}}}},
		object{"id": "sortBy", "options": object{"sort": []any{object{"field": "clients"}}}},
	}
	names := object{"Value #A": "throughput", "Value #B": "at least (95%)", "Value #C": "at most (95%)", "Value #D": "operations/s", "Value #E": "p99 latency (s)", "Value #F": "error ratio"}
	hidden := object{"Time": true, "run": true, "scenario": true, "__name__": true, "job": true, "instance": true}
	return []panel{
		stat("Validity", "none", "Whether the numbers can be believed. It is known at the end of the run.", last("weir_validity")+" == 1", "{{status}}"),
		stat("Most throughput", "Bps", "Throughput at the optimum.", last("weir_optimum_throughput_bytes_per_second"), ""),
		stat("With so many clients", "none", "The number of clients that gives most.", last("weir_optimum_clients"), ""),
		stat("Run", "none", "What was run.", `last_over_time(weir_run_info{RUN}[$__range])`, "{{scenario}} on {{target}}"),
		{
			title: "Throughput by clients", kind: "barchart", unit: "Bps", width: 10, height: 9, instant: true,
			what:    "The curve: mean throughput while each step was held.",
			queries: []query{{last("weir_curve_throughput_bytes_per_second"), ""}},
			options: object{"xField": "clients", "orientation": "vertical", "legend": object{"showLegend": false}},
			transform: append(byStep[1:], object{"id": "organize", "options": object{
				"excludeByName": object{"Time": true, "run": true, "scenario": true, "step": true, "job": true, "instance": true}, "renameByName": object{"Value": "throughput"},
			}}),
		},
		{
			title: "The curve", kind: "table", unit: "short", width: 14, height: 9, instant: true,
			what: "Each step, while it was held, with the 95% interval of its throughput in bytes per second.",
			queries: []query{
				{last("weir_curve_throughput_bytes_per_second"), ""}, {last("weir_curve_throughput_low_bytes_per_second"), ""},
				{last("weir_curve_throughput_high_bytes_per_second"), ""}, {last("weir_curve_operations_per_second"), ""},
				{last("weir_curve_latency_p99_seconds"), ""}, {last("weir_curve_error_ratio"), ""},
			},
			options:   object{"showHeader": true},
			transform: append(byStep[:3:3], object{"id": "organize", "options": object{"excludeByName": hidden, "renameByName": names}}),
		},
	}
}

func series8(title, unit, what string, queries ...query) panel {
	return panel{title: title, kind: "timeseries", unit: unit, what: what, width: 12, height: 8, queries: queries}
}

// loads are what the clients did and saw.
func loads() []panel {
	return []panel{
		series8("Throughput", "Bps", "Payload that moved.", query{`sum(rate(weir_moved_bytes_total{RUN}[$window]))`, "throughput"}),
		series8("Clients", "short", "Virtual clients that were running.", query{`weir_clients{RUN}`, "running"}, query{`weir_planned_clients{RUN}`, "planned"}),
		series8("Operations", "ops", "Operations that ended well, by kind.", query{`sum by (kind) (rate(weir_operations_done_total{RUN}[$window]))`, "{{kind}}"}),
		series8("Errors", "ops", "Operations that failed, by class.", query{
			`sum by (class) (rate(weir_operations_failed_total{RUN}[$window])) or 0 * sum(rate(weir_operations_done_total{RUN}[$window]))`, "{{class}}",
		}),
		series8("Latency", "s", "Of the operations that ended well in each second, exact within 1%.",
			query{`weir_latency_p50_seconds{RUN}`, "median {{kind}}"}, query{`weir_latency_p90_seconds{RUN}`, "90% {{kind}}"},
			query{`weir_latency_p99_seconds{RUN}`, "99% {{kind}}"}, query{`weir_latency_max_seconds{RUN}`, "longest {{kind}}"}),
		{
			title: "Latencies", kind: "heatmap", unit: "s", what: "How many operations took how long.", width: 12, height: 8,
			queries: []query{{`sum by (le) (increase(weir_latency_seconds_bucket{RUN}[$window]))`, "{{le}}"}},
			options: object{"calculate": false, "yAxis": object{"unit": "s"}, "color": object{"mode": "scheme", "scheme": "Oranges", "steps": 64, "exponent": 0.5}, "legend": object{"show": true}},
		},
		series8("Throughput by data server", "Bps", "A target without data servers of its own has no name.",
			query{`sum by (server) (rate(weir_moved_bytes_total{RUN}[$window]))`, "{{server}}"}),
		series8("The load generator's own delay", "s", "How late tasks began: 99% quantile. Much of it makes a run invalid.",
			query{`histogram_quantile(0.99, sum by (le) (rate(weir_late_seconds_bucket{RUN}[$window]))) or 0 * sum(weir_clients{RUN})`, "99%"}),
	}
}

// jobsAndLinks are what jobs did, and how full the links to them were; empty in
// other runs. A counter of what never happened is not there: it is shown as 0.
func jobsAndLinks() []panel {
	each := func(name string) string {
		return `(sum(rate(weir_` + name + `_total{RUN}[$window])) or 0 * sum(weir_jobs_running{RUN}))`
	}
	ended := func(name string) query { return query{each("jobs_" + name), name} }
	computing := each("job_compute_seconds") + " + " + each("client_program_cpu_seconds")
	took := func(q string) string {
		return `histogram_quantile(` + q + `, sum by (le) (rate(weir_job_seconds_bucket{RUN}[$window])))`
	}
	return []panel{
		series8("Jobs", "short", "Jobs that were running, and how many of them computed: the cluster throughput.", query{`weir_jobs_running{RUN}`, "running"},
			query{computing, "computing"}),
		series8("Jobs that ended", "ops", "Done: they came to their end. Crashed: a request was not answered in time. Failed: another failure.", ended("done"), ended("failed"), ended("crashed")),
		series8("CPU efficiency of jobs", "percentunit", "Time for which jobs computed, as a share of the time for which they ran.", query{
			`(` + computing + `) / sum(avg_over_time(weir_jobs_running{RUN}[$window]))`, "efficiency",
		}),
		series8("Events", "ops", "Events that jobs were through with.", query{`sum(rate(weir_events_done_total{RUN}[$window]))`, "events"}),
		series8("Wall clock time of jobs", "s", "Of the jobs that came to their end; the quantiles within a bucket.",
			query{`sum(rate(weir_job_seconds_sum{RUN}[$window])) / sum(rate(weir_job_seconds_count{RUN}[$window]))`, "mean"}, query{took("0.5"), "median"}, query{took("0.9"), "90%"}),
		series8("Links busy", "percentunit", "Share of time in which the wire of an emulated link was sending.", query{`weir_link_busy_ratio{RUN}`, "{{host}} {{way}}"}),
	}
}

// machines are what the hosts went through.
func machines() []panel {
	return []panel{
		series8("CPU", "percentunit", "Share of all cores of a host that worked.", query{`1 - weir_host_cpu_ratio{RUN, mode="idle"}`, "{{host}} ({{role}})"},
			query{`weir_host_busiest_core_ratio{RUN}`, "{{host}} busiest core"}),
		series8("CPU of processes", "short", "Cores that the service and the load generator kept busy.",
			query{`sum by (host, process, role) (rate(weir_process_cpu_seconds_total{RUN}[$window]))`, "{{process}} on {{host}}"}),
		series8("Network", "Bps", "All interfaces, headers included.",
			query{`sum by (host, interface) (rate(weir_net_received_bytes_total{RUN}[$window]))`, "{{host}} {{interface}} received"},
			query{`sum by (host, interface) (rate(weir_net_sent_bytes_total{RUN}[$window]))`, "{{host}} {{interface}} sent"}),
		series8("Disks", "Bps", "Read and written.", query{`sum by (host, disk) (rate(weir_disk_read_bytes_total{RUN}[$window]))`, "{{host}} {{disk}} read"},
			query{`sum by (host, disk) (rate(weir_disk_written_bytes_total{RUN}[$window]))`, "{{host}} {{disk}} written"}),
		series8("Disks busy", "percentunit", "Share of time with a request in service.", query{`weir_disk_busy_ratio{RUN}`, "{{host}} {{disk}}"}),
		series8("Memory left", "bytes", "What programs could still get.", query{`weir_host_memory_available_bytes{RUN}`, "{{host}}"}),
		series8("TCP", "short", "Connections now, and segments sent again each second.", query{`weir_host_tcp_established{RUN}`, "{{host}} connections"},
			query{`rate(weir_host_tcp_retransmitted_segments_total{RUN}[$window])`, "{{host}} sent again"}),
	}
}
