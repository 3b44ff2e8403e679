package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"weir/internal/unit"
	"weir/loadtest/analysis"
)

// answerSection lists the properties of the curve; unknown properties are left out.
func answerSection(f *analysis.Findings) section {
	s := section{ID: "answers", Title: "What the curve says",
		table: table{Head: heads("<property", "<where", "<what it gives", ".~how it was found")}}
	if len(f.Curve) < 2 {
		return s
	}
	add := func(name, at, gives, how string) { s.row(false, name, at, gives, how) }
	if k := f.Knee; k != nil {
		add("knee", where(f, k.Step, k.Clients)+between(k.ClientsLow, k.ClientsHigh), yieldText(f, k.Throughput, k.Operations), k.Method)
	} else {
		add("knee", "none in the tested range", "", "")
	}
	if o := f.Optimum; o != nil {
		at := where(f, o.Step, o.Clients)
		if len(o.Equals) > 1 {
			at += " (" + equalLoads(f) + " the same)"
		}
		add("optimum", at, yieldText(f, o.Throughput, o.Operations), o.Method)
		if p := o.Peak; p != nil {
			add("fitted peak", clients(f, p.Value)+between(p.Low, p.High), "", "where the fitted "+f.Fits.Best+" is highest")
		}
	}
	if x := f.Power; x != nil {
		add("maximum power", where(f, x.Step, x.Clients), yieldText(f, x.Throughput, x.Operations), x.Method)
	}
	if f.Fits != nil && f.Fits.Unfit != "" {
		add("best model", "none describes the curve", "", f.Fits.Detail)
	}
	if c := f.Collapse; c != nil {
		add("collapse", where(f, c.Step, c.Clients), unit.Percent(c.Left)+" of the best is left", c.Detail)
	}
	for _, h := range f.Hysteresis {
		if h.Certain {
			add("hysteresis", clients(f, float64(h.Clients)), fmt.Sprintf("%+.0f%% on the way down", 100*h.Change),
				fmt.Sprintf("step %d against step %d; the 95%% interval of the difference leaves out 0", h.Down, h.Up))
		}
	}
	for _, b := range f.Boundaries {
		add(b.Condition, boundary(f, b), "", b.Detail)
	}
	for _, m := range models(f) {
		if m.Name == f.Fits.Best {
			add("best model", m.Name, "R2 "+r2(m.R2), f.Fits.Detail)
		}
	}
	return s
}

// equalLoads formats the lowest and the highest load that cannot be distinguished from the optimum.
func equalLoads(f *analysis.Findings) string {
	o := f.Optimum
	low, _, _ := strings.Cut(where(f, o.Equals[0], o.ClientsLow), " ")
	return low + " to " + where(f, o.Equals[len(o.Equals)-1], o.ClientsHigh)
}

func between(low, high *float64) string {
	if low == nil || high == nil || math.Round(*low) == math.Round(*high) {
		return ""
	}
	return fmt.Sprintf(" (%.0f to %.0f)", math.Floor(*low), math.Ceil(*high))
}

// boundary formats the loads at which a condition holds.
func boundary(f *analysis.Findings, b analysis.Boundary) string {
	switch {
	case b.Unmeasured:
		return "not measured"
	case b.To == nil:
		return "at no tested load"
	case b.Next != nil:
		return stretch(f, b)
	case b.Above:
		return "from " + clients(f, *b.From) + " on"
	}
	return "at all tested loads"
}

// stretch formats the loads from the first to the last at which a condition holds that is broken
// beyond them, and states whether there are more such loads.
func stretch(f *analysis.Findings, b analysis.Boundary) string {
	last := *cmp.Or(b.Crossing, b.To)
	if !f.Open() {
		last = math.Floor(last)
	}
	text := "up to " + clients(f, last)
	if b.Above {
		text = "with " + clients(f, *b.From)
		if last > *b.From {
			text = "from " + significantLoad(f, *b.From) + " to " + clients(f, last)
		}
	}
	if b.Again != nil {
		text += ", and again above"
	}
	return text
}

// significantLoad writes a load without its name.
func significantLoad(f *analysis.Findings, x float64) string {
	number, _, _ := strings.Cut(clients(f, x), " ")
	return number
}

// models lists the available fits.
func models(f *analysis.Findings) []*analysis.Fit {
	if f.Fits == nil {
		return nil
	}
	all := []*analysis.Fit{f.Fits.Line, f.Fits.Plateau, f.Fits.Amdahl, f.Fits.USL, f.Fits.Decline, f.Fits.Poly4}
	return slices.DeleteFunc(all, func(m *analysis.Fit) bool { return m == nil })
}

// fitSection lists all models: the choice of the best model depends on a few points, and the other
// models may be needed for a comparison with an older figure.
func fitSection(f *analysis.Findings) section {
	s := section{ID: "fits", Title: "Models fitted to the curve",
		table: table{Head: heads("<model", ".<formula", "R2", ".AICc", "weight", "<maximum in the tested range", ".~parameters, 95% interval")}}
	for _, m := range models(f) {
		s.Note = f.Fits.Detail
		s.row(m.Name == f.Fits.Best, m.Name, m.Formula, r2(m.R2), unit.Significant(m.AICc), unit.Percent(m.Weight), maximum(f, m), parameters(m))
	}
	return s
}

func maximum(f *analysis.Findings, m *analysis.Fit) string {
	if m.Max == nil {
		return "none"
	}
	height := func(x float64) string { return yieldText(f, x, x) }
	text, yield := height(m.Max.Yield.Value), m.Max.Yield
	if yield.Low != nil && yield.High != nil {
		text += " (" + span(yield.Low, yield.High, height) + ")"
	}
	return text + " at " + clients(f, m.Max.Clients.Value) + between(m.Max.Clients.Low, m.Max.Clients.High)
}

func parameters(m *analysis.Fit) string {
	short := func(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) } // any magnitude is possible
	var parts []string
	for _, p := range m.Parameters {
		text := p.Name + " " + short(p.Value)
		if p.Low != nil && p.High != nil {
			text += " (" + span(p.Low, p.High, short) + ")"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// r2 formats a coefficient of determination: below 0 a curve is further off than the mean is, and
// the distance has no further meaning.
func r2(x float64) string {
	if x < 0 {
		return "below 0"
	}
	return strconv.FormatFloat(x, 'f', 4, 64)
}

// columnSection lists the columns of an analyzed table with their meaning.
func columnSection(f *analysis.Findings) section {
	s := section{ID: "columns", Title: "Columns of the table", table: table{Head: heads("<column", "~meaning")}}
	for _, c := range f.Columns {
		s.row(false, c.Name, c.Fact.Text)
	}
	return s
}
