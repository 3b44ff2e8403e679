package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/analysis"
	"weir/loadtest/report/figure"
)

// curveCharts plots the steps against their load.
func curveCharts(f *analysis.Findings) []figure.Figure {
	if len(f.Curve) == 0 {
		return nil
	}
	g := f.Counting()
	if len(g.Curve) == 0 {
		g = f // the measurements are shown, without a model
	}
	curve := yieldChart(g)
	if len(g.Curve) < len(f.Curve) {
		addExcluded(curve, f)
	}
	return those(curve, populationChart(g), perClientChart(g), efficiencyChart(g), latencyChart(g), firstByteChart(g), redirectChart(g),
		errorChart(f), cpuChart(f))
}

// bars describes the intervals of points.
const bars = "Bars: 95% intervals of the mean"

// joinNotes joins the notes of a figure that are not empty.
func joinNotes(notes []string) string {
	return strings.Join(slices.DeleteFunc(notes, func(n string) bool { return n == "" }), ". ")
}

// those returns the figures that are not nil.
func those(figures ...*figure.Figure) []figure.Figure {
	var all []figure.Figure
	for _, c := range figures {
		if c != nil {
			all = append(all, *c)
		}
	}
	return all
}

// stepAxis returns the axis of all plots against load.
func stepAxis(f *analysis.Findings) figure.Axis {
	label := "virtual clients"
	switch {
	case f.Open():
		label = "planned " + f.Load()
	case f.OfJobs():
		label = "concurrent jobs"
	case f.Source == analysis.FromTable:
		label = "clients"
	}
	var places []float64
	for _, s := range steps(f) {
		places = append(places, loadOf(f, s))
	}
	return figure.LoadAxis(label, f.Load(), places)
}

// series makes a line of the values that of returns for each step; steps with an unknown value are
// left out. text formats a value.
func series(f *analysis.Findings, name string, color int, of func(*analysis.Step) (float64, bool), text func(float64) string) figure.Line {
	l := figure.Line{Name: name, Color: color, Dots: true}
	for _, s := range steps(f) {
		if y, ok := of(s); ok {
			l.Points = append(l.Points, figure.Point{X: loadOf(f, s), Y: y, Note: fmt.Sprintf("%s: %s %s", at(f, s), name, text(y))})
		}
	}
	return l
}

