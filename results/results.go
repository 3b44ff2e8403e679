// Package results keeps a run directory: written once while the run goes on,
// append-only, read by everything after it, also when the run was cut off.
package results

import (
	"weir/measure"
	"weir/monitor"
	"weir/scenario"
)

// Names of the files in a run directory.
const (
	PlanFile      = "plan.json"
	AboutFile     = "about.json"
	IntervalsFile = "intervals.jsonl"
	HostsFile     = "hosts.jsonl"
	EventsFile    = "events.jsonl"
	FindingsFile  = "findings.json"
)

var (
	_ measure.Sink
	_ monitor.Sample
	_ scenario.Plan
)
