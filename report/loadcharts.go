package report

import (
	"fmt"
	"slices"
	"strings"

	"weir/analysis"
	"weir/internal/say"
	"weir/internal/unit"
	"weir/report/figure"
)

// curveWords says what the curve shows: how it goes, what is marked, and how well
// the model follows it.
func curveWords(f *analysis.Findings, points []figure.Point, show func(float64) string) string {
	best, last := slices.IndexFunc(f.Curve, func(s analysis.Step) bool { return isBest(f, &s) }), len(points)-1
	tell := func(i int) string { return show(points[i].Y) + " with " + at(f, &f.Curve[i]) }
	var text string
	switch {
	case last == 0:
		text = tell(0) + "."
	case best < 0:
		text = fmt.Sprintf("It goes from %s to %s.", tell(0), tell(last))
	case best == 0:
		text = fmt.Sprintf("No load certainly gives more than the lightest, %s; it ends at %s.", tell(0), tell(last))
	case best == last:
		text = fmt.Sprintf("It rises from %s to %s, the heaviest load.", tell(0), tell(last))
	case !f.Optimum.Inside:
		text = fmt.Sprintf("It rises from %s to %s and stays near that up to %s.", tell(0), tell(best), tell(last))
	default:
		text = fmt.Sprintf("It rises from %s to %s, then falls to %s.", tell(0), tell(best), tell(last))
	}
	for _, m := range curveMarks(f) {
		text += " " + markWords(f, m)
	}
	if f.Fits != nil && len(fitLines(f, 0)) > 0 {
		for _, m := range models(f) {
			if m.Name == f.Fits.Best {
				text += fmt.Sprintf(" The fitted %s explains %s of the variance", m.Name, unit.Percent(max(0, m.R2)))
				if len(m.Band) > 0 {
					text += "; the band around it is its 95% interval"
				}
				text += "."
			}
		}
	}
	if f.Source == analysis.FromTable {
		return text + " Bars are 95% intervals of the mean; a point without a bar has fewer than three rows."
	}
	return text + " Bars are 95% intervals of the mean; a step without a bar was held too briefly for one."
}

// markWords is the sentence for one mark.
func markWords(f *analysis.Findings, m figure.Mark) string {
	names, place, _ := strings.Cut(m.Name, ": ")
	var all []string
	for _, name := range strings.Split(names, ", ") {
		words := map[string]string{"most power": "the most throughput over latency", "poly4": "the maximum of poly4"}[name]
		if words == "" {
			words = "the " + name
		}
		all = append(all, words)
	}
	text := fmt.Sprintf("%s %s at %s", say.Capital(listed(all)), say.Either(len(all), "is", "are"), place)
	if m.Low != nil && m.High != nil {
		text += fmt.Sprintf(" (%s to %s, shaded)", significantLoad(f, *m.Low), clients(f, *m.High))
	}
	return text + "."
}

// lightest is the first of the steps with the least load. There is one.
func lightest(f *analysis.Findings) *analysis.Step {
	_, place := load(f)
	first := &f.Curve[0]
	for i := range f.Curve {
		if place(&f.Curve[i]) < place(first) {
			first = &f.Curve[i]
		}
	}
	return first
}

// efficiencyChart shows what is left of a client's share at the lightest load;
// nil in the open model, where nobody waits for a share.
func efficiencyChart(f *analysis.Findings) *figure.Figure {
	if f.Open() || len(f.Curve) < 2 {
		return nil
	}
	of, first := yieldOf(f).each, lightest(f)
	whole := of(first)
	if whole <= 0 {
		return nil
	}
	c := &figure.Figure{ID: "efficiency", Title: "Efficiency against load", X: stepAxis(f)}
	c.Lines = []figure.Line{series(f, "efficiency", 2, func(s *analysis.Step) (float64, bool) { return of(s) / whole, true }, unit.Percent)}
	c.Y = percentAxis("% of the share at the lightest load", 1)(c.Lines)
	c.Y.Name = "efficiency"
	c.Desc = fmt.Sprintf("What each client gets, as a share of what it gets with %s. ", at(f, first))
	half, last := "", &f.Curve[len(f.Curve)-1]
	for i := range f.Curve {
		if half == "" && of(&f.Curve[i]) < 0.5*whole {
			half = fmt.Sprintf("From %s on it is less than half. ", at(f, &f.Curve[i]))
		}
	}
	c.Desc += half + fmt.Sprintf("With %s %s is left.", at(f, last), unit.Percent(of(last)/whole))
	return c
}

// mostUsed is how many resources a plot shows.
const mostUsed = 6

// leading keeps of each resource the host of each side that used most of it: ten
// interfaces that are equally busy would hide all else.
func leading(all []*usedRow) []*usedRow {
	type kind struct{ resource, side string }
	seen := map[kind]bool{}
	var out []*usedRow
	for _, r := range all {
		var k kind
		for _, u := range r.steps {
			if u != nil {
				k = kind{u.Resource, u.Side}
			}
		}
		if len(out) < mostUsed && !seen[k] {
			seen[k] = true
			out = append(out, r)
		}
	}
	return out
}

// resourceChart shows the use of what is used most; nil if nothing is known.
func resourceChart(f *analysis.Findings) *figure.Figure {
	c := &figure.Figure{ID: "resources", Title: "The most used resources against load", X: stepAxis(f)}
	_, place := load(f)
	var said []string
	for _, r := range leading(used(f)) {
		l := figure.Line{Name: say.Plain(r.name), Color: len(c.Lines), Dots: true}
		from := ""
		for i, u := range r.steps {
			if u == nil {
				continue
			}
			s := &f.Curve[i]
			l.Points = append(l.Points, figure.Point{X: place(s), Y: *u.Share, Note: fmt.Sprintf("%s: %s %s", at(f, s), l.Name, unit.Percent(*u.Share))})
			if u.Saturated && from == "" {
				from = ", saturated from " + at(f, s) + " on"
			}
		}
		said = append(said, fmt.Sprintf("%s at most %s%s", l.Name, unit.Percent(r.most), from))
		c.Lines = append(c.Lines, l)
	}
	if len(c.Lines) == 0 || len(f.Curve) < 2 {
		return nil
	}
	c.Y = percentAxis("% of what there is", 1)(c.Lines)
	c.Y.Name = "use"
	c.Desc = "Use of each resource as a share of what there is of it, on the host of each side that used most of it: " + strings.Join(said, "; ") + "."
	return c
}

// listed writes "a", "a and b", "a, b and c".
func listed(all []string) string {
	if n := len(all); n > 2 {
		all = []string{strings.Join(all[:n-1], ", "), all[n-1]}
	}
	return strings.Join(all, " and ")
}