// against returns a figure of lines against load; it returns nil if no line is above zero.
func against(f *analysis.Findings, id, title, name string, axis func([]figure.Line) figure.Axis, lines ...figure.Line) *figure.Figure {
	lines = slices.DeleteFunc(lines, func(l figure.Line) bool { return len(l.Points) == 0 })
	if highest(lines) <= 0 {
		return nil
	}
	c := &figure.Figure{ID: id, Title: title, X: stepAxis(f), Y: axis(lines), Lines: lines}
	c.Y.Name = name
	return c
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

// lowest returns the smallest positive value in lines, 0 if no value is positive.
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

func yieldChart(f *analysis.Findings) *figure.Figure {
	y := yieldOf(f)
	l := series(f, y.name, 0, func(s *analysis.Step) (float64, bool) { return y.of(s), true }, y.text)
	for i := range f.Curve {
		l.Points[i].Low, l.Points[i].High = y.ends(&f.Curve[i])
	}
	l.Name = "measured"
	c := &figure.Figure{ID: "curve", Title: say.Capital(y.name) + " against load", X: stepAxis(f), Desc: bars, Marks: drawn(curveMarks(f))}
	c.Lines = append([]figure.Line{l}, fitLines(f, 1.2*highest([]figure.Line{l}))...)
	c.Y = y.axis(c.Lines)
	c.Y.Name = y.name
	return c
}

// addExcluded adds the steps that do not count as separate points.
func addExcluded(c *figure.Figure, f *analysis.Findings) {
	y := yieldOf(f)
	l := series(f, "does not count", 5, func(s *analysis.Step) (float64, bool) { return y.of(s), s.Excluded != "" }, y.text)
	l.Loose = true
	c.Lines, c.X = append(c.Lines, l), stepAxis(f)
}

// worthDrawing is the smallest Akaike weight for which the polynomial is drawn as well.
const worthDrawing = 0.01

// fitLines returns the lines of the model that describes the curve best, and of the polynomial of
// the fourth order if that is another model and describes the curve as well. No band extends above
// top.
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

// A loadMark is a load of the curve with all its names.
type loadMark struct {
	names     []string
	load      string // with its unit
	x         float64
	low, high *float64
}

// drawn returns the marks of a figure.
func drawn(marks []loadMark) []figure.Mark {
	var all []figure.Mark
	for _, m := range marks {
		all = append(all, figure.Mark{X: m.x, Name: strings.Join(m.names, ", ") + ": " + m.load, Low: m.low, High: m.high})
	}
	return all
}

// curveMarks returns marks of the knee, of the optimum with the loads that cannot be distinguished
// from it, and of the load with the highest power.
func curveMarks(f *analysis.Findings) []loadMark {
	var all []loadMark
	add := func(name string, step, n int) {
		x := float64(n)
		if s := stepOf(f, step); s != nil && f.Open() {
			x = loadOf(f, s)
		}
		if i := slices.IndexFunc(all, func(m loadMark) bool { return m.x == x }); i >= 0 {
			all[i].names = append([]string{name}, all[i].names...) // one line with both names
			return
		}
		all = append(all, loadMark{names: []string{name}, load: where(f, step, n), x: x})
	}
	if k := f.Knee; k != nil {
		add("knee", k.Step, k.Clients)
	}
	if o := f.Optimum; o != nil {
		add("optimum", o.Step, o.Clients)
		if low, high := float64(o.ClientsLow), float64(o.ClientsHigh); !f.Open() && low < high {
			i := slices.IndexFunc(all, func(m loadMark) bool { return m.x == float64(o.Clients) })
			all[max(i, 0)].low, all[max(i, 0)].high = &low, &high
		}
	}
	all = append(all, polynomialMark(f)...)
	if x := f.Power; x != nil {
		add("most power", x.Step, x.Clients)
	}
	return all
}

// polynomialMark marks the maximum of the polynomial of the fourth order, which older reports call
// the optimum, if it is drawn beside a better model.
func polynomialMark(f *analysis.Findings) []loadMark {
	if f.Fits == nil || f.Open() {
		return nil
	}
	p := f.Fits.Poly4
	if p == nil || f.Fits.Best == "poly4" || p.Weight < worthDrawing || p.Max == nil {
		return nil
	}
	x := p.Max.Clients.Value
	return []loadMark{{names: []string{"poly4"}, load: clients(f, x), x: x}}
}

func perClientChart(f *analysis.Findings) *figure.Figure {
	y := yieldOf(f)
	c := &figure.Figure{ID: "client", Title: "Share of each client", X: stepAxis(f)}
	c.Lines = []figure.Line{series(f, "each client", 0, func(s *analysis.Step) (float64, bool) { return y.each(s), true }, y.text)}
	c.Y = y.axis(c.Lines)
	c.Y.Label, c.Y.Name = c.Y.Label+" each", y.name+" per client"
	return c
}

// efficiency returns the throughput of each client as a share of its throughput at the smallest
// load. It is unknown in the open model, because clients do not wait for a share.
func efficiency(f *analysis.Findings, s *analysis.Step) (float64, bool) {
	of := yieldOf(f).each
	if least := of(lightest(f)); !f.Open() && least > 0 {
		return of(s) / least, true
	}
	return 0, false
}

func efficiencyChart(f *analysis.Findings) *figure.Figure {
	l := series(f, "efficiency", 2, func(s *analysis.Step) (float64, bool) { return efficiency(f, s) }, unit.Percent)
	c := against(f, "efficiency", "Efficiency against load", "efficiency", percentAxis("% of the share at the lightest load", 1), l)
	if c == nil || len(f.Curve) < 2 {
		return nil
	}
	return c
}

func errorChart(f *analysis.Findings) *figure.Figure {
	return against(f, "errors", "Failed operations against load", "failed", percentAxis("% of operations", 0),
		series(f, "errors", 1, func(s *analysis.Step) (float64, bool) { return s.ErrorRatio, true }, unit.Percent))
}

func cpuChart(f *analysis.Findings) *figure.Figure {
	lines := []figure.Line{
		series(f, "server", 1, func(s *analysis.Step) (float64, bool) { return known(s.ServerCPU) }, unit.Percent),
		series(f, "clients", 0, func(s *analysis.Step) (float64, bool) { return known(s.ClientCPU) }, unit.Percent),
		series(f, "server's I/O wait", 2, serverWait, unit.Percent),
	}
	lines[2].Dash = true
	return against(f, "cpu", "CPU against load", "CPU", percentAxis("% of the machine's cores", 1), lines...)
}

// serverWait returns the largest I/O wait of the server hosts.
func serverWait(s *analysis.Step) (float64, bool) {
	most, ok := 0.0, false
	for _, h := range s.Hosts {
		if h.Role != "client" && h.IOWait != nil {
			most, ok = max(most, *h.IOWait), true
		}
	}
	return most, ok
}

func latencyChart(f *analysis.Findings) *figure.Figure {
	return durationChart(f, "latency", "Latency", "From the start of an operation to its end",
		func(s *analysis.Step) *analysis.Quantiles { return s.Latency })
}

func firstByteChart(f *analysis.Findings) *figure.Figure {
	return durationChart(f, "firstbyte", "Time to first byte", "From the start of an operation to its first payload byte",
		func(s *analysis.Step) *analysis.Quantiles { return s.FirstByte })
}

func redirectChart(f *analysis.Findings) *figure.Figure {
	return durationChart(f, "redirect", "Time to redirect", "From the start of an operation to its redirection to a data server",
		func(s *analysis.Step) *analysis.Quantiles { return s.Redirect })
}

// quantileLine returns a line of one quantile of a duration.
func quantileLine(f *analysis.Findings, name string, color int, of func(*analysis.Step) *analysis.Quantiles) figure.Line {
	return series(f, name, color, func(s *analysis.Step) (float64, bool) {
		q := of(s)
		if q == nil {
			return 0, false
		}
		return map[string]float64{"p50": q.P50, "p90": q.P90, "p99": q.P99, "max": q.Max}[name], true
	}, unit.Seconds)
}

func durationChart(f *analysis.Findings, id, title, desc string, of func(*analysis.Step) *analysis.Quantiles) *figure.Figure {
	var lines []figure.Line
	for i, name := range []string{"p50", "p90", "p99", "max"} {
		lines = append(lines, quantileLine(f, name, i, of))
	}
	lines[3].Dash = true
	c := against(f, id, title+" against load", strings.ToLower(title), durationAxis, lines...)
	if c != nil {
		c.Desc = desc
	}
	return c
}

// durationAxis is logarithmic if the lines span more than a factor of eight.
func durationAxis(lines []figure.Line) figure.Axis {
	least, most := lowest(lines), highest(lines)
	by := figure.Seconds(most)
	if least*by.Factor < 0.005 {
		by = figure.Seconds(math.Sqrt(least * most)) // the unit of the geometric mean
	}
	if least > 0 && most/least > 8 {
		return figure.LogAxis(by.Unit, by, least, most)
	}
	return scaledTo(most, figure.Seconds)
}
