package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"weir/analysis"
	"weir/internal/say"
	"weir/internal/unit"
	"weir/report/figure"
)

// curveCharts plots the steps against their load.
func curveCharts(f *analysis.Findings) []figure.Figure {
	if len(f.Curve) == 0 {
		return nil
	}
	g := f.Counting()
	if len(g.Curve) == 0 {
		g = f // what was measured is shown, without a model
	}
	curve := yieldChart(g)
	if len(g.Curve) < len(f.Curve) {
		addExcluded(&curve, f)
	}
	each := perClientChart(g)
	return those(&curve, &each, efficiencyChart(g), latencyChart(g), firstByteChart(g), redirectChart(g), errorChart(f), cpuChart(f))
}

// those returns the figures that are not nil: those that something is known for.
func those(figures ...*figure.Figure) []figure.Figure {
	var all []figure.Figure
	for _, c := range figures {
		if c != nil {
			all = append(all, *c)
		}
	}
	return all
}

// at writes a step's load: "64 clients".
func at(f *analysis.Findings, s *analysis.Step) string {
	name, of := load(f)
	if of(s) == 1 && !f.Open() {
		return "1 " + strings.TrimSuffix(name, "s")
	}
	return fmt.Sprintf("%g %s", of(s), name)
}

// stepAxis is the axis of all plots against load.
func stepAxis(f *analysis.Findings) figure.Axis {
	name, of := load(f)
	label := "virtual clients"
	switch {
	case f.Source == analysis.FromTable:
		label = "clients"
	case f.OfJobs():
		label = "concurrent jobs"
	}
	if f.Open() {
		label = "planned " + name
	}
	var places []float64
	for i := range f.Curve {
		places = append(places, of(&f.Curve[i]))
	}
	return figure.LoadAxis(label, name, places)
}

// series makes a line of what of returns for each step; steps for which it
// is not known are left out. text writes a value.
func series(f *analysis.Findings, name string, color int, of func(*analysis.Step) (float64, bool), text func(float64) string) figure.Line {
	_, place := load(f)
	l := figure.Line{Name: name, Color: color, Dots: true}
	for i := range f.Curve {
		s := &f.Curve[i]
		if y, ok := of(s); ok {
			l.Points = append(l.Points, figure.Point{X: place(s), Y: y, Note: fmt.Sprintf("%s: %s %s", at(f, s), name, text(y))})
		}
	}
	return l
}

// highest returns the largest value in lines, with their intervals.
func highest(lines []figure.Line) float64 {
	most := 0.0
	for _, l := range lines {
		for _, p := range l.Points {
			most = max(most, p.Y)
			if p.High != nil {
				most = max(most, *p.High)
			}
		}
	}
	return most
}

// lowest returns the smallest positive value in lines.
func lowest(lines []figure.Line) float64 {
	least := math.Inf(1)
	for _, l := range lines {
		for _, p := range l.Points {
			if p.Y > 0 {
				least = min(least, p.Y)
			}
		}
	}
	if math.IsInf(least, 0) {
		return 0
	}
	return least
}

func yieldChart(f *analysis.Findings) figure.Figure {
	y := yieldOf(f)
	c := figure.Figure{ID: "curve", Title: say.Capital(y.name) + " against load", X: stepAxis(f)}
	l := series(f, y.name, 0, func(s *analysis.Step) (float64, bool) { return y.of(s), true }, y.text)
	for i := range f.Curve {
		l.Points[i].Low, l.Points[i].High = y.ends(&f.Curve[i])
	}
	l.Name = "measured"
	c.Lines = append([]figure.Line{l}, fitLines(f, 1.2*highest([]figure.Line{l}))...)
	c.Y = y.axis(c.Lines)
	c.Desc = curveWords(f, l.Points, y.text)
	c.Marks = curveMarks(f)
	return c
}

// addExcluded adds the steps that do not count as points apart.
func addExcluded(c *figure.Figure, f *analysis.Findings) {
	y := yieldOf(f)
	l := series(f, "does not count", 5, func(s *analysis.Step) (float64, bool) { return y.of(s), s.Excluded != "" }, y.text)
	l.Loose = true
	c.Lines, c.X = append(c.Lines, l), stepAxis(f)
	c.Desc += " Points apart from the line are steps that do not count: the service was away."
}

// worthDrawing is the Akaike weight from which on the polynomial is drawn, too.
const worthDrawing = 0.01

// fitLines are the model that describes the curve best, and the polynomial of
// the fourth order where that is another one and describes it, too. No band goes
// above top.
func fitLines(f *analysis.Findings, top float64) []figure.Line {
	var all []figure.Line
	for _, m := range models(f) {
		if m.Name != f.Fits.Best && (m.Name != "poly4" || m.Weight < worthDrawing) {
			continue
		}
		l := figure.Line{Name: "fitted " + m.Name, Color: 1 + len(all), Dash: m.Name != f.Fits.Best}
		for i, p := range m.Drawn {
			point := figure.Point{X: p[0], Y: max(0, p[1])}
			if i < len(m.Band) {
				point.Low, point.High = new(max(0, m.Band[i][0])), new(min(m.Band[i][1], top))
			}
			l.Points = append(l.Points, point)
		}
		all = append(all, l)
	}
	return all
}

