package web

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/require"
)

// The numbers of a chart stand side by side, in the units that it shows, and a
// name that a spreadsheet would take for a formula is one no more.
func TestTable(t *testing.T) {
	out := node(t, `import { csv, tableOf } from "./src/table";
		const x = {label: "virtual clients", unit: "clients", factor: 1, min: 0, max: 8, ticks: []}, y = {label: "Gbit/s", unit: "Gbit/s", factor: 8e-9, min: 0, max: 1e9, ticks: []};
		const ms = {label: "time (ms)", unit: "ms", factor: 1000, min: 0, max: 1, ticks: []}, many = {label: "operations", unit: "operations", factor: 1, min: 0, max: 9, ticks: []};
		const all = [
			{id: "a", title: "", desc: "", x, y, lines: [
				{name: "=cmd|'/c calc'!A1", color: 0, dots: true, x: [1, 2], y: [125e6, null], low: [1e8, null], high: [15e7, null]},
				{name: 'a "b", c', color: 1, x: [2, 4], y: [25e7, 5e8]}]},
			{id: "b", title: "", desc: "", x: ms, y: many, columns: [{from: 0.001, to: 0.002, y: 7}]},
			{id: "c", title: "", desc: "", x: ms, y: {...ms, label: "latency", duration: true}, heat: {x: [0, 1], y: [0.5, 1, 2], rows: [[0, 3]], what: "operations"}},
			{id: "d", title: "", desc: "", x, y}];
		console.log(JSON.stringify(all.map(f => csv(tableOf(f)))));`, nil)
	var got []string
	require.NoError(t, json.Unmarshal(out, &got))
	want := []string{
		"virtual clients,'=cmd|'/c calc'!A1 (Gbit/s),'=cmd|'/c calc'!A1 95% low,'=cmd|'/c calc'!A1 95% high,\"a \"\"b\"\", " +
			"c (Gbit/s)\"\n1,1,0.8,1.2,\n2,,,,2\n4,,,,4\n",
		"time (ms) from,to,operations\n1,2,7\n",
		"time (ms) from,to,latency (s) from,to,operations\n0,1000,1,2,3\n",
		"virtual clients\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A zoomed axis has ticks that can be told apart, and labels that do not touch.
func TestTicks(t *testing.T) {
	out := node(t, `import { labels, spaced, ticks } from "./src/ticks";
		const minutes = {label: "", unit: "min", factor: 1/60, min: 0, max: 3600, ticks: [0, 1200, 2400, 3600]};
		const log = {label: "", unit: "", factor: 1, duration: true, min: 1e-3, max: 10, base: 10, ticks: [1e-3, 1e-2, 1e-1, 1, 10]};
		const say = (a, min, max) => labels(a, ticks(a, min, max, 5));
		console.log(JSON.stringify([say(minutes, 0, 3600), say(minutes, 600, 900), say(minutes, 3000, 3000.5), say(log, 1e-3, 10), say(log, 0.02, 0.5), say(log, 1.2301, 1.2304),
			spaced(["10", "100", "1000", "10000"], [0, 12, 24, 60], s => 6 * s.length, 4)]));`, nil)
	var got [][]string
	require.NoError(t, json.Unmarshal(out, &got))
	want := [][]string{
		{"0", "20", "40", "60"},
		{"10", "11", "12", "13", "14", "15"},
		{"50", "50.002", "50.004", "50.006", "50.008"},
		{"1 ms", "10 ms", "100 ms", "1 s", "10 s"},
		{"20 ms", "50 ms", "100 ms", "200 ms", "500 ms"},
		{"1.2301 s", "1.2302 s", "1.2303 s", "1.2304 s"},
		{"10", "", "1000", "10000"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
