// Package results keeps a run directory: written once while the run goes on,
// append-only, read by everything after it, also when the run was cut off.
//
// The format is public and versioned; docs/results.md is its specification.
package results

// Names of the files in a run directory.
const (
	PlanFile      = "plan.json"       // what was asked for
	AboutFile     = "about.json"      // by whom, when and where it was done
	IntervalsFile = "intervals.jsonl" // what the clients saw, second by second
	HostsFile     = "hosts.jsonl"     // what the hosts went through, second by second
	EventsFile    = "events.jsonl"    // what happened once
	ManifestFile  = "manifest.jsonl"  // what the run created on the target
	TransfersFile = "transfers.jsonl" // what was copied between sites, attempt by attempt

	FindingsFile     = "findings.json" // made from the files above, like all that follow
	CurveFile        = "curve.csv"
	IntervalsCSVFile = "intervals.csv"
	HostsCSVFile     = "hosts.csv"
	BackendsCSVFile  = "backends.csv" // of runs in which several servers shared the load
	ReportFile       = "report.html"
)

// FormatVersion is the version of the run directory's format that this
// program writes. It reads this one and all before it.
const FormatVersion = 1
