package export

import (
	"encoding/json"
	"strings"
)

// Grafana returns a dashboard for runs in a Prometheus server as JSON
// (https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/). Data source, run
// and window of rates are variables.
func Grafana() string {
	board := object{
		"title": "weir", "uid": "weir-run", "tags": []string{"weir", "storage"}, "schemaVersion": 39, "version": 1, "editable": true,
		"description": "What a run of weir measured: load, throughput, latency, errors, servers, hosts, and the curve.",
		"time":        object{"from": "now-1h", "to": "now"}, "refresh": "10s", "timezone": "browser", "graphTooltip": 1,
		"templating": object{"list": variables()}, "panels": placed(panels()), "links": []any{}, "annotations": object{"list": []any{steps()}},
	}
	text, err := json.MarshalIndent(board, "", "  ")
	if err != nil {
		panic(err) // of nothing but texts and numbers
	}
	return string(text) + "\n"
}

type object = map[string]any

// source is the data source that the variable names.
func source() object { return object{"type": "prometheus", "uid": "${datasource}"} }

func variables() []any {
	window := []string{"10s", "30s", "1m", "5m"}
	var options []any
	for _, w := range window {
		options = append(options, object{"text": w, "value": w, "selected": w == "30s"})
	}
	return []any{
		object{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "refresh": 1, "hide": 0},
		object{
			"name": "run", "label": "Run", "type": "query", "datasource": source(), "refresh": 2, "sort": 2, "hide": 0, // the newest first
			"definition": "label_values(weir_run_info, run)", "query": object{"query": "label_values(weir_run_info, run)", "refId": "runs"},
		},
		object{
			"name": "window", "label": "Rates over", "type": "custom", "query": strings.Join(window, ","), "options": options, "hide": 0,
			"current":     object{"text": "30s", "value": "30s"},
			"description": "At least four times as long as Prometheus waits between two fetches.",
		},
	}
}

// steps marks the begin of steps.
func steps() object {
	return object{
		"name": "Steps", "datasource": source(), "enable": true, "iconColor": "rgba(128, 128, 128, 0.6)", "step": "1s",
		"expr": `changes(weir_step{run="$run"}[$window]) > 0`, "titleFormat": "step", "textFormat": "{{scenario}}",
	}
}

// A panel is one chart of the dashboard.
type panel struct {
	title, kind, unit string
	what              string // description
	width, height     int    // of 24 columns; rows of 30 px
	queries           []query
	options           object
	transform         []any
	instant           bool
}

// A query is an expression and the name of its series.
type query struct{ expr, legend string }

// heading is a row with a title.
func heading(title string) panel { return panel{title: title, kind: "row", width: 24, height: 1} }

// placed lays out panels from left to right and down.
func placed(all []panel) []any {
	var out []any
	x, y, tall := 0, 0, 0
	for i, p := range all {
		if x+p.width > 24 {
			x, y, tall = 0, y+tall, 0
		}
		made := p.json(i + 1)
		made["gridPos"] = object{"x": x, "y": y, "w": p.width, "h": p.height}
		out = append(out, made)
		x, tall = x+p.width, max(tall, p.height)
	}
	return out
}

// json is the panel without its place.
func (p panel) json(id int) object {
	o := object{"id": id, "title": p.title, "type": p.kind}
	if p.kind == "row" {
		o["collapsed"], o["panels"] = false, []any{}
		return o
	}
	custom := object{}
	if p.kind == "timeseries" {
		custom = object{"lineWidth": 1, "fillOpacity": 10, "showPoints": "never", "spanNulls": false}
	}
	o["datasource"], o["description"], o["options"] = source(), p.what, p.options
	o["fieldConfig"] = object{"defaults": object{"unit": p.unit, "custom": custom}, "overrides": []any{}}
	if p.options == nil {
		o["options"] = object{"legend": object{"displayMode": "list", "placement": "bottom"}, "tooltip": object{"mode": "multi", "sort": "desc"}}
	}
	if p.transform != nil {
		o["transformations"] = p.transform
	}
	var targets []any
	for i, q := range p.queries {
		t := object{"refId": string(rune('A' + i)), "datasource": source(), "expr": q.expr, "legendFormat": q.legend, "editorMode": "code"}
		if p.instant {
			t["instant"], t["range"] = true, false
		} else {
			t["range"] = true
		}
		switch p.kind {
		case "table", "barchart":
			t["format"] = "table"
		case "heatmap":
			t["format"] = "heatmap"
		}
		targets = append(targets, t)
	}
	o["targets"] = targets
	return o
}

