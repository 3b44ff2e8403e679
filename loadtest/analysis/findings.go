package analysis

import (
	"time"

	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/limits"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/analysis/transfers"
	"weir/loadtest/analysis/validity"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
)

// FindingsVersion is the version of the format of findings.json.
const FindingsVersion = 5

// Findings is what a run showed. Its JSON is findings.json; the keys are part of the format. Quantities are in base
// units: seconds, bytes, counts.
type Findings struct {
	Version  int             `json:"version"`          // FindingsVersion
	Source   string          `json:"source,omitempty"` // FromTable; "" is a run directory
	Run      string          `json:"run"`
	Name     string          `json:"name"`
	Target   string          `json:"target"`
	Work     string          `json:"workload"` // what each client did, in words
	Start    time.Time       `json:"start"`
	Model    scenario.Model  `json:"model"`                  // closed or open
	Measure  string          `json:"measure"`                // Throughput or Rate
	Sessions *float64        `json:"sessions_per_operation"` // that clients made while load was held; nil: no operation ended
	Renewed  int64           `json:"renewed,omitempty"`      // credentials that client processes read again because they were renewed
	Ending   *measure.Ending `json:"ending"`                 // how the run ended; nil: it goes on, or was killed
	// the result in one line of at most 100 letters where its numbers allow: value with interval, load, limit
	Headline string            `json:"headline"`
	Verdict  string            `json:"verdict"`          // begins with Headline; one fact a line
	Facts    []fact.Fact       `json:"facts"`            // of Verdict
	Search   string            `json:"search,omitempty"` // of a run that searched: its last decision, how it ended that is
	Validity validity.Validity `json:"validity"`
	Curve    []steps.Figures   `json:"curve"`
	// Correlation is that of neighboring batch means within the steps, by which all intervals are widened; 0: no more
	// than chance.
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
	Power        *Operating          `json:"maximum_power"` // most throughput over latency
	Collapse     *Collapse           `json:"collapse"`      // nil: none
	Hysteresis   []Hysteresis        `json:"hysteresis"`    // of loads that were held on the way up and down
	Boundaries   []Boundary          `json:"boundaries"`
	Bottleneck   []limits.Bottleneck `json:"bottleneck"` // the first to saturate comes first
	Balance      *limits.Balance     `json:"balance"`    // nil: fewer than two servers shared the load, or it is not known

	// of a run whose clients have several workloads; Curve is of all together
	Populations []steps.PopulationCurve    `json:"populations,omitempty"`
	Workers     []validity.WorkerFigure    `json:"workers,omitempty"`          // of a run on many machines
	Transfers   *transfers.TransferFigures `json:"transfers,omitempty"`        // of a record of transfers
	Parts       *PartFits                  `json:"subinterval_fits,omitempty"` // where workers are jobs of a batch system
}

// curve returns the curve without figures that the document leaves out.
func (f *Findings) curve() *steps.Curve {
	return steps.CurveOf(f.Curve, f.Measure, f.Model, f.Source == FromTable)
}

// Open reports whether the load was planned as arrivals per second.
func (f *Findings) Open() bool { return f.Model == scenario.OpenModel }

// OfJobs reports whether the run's clients ran jobs.
func (f *Findings) OfJobs() bool { return f.curve().OfJobs() }

// Load names the load by which steps differ: clients, jobs, or arrivals/s.
func (f *Findings) Load() string { return f.curve().Load() }

// Things are what is counted where no payload is moved: operations/s, or jobs/s where each is a program of the
// user's.
func (f *Findings) Things() string { return f.curve().Things() }

// LimitText returns one sentence on the limit of the curve, "" if it was not judged.
func (f *Findings) LimitText() string { return limits.LimitText(f.curve(), f.Bottleneck) }

// Counting returns a copy of f whose curve has only the steps that count, or f itself if all do. The curve is empty
// if too few are left to show anything.
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
