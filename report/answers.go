package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"weir/analysis"
	"weir/internal/unit"
)

// yieldText writes what steps are compared by, with its unit.
func yieldText(f *analysis.Findings, throughput, operations float64) string {
	if f.Measure == analysis.Rate {
		return unit.Count(operations) + " " + things(f)
	}
	return unit.Bits(throughput)
}

// fitted writes a value of a fit, which is of what steps are compared by.
func fitted(f *analysis.Findings, x float64) string { return yieldText(f, x, x) }

// clients writes a number of clients, or an arrival rate.
func clients(f *analysis.Findings, x float64) string {
	name, _ := load(f)
	if f.Open() {
		return unit.Significant(x) + " " + name
	}
	if n := math.Round(x); n == 1 {
		return "1 " + strings.TrimSuffix(name, "s")
	}
	return strconv.FormatFloat(math.Round(x), 'f', 0, 64) + " " + name
}

// where writes a number of clients, in the open model the load of a step.
func where(f *analysis.Findings, step, n int) string {
	for i := range f.Curve {
		if f.Open() && f.Curve[i].Step == step {
			return at(f, &f.Curve[i])
		}
	}
	return clients(f, float64(n))
}

// An answer is one line of what the curve says.
type answer struct{ name, at, gives, how string }

// answers lists what the curve says, those that are not known left out.
func answers(f *analysis.Findings) []answer {
	var all []answer
	if k := f.Knee; k != nil {
		all = append(all, answer{"knee", where(f, k.Step, k.Clients) + between(k.ClientsLow, k.ClientsHigh), yieldText(f, k.Throughput, k.Operations), k.Method})
	} else {
		all = append(all, answer{"knee", "none in the tested range", "", ""})
	}
	if o := f.Optimum; o != nil {
		at := where(f, o.Step, o.Clients)
		if len(o.Equals) > 1 {
			at += fmt.Sprintf(" (%s to %s the same)", where(f, o.Equals[0], o.ClientsLow), where(f, o.Equals[len(o.Equals)-1], o.ClientsHigh))
		}
		all = append(all, answer{"optimum", at, yieldText(f, o.Throughput, o.Operations), o.Method})
		if p := o.Peak; p != nil {
			all = append(all, answer{"fitted peak", clients(f, p.Value) + between(p.Low, p.High), "", "where the fitted " + f.Fits.Best + " is highest"})
		}
	}
	if x := f.Power; x != nil {
		all = append(all, answer{"maximum power", where(f, x.Step, x.Clients), yieldText(f, x.Throughput, x.Operations), x.Method})
	}
	if f.Fits != nil && f.Fits.Unfit != "" {
		all = append(all, answer{"best model", "none describes the curve", "", f.Fits.Detail})
	}
	if c := f.Collapse; c != nil {
		all = append(all, answer{"collapse", where(f, c.Step, c.Clients), unit.Percent(c.Left) + " of the best is left", c.Detail})
	}
	for _, h := range f.Hysteresis {
		if h.Certain {
			all = append(all, answer{"hysteresis", clients(f, float64(h.Clients)), fmt.Sprintf("%+.0f%% on the way down", 100*h.Change),
				fmt.Sprintf("step %d against step %d; the 95%% interval of the difference leaves out 0", h.Down, h.Up)})
		}
	}
	for _, b := range f.Boundaries {
		all = append(all, answer{b.Condition, boundary(f, b), "", b.Detail})
	}
	return all
}

func between(low, high *float64) string {
	if low == nil || high == nil {
		return ""
	}
	if math.Round(*low) == math.Round(*high) {
		return ""
	}
	return fmt.Sprintf(" (%.0f to %.0f)", math.Floor(*low), math.Ceil(*high))
}

// boundary writes where a condition holds.
func boundary(f *analysis.Findings, b analysis.Boundary) string {
	switch {
	case b.To == nil && strings.HasSuffix(b.Detail, "was not measured"):
		return "not measured"
	case b.To == nil:
		return "at no tested load"
	case b.Next != nil:
		return stretch(f, b)
	case startsAbove(b):
		return "from " + clients(f, *b.From) + " on"
	}
	return "at all tested loads"
}

// startsAbove tells whether a condition is first kept above the lightest load,
// as a least throughput is.
func startsAbove(b analysis.Boundary) bool { return strings.Contains(b.Detail, ", not below: ") }

