// Package fit lays models through a scalability curve, yield against clients: a line, a plateau, Amdahl's law, the
// Universal Scalability Law and a fourth-order polynomial, by weighted least squares. It says how well each describes
// the curve, where its maximum is and how sure that is, and that there is none where the tested range shows none. Its
// functions are pure: the same points give the same answer, also where it is drawn by lot.
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

// A Point is what one step gave.
type Point struct {
	Clients float64   // more than 0
	Yield   float64   // throughput or rate, at least 0
	Error   float64   // standard error of Yield; 0: not known, or taken from Batches
	Batches []float64 // independent means that Yield is the mean of, if there are any
	Busy    float64   // clients in an operation, by Little's law rate times latency; 0: not known
}

// Options of Of; the zero value is what is usually wanted.
type Options struct {
	// Think is how many clients pause per unit of yield: the think time in seconds if yields are operations per
	// second and a task is one of them. 0: taken from the points' Busy where they have it, else there is none.
	Think     float64
	Resamples int    // of the bootstrap; 0: 1000
	Seed      uint64 // of the bootstrap
}

// Fits are the models of a curve. A model is nil where there are too few points for it, and Lacking says so.
type Fits struct {
	Best string `json:"best"` // name of the model that describes the curve best, of those that say something of scaling
	// Unfit is NoBetter, Scatter or Misfit if even the best model does not describe the curve; "" if it does.
	Unfit   string   `json:"unfit,omitempty"`
	Detail  string   `json:"detail"`            // the texts of Facts: how sure that is, and the maximum
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

// All returns the models that there are, the simplest first.
func (f *Fits) All() []*Fit {
	return slices.DeleteFunc([]*Fit{f.Line, f.Plateau, f.Amdahl, f.USL, f.Decline, f.Poly4}, func(m *Fit) bool { return m == nil })
}

// Named returns the model of that name, nil if there is none.
func (f *Fits) Named(name string) *Fit {
	for _, m := range f.All() {
		if m.Name == name {
			return m
		}
	}
	return nil
}

// A Fit is one model with the parameters that suit the points best.
type Fit struct {
	Name       string       `json:"name"`
	Formula    string       `json:"formula"`    // Y is the yield, N the number of clients
	Parameters []Estimate   `json:"parameters"` // in the units of the points
	R2         float64      `json:"r2"`         // share of the weighted variance that the model explains
	AICc       float64      `json:"aicc"`       // may only be compared within a Fits
	Weight     float64      `json:"weight"`     // Akaike weight among the models, 0 to 1
	Points     int          `json:"points"`
	From       float64      `json:"from_clients"` // the tested range: nothing is said beyond it
	To         float64      `json:"to_clients"`
	Max        *Maximum     `json:"maximum"`              // nil: none in the tested range
	NoMax      string       `json:"no_maximum,omitempty"` // why Max is nil
	Drawn      [][2]float64 `json:"drawn"`                // clients and yield at places of the curve
	Band       [][2]float64 `json:"band,omitempty"`       // of the best model: 95% interval of the yield at these places, by bootstrap
	// Resampled are curves as At, of resamples of the points: what else follows from a curve has the interval that
	// these give it.
	Resampled []func(clients float64) float64 `json:"-"`
	Residuals []float64                       `json:"-"` // measured less fitted, in the order of the points

	at func(clients float64) float64
}

// At returns what the model gives at a number of clients, which should lie in the tested range.
func (f *Fit) At(clients float64) float64 { return f.at(clients) }

// An Estimate is a number with its 95% interval; Low and High are nil where the points do not bound it.
type Estimate struct {
	Name  string   `json:"name,omitempty"`
	Value float64  `json:"value"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
}

// A Maximum is where a fitted curve is highest.
type Maximum struct {
	Clients Estimate `json:"clients"`
	Yield   Estimate `json:"yield"`
}

// Of fits all models to the points, which may come in any order, and more than one may have the same number of
// clients. Points that can not be right give an error that names the first of them, counted from 1.
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

// lacks returns the reason for which a model is not fitted, "" if it is.
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
