package export

import (
	"encoding/json"
	"strings"
)

// Grafana returns a dashboard for Grafana that shows runs in a Prometheus
// server, as JSON (https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/).
// The data source, the run and the window of rates are variables of it.
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

// steps marks where a step begins.
func steps() object {
	return object{
		"name": "Steps", "datasource": source(), "enable": true, "iconColor": "rgba(128, 128, 128, 0.6)", "step": "1s",
		"expr": `changes(weir_step{run="$run"}[$window]) > 0`, "titleFormat": "step", "textFormat": "{{scenario}}",
	}
}

// A panel is one picture of the dashboard.
type panel struct {
	title, kind, unit string
	what              string // for those who wonder
	width, height     int    // of 24 columns; rows of 30 px
	queries           []query
	options           object
	transform         []any
	instant           bool
}

// A query is an expression, and what its series are called.
type query struct{ expr, legend string }

// row is a line with a title over panels.
func heading(title string) panel { return panel{title: title, kind: "row", width: 24, height: 1} }

// placed gives panels their places, from left to right and down.
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