// stretch writes the loads from the first to the last at which a condition that
// is broken beyond holds, and whether there are more of them.
func stretch(f *analysis.Findings, b analysis.Boundary) string {
	last := *b.To
	if b.Crossing != nil {
		last = *b.Crossing
	}
	if !f.Open() {
		last = math.Floor(last)
	}
	text := "up to " + clients(f, last)
	if startsAbove(b) {
		text = "with " + clients(f, *b.From)
		if last > *b.From {
			text = "from " + significantLoad(f, *b.From) + " to " + clients(f, last)
		}
	}
	if strings.Contains(b.Detail, ", but again with ") {
		text += ", and again above"
	}
	return text
}

// significantLoad writes a load without its name.
func significantLoad(f *analysis.Findings, x float64) string {
	number, _, _ := strings.Cut(clients(f, x), " ")
	return number
}

func answerSection(f *analysis.Findings, m medium) section {
	s := section{ID: "answers", Title: "What the curve says"}
	all := answers(f)
	if f.Fits != nil && m == onTerminal { // a page has a table of them
		for _, x := range models(f) {
			if x.Name == f.Fits.Best {
				all = append(all, answer{"best model", x.Name, "R2 " + r2(x.R2), ""})
			}
		}
	}
	tabulate(&s, m, all, func(answer) bool { return false },
		field[answer]{"<", "<", func(a answer) string { return a.name }, nil},
		field[answer]{"<where", "<where", func(a answer) string { return a.at }, nil},
		field[answer]{"<what it gives", "<what it gives", func(a answer) string { return a.gives }, nil},
		field[answer]{"~how it was found", absent, func(a answer) string { return a.how }, nil})
	return s
}

// models lists the fits that there are.
func models(f *analysis.Findings) []*analysis.Fit {
	var all []*analysis.Fit
	if f.Fits == nil {
		return nil
	}
	for _, m := range []*analysis.Fit{f.Fits.Line, f.Fits.Plateau, f.Fits.Amdahl, f.Fits.USL, f.Fits.Decline, f.Fits.Poly4} {
		if m != nil {
			all = append(all, m)
		}
	}
	return all
}

// fitSection lists all models: which of them is the best is a matter of a few
// points, and others may want to be compared with an older figure.
func fitSection(f *analysis.Findings, m medium) section {
	s := section{ID: "fits", Title: "Models laid through the curve"}
	if f.Fits != nil {
		s.Note = f.Fits.Detail
	}
	type fit = *analysis.Fit
	tabulate(&s, m, models(f), func(x fit) bool { return x.Name == f.Fits.Best },
		field[fit]{"<model", "<model", func(x fit) string { return x.Name }, nil},
		field[fit]{"<formula", absent, func(x fit) string { return x.Formula }, nil},
		field[fit]{"R2", "R2", func(x fit) string { return r2(x.R2) }, nil},
		field[fit]{"AICc", absent, func(x fit) string { return unit.Significant(x.AICc) }, nil},
		field[fit]{"weight", "weight", func(x fit) string { return unit.Percent(x.Weight) }, nil},
		field[fit]{"<maximum in the tested range", "<maximum in the tested range", func(x fit) string { return maximum(f, x) }, nil},
		field[fit]{"~parameters, 95% interval", absent, parameters, nil})
	return s
}

func maximum(f *analysis.Findings, m *analysis.Fit) string {
	if m.Max == nil {
		return "none"
	}
	height := fitted(f, m.Max.Yield.Value)
	if low, high := m.Max.Yield.Low, m.Max.Yield.High; low != nil && high != nil {
		height += fmt.Sprintf(" (%s to %s)", fitted(f, *low), fitted(f, *high))
	}
	return fmt.Sprintf("%s at %s%s", height, clients(f, m.Max.Clients.Value), between(m.Max.Clients.Low, m.Max.Clients.High))
}

func parameters(m *analysis.Fit) string {
	var parts []string
	for _, p := range m.Parameters {
		text := p.Name + " " + short(p.Value)
		if p.Low != nil && p.High != nil {
			text += fmt.Sprintf(" (%s to %s)", short(*p.Low), short(*p.High))
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// short writes a parameter, whose size may be anything.
func short(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) }

// r2 writes a coefficient of determination: below 0 a curve is further off than
// the mean is, and how far says nothing more.
func r2(x float64) string {
	if x < 0 {
		return "below 0"
	}
	return strconv.FormatFloat(x, 'f', 4, 64)
}