// panels are the charts of the dashboard. RUN represents the selector of the run.
func panels() []panel {
	all := []panel{heading("Findings")}
	all = append(all, answers()...)
	all = append(all, heading("Load and performance"))
	all = append(all, loads()...)
	all = append(all, heading("Jobs and links"))
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

// last returns the last value of a metric in the displayed time: findings have one value at the end of a step or run.
func last(metric string) string { return "last_over_time(" + metric + "{RUN}[$__range])" }

func stat(title, unit, what, expr, legend string) panel {
	mode := "auto"
	if legend != "" {
		mode = "name"
	}
	return panel{title: title, kind: "stat", unit: unit, what: what, width: 6, height: 4, instant: true, queries: []query{{expr, legend}},
		options: object{
			"reduceOptions": object{"calcs": []string{"lastNotNull"}, "fields": "", "values": false}, "textMode": mode, "colorMode": "none",
			"graphMode": "none",
		}}
}

func answers() []panel {
	byStep := []any{
		object{"id": "merge", "options": object{}},
		object{"id": "convertFieldType", "options": object{"conversions": []any{object{"targetField": "clients", "destinationType": "number"}}}},
		object{"id": "sortBy", "options": object{"sort": []any{object{"field": "clients"}}}},
	}
	names := object{"Value #A": "throughput", "Value #B": "at least (95%)", "Value #C": "at most (95%)", "Value #D": "operations/s",
		"Value #E": "p99 latency (s)", "Value #F": "error ratio"}
	hidden := object{"Time": true, "run": true, "scenario": true, "__name__": true, "job": true, "instance": true}
	return []panel{
		stat("Validity", "none", "Result of the validity checks at the end of the run.", last("weir_validity")+" == 1", "{{status}}"),
		stat("Peak throughput", "Bps", "Throughput at the optimum.", last("weir_optimum_throughput_bytes_per_second"), ""),
		stat("Optimal clients", "none", "Number of clients with the maximum throughput.", last("weir_optimum_clients"), ""),
		stat("Run", "none", "Scenario and target.", `last_over_time(weir_run_info{RUN}[$__range])`, "{{scenario}} on {{target}}"),
		{
			title: "Throughput by clients", kind: "barchart", unit: "Bps", width: 10, height: 9, instant: true,
			what:    "Mean throughput of each step.",
			queries: []query{{last("weir_curve_throughput_bytes_per_second"), ""}},
			options: object{"xField": "clients", "orientation": "vertical", "legend": object{"showLegend": false}},
			transform: append(byStep[1:], object{"id": "organize", "options": object{
				"excludeByName": object{"Time": true, "run": true, "scenario": true, "step": true, "job": true, "instance": true},
				"renameByName":  object{"Value": "throughput"},
			}}),
		},
		{
			title: "The curve", kind: "table", unit: "short", width: 14, height: 9, instant: true,
			what: "Each step with the 95% interval of its throughput in bytes per second.",
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

// loads shows the clients.
func loads() []panel {
	return []panel{
		series8("Throughput", "Bps", "Payload that moved.", query{`sum(rate(weir_moved_bytes_total{RUN}[$window]))`, "throughput"}),
		series8("Clients", "short", "Running virtual clients.", query{`weir_clients{RUN}`, "running"},
			query{`weir_planned_clients{RUN}`, "planned"}),
		series8("Operations", "ops", "Operations that succeeded, by kind.",
			query{`sum by (kind) (rate(weir_operations_done_total{RUN}[$window]))`, "{{kind}}"}),
		series8("Errors", "ops", "Operations that failed, by class.", query{
			`sum by (class) (rate(weir_operations_failed_total{RUN}[$window])) or 0 * sum(rate(weir_operations_done_total{RUN}[$window]))`,
			"{{class}}",
		}),
		series8("Latency", "s", "Of the operations that succeeded in each second, exact to 1%.",
			query{`weir_latency_p50_seconds{RUN}`, "median {{kind}}"}, query{`weir_latency_p90_seconds{RUN}`, "90% {{kind}}"},
			query{`weir_latency_p99_seconds{RUN}`, "99% {{kind}}"}, query{`weir_latency_max_seconds{RUN}`, "longest {{kind}}"}),
		{
			title: "Latencies", kind: "heatmap", unit: "s", what: "Distribution of the latencies.", width: 12, height: 8,
			queries: []query{{`sum by (le) (increase(weir_latency_seconds_bucket{RUN}[$window]))`, "{{le}}"}},
			options: object{"calculate": false, "yAxis": object{"unit": "s"}, "color": object{"mode": "scheme", "scheme": "Oranges", "steps": 64,
				"exponent": 0.5}, "legend": object{"show": true}},
		},
		series8("Throughput by data server", "Bps", "The target itself has no name.",
			query{`sum by (server) (rate(weir_moved_bytes_total{RUN}[$window]))`, "{{server}}"}),
		series8("Delay of the load generator", "s", "Delay of the start of tasks: 99% quantile. A long delay invalidates a run.",
			query{`histogram_quantile(0.99, sum by (le) (rate(weir_late_seconds_bucket{RUN}[$window]))) or 0 * sum(weir_clients{RUN})`, "99%"}),
	}
}

// jobsAndLinks shows jobs and their links; empty in other runs. A counter of what never happened does not exist and is
// shown as 0.
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
		series8("Jobs", "short", "Running jobs, and how many of them computed: the cluster throughput.",
			query{`weir_jobs_running{RUN}`, "running"}, query{computing, "computing"}),
		series8("Ended jobs", "ops", "Done: completed. Crashed: a request timed out. Failed: another failure.", ended("done"), ended("failed"),
			ended("crashed")),
		series8("CPU efficiency of jobs", "percentunit", "Compute time of jobs divided by their wall clock time.", query{
			`(` + computing + `) / sum(avg_over_time(weir_jobs_running{RUN}[$window]))`, "efficiency",
		}),
		series8("Events", "ops", "Events that jobs completed.", query{`sum(rate(weir_events_done_total{RUN}[$window]))`, "events"}),
		series8("Wall clock time of jobs", "s", "Of completed jobs; quantiles are interpolated within a bucket.",
			query{`sum(rate(weir_job_seconds_sum{RUN}[$window])) / sum(rate(weir_job_seconds_count{RUN}[$window]))`, "mean"},
			query{took("0.5"), "median"}, query{took("0.9"), "90%"}),
		series8("Links busy", "percentunit", "Share of time in which an emulated link was sending.",
			query{`weir_link_busy_ratio{RUN}`, "{{host}} {{way}}"}),
	}
}

// machines shows the hosts.
func machines() []panel {
	return []panel{
		series8("CPU", "percentunit", "Busy share of all cores of a host.",
			query{`1 - weir_host_cpu_ratio{RUN, mode="idle"}`, "{{host}} ({{role}})"},
			query{`weir_host_busiest_core_ratio{RUN}`, "{{host}} busiest core"}),
		series8("CPU of processes", "short", "Cores used by the service and the load generator.",
			query{`sum by (host, process, role) (rate(weir_process_cpu_seconds_total{RUN}[$window]))`, "{{process}} on {{host}}"}),
		series8("Network", "Bps", "All interfaces, headers included.",
			query{`sum by (host, interface) (rate(weir_net_received_bytes_total{RUN}[$window]))`, "{{host}} {{interface}} received"},
			query{`sum by (host, interface) (rate(weir_net_sent_bytes_total{RUN}[$window]))`, "{{host}} {{interface}} sent"}),
		series8("Disks", "Bps", "Read and written.", query{`sum by (host, disk) (rate(weir_disk_read_bytes_total{RUN}[$window]))`,
			"{{host}} {{disk}} read"},
			query{`sum by (host, disk) (rate(weir_disk_written_bytes_total{RUN}[$window]))`, "{{host}} {{disk}} written"}),
		series8("Disks busy", "percentunit", "Share of time with a request in service.", query{`weir_disk_busy_ratio{RUN}`, "{{host}} {{disk}}"}),
		series8("Available memory", "bytes", "Memory available to programs.", query{`weir_host_memory_available_bytes{RUN}`, "{{host}}"}),
		series8("TCP", "short", "Open connections, and retransmitted segments per second.",
			query{`weir_host_tcp_established{RUN}`, "{{host}} connections"},
			query{`rate(weir_host_tcp_retransmitted_segments_total{RUN}[$window])`, "{{host}} retransmitted"}),
	}
}
