// Package fit fits models to a scalability curve, yield against clients: a line, a plateau,
// Amdahl's law, the Universal Scalability Law, a decline and a fourth-order polynomial, by weighted
// least squares. It reports how well each model describes the curve, its maximum with a confidence
// interval, or that the tested range has no maximum. Its functions are pure: the same points give
// the same result, since random numbers depend on a seed.
package fit

import (
	"slices"
	"strings"

	"weir/loadtest/analysis/fact"
)

// Names of the models.
const (
	Line    = "line"
	Plateau = "plateau"
	Amdahl  = "amdahl"
	USL     = "usl"
	Decline = "decline"
	Poly4   = "poly4"
)

// A Point is the measurement of one step.
type Point struct {
	Clients float64   // more than 0
	Yield   float64   // throughput or rate, at least 0
	Error   float64   // standard error of Yield; 0: unknown, or computed from Batches
	Batches []float64 // independent means, whose mean is Yield, if there are any
	Busy    float64   // clients in an operation, by Little's law rate times latency; 0: not known
}

// Options are the options of Of; the zero value is the usual choice.
type Options struct {
	// Think is the number of clients that pause per unit of yield: the think time in seconds if
	// yields are operations per second and a task is one operation. 0: computed from the points'
	// Busy if it is known, else no think time.
	Think     float64
	Resamples int    // of the bootstrap; 0: 1000
	Seed      uint64 // of the bootstrap
}

// Fits are the models of a curve. The polynomial is the best only by a clear margin, with a sentence about it.
type Fits struct {
	Best string `json:"best"` // name of the best model, usually without the polynomial
	// Unfit is NoBetter, Scatter or Misfit if even the best model does not describe the curve; "" if it does.
	Unfit   string   `json:"unfit,omitempty"`
	Detail  string   `json:"detail"`            // the texts of Facts: confidence, and the maximum
	Lacking []string `json:"lacking,omitempty"` // a sentence for each model that is nil
	Line    *Fit     `json:"line"`
	Plateau *Fit     `json:"plateau"`
	Amdahl  *Fit     `json:"amdahl"`
	USL     *Fit     `json:"usl"`
	Decline *Fit     `json:"decline"`
	Poly4   *Fit     `json:"poly4"`

	Facts []fact.Fact `json:"facts,omitempty"`
}

// AddLeftOut adds the fact that steps with errors, or jobs that were not completed, were left out.
func (f *Fits) AddLeftOut(jobs bool) {
	left := fact.New("verdict.fit.steps")
	if jobs {
		left = fact.New("verdict.fit.steps.jobs")
	}
	f.Facts = append(f.Facts, left)
	f.Detail += "; " + left.Text
}

// All returns the models that are not nil, the simplest first.
func (f *Fits) All() []*Fit {
	return slices.DeleteFunc([]*Fit{f.Line, f.Plateau, f.Amdahl, f.USL, f.Decline, f.Poly4}, func(m *Fit) bool { return m == nil })
}

// Named returns the model with the given name, or nil if it was not fitted.
func (f *Fits) Named(name string) *Fit {
	for _, m := range f.All() {
		if m.Name == name {
			return m
		}
	}
	return nil
}

// A Fit is one model with the parameters that fit the points best.
type Fit struct {
	Name       string       `json:"name"`
	Formula    string       `json:"formula"`    // Y is the yield, N the number of clients
	Parameters []Estimate   `json:"parameters"` // in the units of the points
	R2         float64      `json:"r2"`         // share of the weighted variance that the model explains
	AICc       float64      `json:"aicc"`       // may only be compared within a Fits
	Weight     float64      `json:"weight"`     // Akaike weight among the models, 0 to 1
	Points     int          `json:"points"`
	From       float64      `json:"from_clients"` // the tested range: no statement beyond it
	To         float64      `json:"to_clients"`
	Max        *Maximum     `json:"maximum"`              // nil: no maximum in the tested range
	NoMax      string       `json:"no_maximum,omitempty"` // why Max is nil
	Drawn      [][2]float64 `json:"drawn"`                // clients and yield at places of the curve
	Band       [][2]float64 `json:"band,omitempty"`       // of the best model: 95% interval of the yield at these places, by bootstrap
	// Resampled are curves like At, fitted to resamples of the points. They give the intervals of
	// values that are computed from a curve.
	Resampled []func(clients float64) float64 `json:"-"`
	Residuals []float64                       `json:"-"` // measured less fitted, in the order of the points

	at func(clients float64) float64
}

// At returns the model's yield at a number of clients, which should lie in the tested range.
func (f *Fit) At(clients float64) float64 { return f.at(clients) }

// An Estimate is a number with its 95% interval; Low and High are nil if the points do not bound
// it.
type Estimate struct {
	Name  string   `json:"name,omitempty"`
	Value float64  `json:"value"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
}

// A Maximum is the highest point of a fitted curve.
type Maximum struct {
	Clients Estimate `json:"clients"`
	Yield   Estimate `json:"yield"`
}

// Of fits all models to the points, which may be in any order; several points may have the same
// number of clients. For invalid points it returns an error that names the first such point,
// counted from 1.
func Of(points []Point, o Options) (*Fits, error) {
	c, err := newCurve(points, o)
	if err != nil {
		return nil, err
	}
	fits := &Fits{}
	var all []*candidate
	for _, m := range c.models() {
		if lack := c.lacks(m); lack != "" {
			fits.Lacking = append(fits.Lacking, lack)
			continue
		}
		all = append(all, c.candidate(m))
	}
	if len(all) == 0 {
		fits.Facts = []fact.Fact{fact.New("verdict.fit.lacking", "reasons", strings.Join(fits.Lacking, "; "))}
		fits.Detail = fits.Facts[0].Text
		return fits, nil
	}
	c.judge(all)
	c.bootstrap(all, o)
	c.conclude(fits, all)
	return fits, nil
}

// lacks returns the reason why a model is not fitted, or "" if it is fitted.
func (c *curve) lacks(m *model) string {
	need := c.counted(m) + 2
	if len(c.x) >= need && c.distinct > len(m.names) {
		return ""
	}
	if len(c.x) < need {
		return fact.New("verdict.fit.lacking.points", "model", m.name, "needed", need, "points", len(c.x)).Text
	}
	return fact.New("verdict.fit.lacking.loads", "model", m.name, "needed", len(m.names)+1, "loads", c.distinct).Text
}