// curveMarks marks the knee, the optimum with the loads that cannot be told from
// it, and the load with most power.
func curveMarks(f *analysis.Findings) []figure.Mark {
	_, place := load(f)
	var all []figure.Mark
	add := func(name string, step, n int) {
		x, text := float64(n), where(f, step, n)
		for i := range f.Curve {
			if f.Open() && f.Curve[i].Step == step {
				x = place(&f.Curve[i])
			}
		}
		for i := range all {
			if all[i].X == x { // one line with both names
				all[i].Name = name + ", " + all[i].Name
				return
			}
		}
		all = append(all, figure.Mark{X: x, Name: name + ": " + text})
	}
	if k := f.Knee; k != nil {
		add("knee", k.Step, k.Clients)
	}
	if o := f.Optimum; o != nil {
		add("optimum", o.Step, o.Clients)
		if low, high := float64(o.ClientsLow), float64(o.ClientsHigh); !f.Open() && low < high {
			i := slices.IndexFunc(all, func(m figure.Mark) bool { return m.X == float64(o.Clients) })
			all[max(i, 0)].Low, all[max(i, 0)].High = &low, &high
		}
	}
	all = append(all, polynomialMark(f)...)
	if x := f.Power; x != nil {
		add("most power", x.Step, x.Clients)
	}
	return all
}

// polynomialMark marks the maximum of the polynomial of the fourth order, which
// older reports name as the optimum, where it is drawn beside a better model.
func polynomialMark(f *analysis.Findings) []figure.Mark {
	if f.Fits == nil || f.Fits.Poly4 == nil || f.Fits.Best == "poly4" || f.Fits.Poly4.Weight < worthDrawing || f.Fits.Poly4.Max == nil || f.Open() {
		return nil
	}
	at := f.Fits.Poly4.Max.Clients
	return []figure.Mark{{X: at.Value, Name: "poly4: " + clients(f, at.Value)}}
}

func perClientChart(f *analysis.Findings) figure.Figure {
	c := figure.Figure{ID: "client", Title: "Share of each client", X: stepAxis(f)}
	y := yieldOf(f)
	of, show := y.each, y.text
	c.Lines = []figure.Line{series(f, "each client", 0, func(s *analysis.Step) (float64, bool) { return of(s), true }, show)}
	c.Y = y.axis(c.Lines)
	c.Y.Label += " each"
	first, last := &f.Curve[0], &f.Curve[len(f.Curve)-1]
	if len(f.Curve) == 1 {
		c.Desc = fmt.Sprintf("With %s each gets %s.", at(f, last), show(of(last)))
		return c
	}
	c.Desc = fmt.Sprintf("With %s each gets %s, with %s each gets %s. The line is level while clients do not disturb each other, and falls as one over their number once the service is full.",
		at(f, first), show(of(first)), at(f, last), show(of(last)))
	return c
}

func errorChart(f *analysis.Findings) *figure.Figure {
	failed := false
	c := figure.Figure{ID: "errors", Title: "Failed operations against load", X: stepAxis(f)}
	c.Lines = []figure.Line{series(f, "errors", 1, func(s *analysis.Step) (float64, bool) {
		failed = failed || s.Errors > 0
		return s.ErrorRatio, true
	}, unit.Percent)}
	if !failed {
		return nil
	}
	by := figure.Percent()
	c.Y = figure.LinearAxis("% of operations", by, highest(c.Lines))
	c.Desc = fmt.Sprintf("Share of operations that failed: %s.", summit(f, &c.Lines[0], unit.Percent))
	for i := range f.Curve {
		if f.Curve[i].Errors > 0 {
			c.Desc += fmt.Sprintf(" The first ones came with %s.", at(f, &f.Curve[i]))
			break
		}
	}
	return &c
}

func cpuChart(f *analysis.Findings) *figure.Figure {
	c := figure.Figure{ID: "cpu", Title: "CPU against load", X: stepAxis(f)}
	lines := []figure.Line{
		series(f, "server", 1, func(s *analysis.Step) (float64, bool) { return known(s.ServerCPU) }, unit.Percent),
		series(f, "clients", 0, func(s *analysis.Step) (float64, bool) { return known(s.ClientCPU) }, unit.Percent),
		series(f, "server's I/O wait", 2, func(s *analysis.Step) (float64, bool) { return serverWait(s) }, unit.Percent),
	}
	lines[2].Dash = true
	var said []string
	for _, l := range lines {
		if len(l.Points) > 0 {
			c.Lines = append(c.Lines, l)
			said = append(said, summit(f, &l, unit.Percent))
		}
	}
	if len(c.Lines) == 0 {
		return nil
	}
	c.Y = figure.LinearAxis("% of the machine's cores", figure.Percent(), 1)
	c.Desc = "Share of all cores of their machines that each side kept busy while the load was held: " + strings.Join(said, "; ") + "."
	return &c
}

// summit says where a line against load is highest, and where it ends.
func summit(f *analysis.Findings, l *figure.Line, text func(float64) string) string {
	if len(l.Points) == 0 {
		return l.Name + " unknown"
	}
	best := 0
	for i := range l.Points {
		if l.Points[i].Y > l.Points[best].Y {
			best = i
		}
	}
	last := l.Points[len(l.Points)-1]
	said := fmt.Sprintf("%s at most %s with %s", l.Name, text(l.Points[best].Y), clients(f, l.Points[best].X))
	if last.X != l.Points[best].X {
		said += fmt.Sprintf(", %s with %s", text(last.Y), clients(f, last.X))
	}
	return said
}

// serverWait returns the largest I/O wait of the hosts that serve.
func serverWait(s *analysis.Step) (float64, bool) {
	most, ok := 0.0, false
	for _, h := range s.Hosts {
		if h.Role != "client" && h.IOWait != nil {
			most, ok = max(most, *h.IOWait), true
		}
	}
	return most, ok
}
