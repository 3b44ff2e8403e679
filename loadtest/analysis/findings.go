package analysis

import (
	"time"

	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/limits"
	"weir/loadtest/analysis/links"
	"weir/loadtest/analysis/steps"
	given "weir/loadtest/analysis/table"
	"weir/loadtest/analysis/transfers"
	"weir/loadtest/analysis/validity"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
)

// FindingsVersion is the version of the format of findings.json.
const FindingsVersion = 5

// Findings are the results of a run. Their JSON is findings.json; the keys are part of the format.
// Quantities are in base units: seconds, bytes, counts.
type Findings struct {
	Version  int             `json:"version"`          // FindingsVersion
	Source   string          `json:"source,omitempty"` // FromTable; "": from a run directory
	Run      string          `json:"run"`
	Name     string          `json:"name"`
	Target   string          `json:"target"`
	Work     string          `json:"workload"` // the work of each client, in words
	Start    time.Time       `json:"start"`
	Model    scenario.Model  `json:"model"`                  // closed or open
	Measure  string          `json:"measure"`                // Throughput or Rate
	Sessions *float64        `json:"sessions_per_operation"` // that clients opened while load was held; nil: no operation ended
	Renewed  int64           `json:"renewed,omitempty"`      // number of times that clients read renewed credentials
	Ending   *measure.Ending `json:"ending"`                 // reason for the end; nil: it continues, or was killed
	// the result in one line of at most 100 letters if its numbers permit: value with interval,
	// load, limit
	Headline string            `json:"headline"`
	Verdict  string            `json:"verdict"`          // begins with Headline; one fact per line
	Facts    []fact.Fact       `json:"facts"`            // of Verdict
	Search   string            `json:"search,omitempty"` // last decision of a search, which ended it
	Validity validity.Validity `json:"validity"`
	Curve    []steps.Figures   `json:"curve"`
	// Correlation is the correlation of neighboring batch means within the steps, by which all
	// intervals are widened; 0: no more than by chance.
	Correlation float64       `json:"batch_correlation"`
	Phases      []steps.Phase `json:"phases"`
	Kinds       []steps.Part  `json:"kinds"`   // measurement time of all steps, by kind of operation
	Servers     []steps.Part  `json:"servers"` // the same, by data server
	Knee        *Knee         `json:"knee"`
	Optimum     *Optimum      `json:"optimum"`
	Warnings    []string      `json:"warnings"` // texts of WarningFacts

	WarningFacts []fact.Fact `json:"warning_facts"`

	Outages    []validity.Outage `json:"outages"`    // by time
	Thresholds []Judgment        `json:"thresholds"` // of the scenario, in its order

	Subintervals []steps.Subinterval `json:"subintervals"`
	Fits         *Fits               `json:"fits"`          // nil: too few steps
	Power        *Operating          `json:"maximum_power"` // highest throughput divided by latency
	Collapse     *Collapse           `json:"collapse"`      // nil: throughput did not collapse
	Hysteresis   []Hysteresis        `json:"hysteresis"`    // of loads held on the way up and down
	Boundaries   []Boundary          `json:"boundaries"`
	Bottleneck   []limits.Bottleneck `json:"bottleneck"` // in the order of saturation
	Balance      *limits.Balance     `json:"balance"`    // nil: fewer than two servers shared the load, or unknown

	// of a run whose clients have several workloads; Curve has the sums of all workloads
	Populations []steps.PopulationCurve    `json:"populations,omitempty"`
	Workers     []validity.WorkerFigure    `json:"workers,omitempty"`          // of a run on many machines
	Columns     []given.Column             `json:"columns,omitempty"`          // of an analyzed table
	Transfers   *transfers.TransferFigures `json:"transfers,omitempty"`        // of a record of transfers
	Parts       *PartFits                  `json:"subinterval_fits,omitempty"` // if workers are jobs of a batch system
	Challenge   *links.Challenge           `json:"challenge,omitempty"`        // of a data challenge
}

// curve returns the curve with only the figures that the document has.
func (f *Findings) curve() *steps.Curve {
	return steps.CurveOf(f.Curve, f.Measure, f.Model, f.Source == FromTable)
}

// Open reports whether the load was planned as arrivals per second.
func (f *Findings) Open() bool { return f.Model == scenario.OpenModel }

// OfJobs reports whether the run's clients ran jobs.
func (f *Findings) OfJobs() bool { return f.curve().OfJobs() }

// Stages is the name of the steps of a data challenge, which have numbers instead of loads.
const Stages = "stages"

// Load returns the name of the load by which steps differ: clients, jobs, or arrivals/s; Stages for a
// data challenge.
func (f *Findings) Load() string {
	if f.Challenge != nil {
		return Stages
	}
	return f.curve().Load()
}

// Things returns the unit of the counts of a run that moves no payload: operations/s, or jobs/s if
// each operation is a program of the user.
func (f *Findings) Things() string { return f.curve().Things() }

// LimitText returns one sentence on the limit of the curve, "" if the limit was not judged.
func (f *Findings) LimitText() string { return limits.LimitText(f.curve(), f.Bottleneck) }

// Counting returns a copy of f whose curve has only the steps that count, or f itself if all steps
// count. The curve is empty if too few steps are left for a result.
func (f *Findings) Counting() *Findings {
	all := f.curve()
	left := all.Counting()
	if left == all {
		return f
	}
	g := *f
	g.Curve = steps.Document(left.Steps)
	return &g
}
