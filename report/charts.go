package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"weir/analysis"
	"weir/internal/unit"
)

// curveCharts plots the steps against their load.
func curveCharts(f *analysis.Findings) []chart {
	if len(f.Curve) == 0 {
		return nil
	}
	all := []chart{yieldChart(f), perClientChart(f)}
	for _, c := range []*chart{latencyChart(f), firstByteChart(f), redirectChart(f), errorChart(f), cpuChart(f)} {
		if c != nil {
			all = append(all, *c)
		}
	}
	return all
}

// at writes a step's load: "64 clients".
func at(f *analysis.Findings, s *analysis.Step) string {
	name, of := load(f)
	if of(s) == 1 && name == "clients" {
		return "1 client"
	}
	return fmt.Sprintf("%g %s", of(s), name)
}

// stepAxis is the axis of all plots against load.
func stepAxis(f *analysis.Findings) axis {
	name, of := load(f)
	label := "virtual clients"
	if f.Source == analysis.FromTable {
		label = "clients"
	}
	if f.Open() {
		label = "planned " + name
	}
	var places []float64
	for i := range f.Curve {
		places = append(places, of(&f.Curve[i]))
	}
	return loadAxis(label, places)
}

// series makes a line of what of returns for each step; steps for which it
// is not known are left out. text writes a value.
func series(f *analysis.Findings, name string, color int, of func(*analysis.Step) (float64, bool), text func(float64) string) line {
	_, place := load(f)
	l := line{name: name, color: color, dots: true}
	for i := range f.Curve {
		s := &f.Curve[i]
		if y, ok := of(s); ok {
			l.points = append(l.points, point{x: place(s), y: y, note: fmt.Sprintf("%s: %s %s", at(f, s), name, text(y))})
		}
	}
	return l
}

// highest returns the largest value in lines, with their intervals.
func highest(lines []line) float64 {
	most := 0.0
	for _, l := range lines {
		for _, p := range l.points {
			most = max(most, p.y)
			if p.high != nil {
				most = max(most, *p.high)
			}
		}
	}
	return most
}

// lowest returns the smallest positive value in lines.
func lowest(lines []line) float64 {
	least := math.Inf(1)
	for _, l := range lines {
		for _, p := range l.points {
			if p.y > 0 {
				least = min(least, p.y)
			}
		}
	}
	if math.IsInf(least, 0) {
		return 0
	}
	return least
}

func yieldChart(f *analysis.Findings) chart {
	c := chart{id: "curve", title: "Throughput against load", x: stepAxis(f)}
	l := series(f, "throughput", 0, func(s *analysis.Step) (float64, bool) { return s.Throughput, true }, unit.Bits)
	for i := range f.Curve {
		l.points[i].low, l.points[i].high = f.Curve[i].ThroughputLow, f.Curve[i].ThroughputHigh
	}
	show := unit.Bits
	if f.Measure == analysis.Rate {
		show = func(x float64) string { return unit.Count(x) + " ops/s" }
		c.title = "Operations against load"
		l = series(f, "operations", 0, func(s *analysis.Step) (float64, bool) { return s.Operations, true }, show)
		for i := range f.Curve {
			l.points[i].low, l.points[i].high = f.Curve[i].OperationsLow, f.Curve[i].OperationsHigh
		}
	}
	l.name = "measured"
	c.lines = append([]line{l}, fitLines(f)...)
	most := highest(c.lines)
	by := bits(most)
	if f.Measure == analysis.Rate {
		by = decimal(most, " ops/s")
	}
	c.y = linearAxis(strings.TrimSpace(by.unit), by, most)
	best, first, last := 0, 0, len(l.points)-1
	for i := range l.points {
		if l.points[i].y > l.points[best].y {
			best = i
		}
	}
	var said []string
	for _, i := range slices.Compact([]int{first, best, last}) {
		said = append(said, fmt.Sprintf("%s with %s", show(l.points[i].y), at(f, &f.Curve[i])))
	}
	bare := "a step without a bar was held too briefly for one."
	if f.Source == analysis.FromTable {
		bare = "a point without a bar has fewer than three rows."
	}
	c.desc = strings.Join(said, ", ") + ". Bars are 95% intervals of the mean; " + bare
	c.marks = curveMarks(f)
	return c
}

// worthDrawing is the Akaike weight from which on the polynomial is drawn, too.
const worthDrawing = 0.01

// fitLines are the model that describes the curve best, and the polynomial of
// the fourth order where that is another one and describes it, too.
func fitLines(f *analysis.Findings) []line {
	var all []line
	for _, m := range models(f) {
		if m.Name != f.Fits.Best && (m.Name != "poly4" || m.Weight < worthDrawing) {
			continue
		}
		l := line{name: "fitted " + m.Name, color: 1 + len(all), dash: m.Name != f.Fits.Best}
		for _, p := range m.Drawn {
			l.points = append(l.points, point{x: p[0], y: max(0, p[1])})
		}
		all = append(all, l)
	}
	return all
}

// curveMarks marks the knee and the optimum, or the highest step.
func curveMarks(f *analysis.Findings) []mark {
	_, place := load(f)
	var all []mark
	add := func(name string, step, n int) {
		x, text := float64(n), where(f, step, n)
		for i := range f.Curve {
			if f.Open() && f.Curve[i].Step == step {
				x = place(&f.Curve[i])
			}
		}
		all = append(all, mark{x, name + ": " + text})
	}
	if k := f.Knee; k != nil {
		add("knee", k.Step, k.Clients)
	}
	if o := f.Optimum; o != nil && o.Inside {
		add("optimum", o.Step, o.Clients)
	} else if o != nil {
		add("highest", o.Step, o.Clients)
	}
	return all
}

func perClientChart(f *analysis.Findings) chart {
	c := chart{id: "client", title: "Share of each client", x: stepAxis(f)}
	of, show := func(s *analysis.Step) float64 { return s.PerClient }, unit.Bits
	if f.Measure == analysis.Rate {
		of, show = func(s *analysis.Step) float64 { return s.PerClientRate }, func(x float64) string { return unit.Count(x) + " ops/s" }
	}
	c.lines = []line{series(f, "each client", 0, func(s *analysis.Step) (float64, bool) { return of(s), true }, show)}
	most := highest(c.lines)
	by := bits(most)
	if f.Measure == analysis.Rate {
		by = decimal(most, " ops/s")
	}
	c.y = linearAxis(strings.TrimSpace(by.unit)+" each", by, most)
	first, last := &f.Curve[0], &f.Curve[len(f.Curve)-1]
	c.desc = fmt.Sprintf("With %s each gets %s, with %s each gets %s. The line is level while clients do not disturb each other, and falls as one over their number once the service is full.",
		at(f, first), show(of(first)), at(f, last), show(of(last)))
	return c
}

func errorChart(f *analysis.Findings) *chart {
	failed := false
	c := chart{id: "errors", title: "Failed operations against load", x: stepAxis(f)}
	c.lines = []line{series(f, "errors", 1, func(s *analysis.Step) (float64, bool) {
		failed = failed || s.Errors > 0
		return s.ErrorRatio, true
	}, unit.Percent)}
	if !failed {
		return nil
	}
	by := percent()
	c.y = linearAxis("% of operations", by, highest(c.lines))
	c.desc = fmt.Sprintf("Share of operations that failed, at most %s.", unit.Percent(highest(c.lines)))
	return &c
}

func cpuChart(f *analysis.Findings) *chart {
	c := chart{id: "cpu", title: "CPU against load", x: stepAxis(f)}
	known := func(p *float64) (float64, bool) {
		if p == nil {
			return 0, false
		}
		return *p, true
	}
	lines := []line{
		series(f, "server", 1, func(s *analysis.Step) (float64, bool) { return known(s.ServerCPU) }, unit.Percent),
		series(f, "clients", 0, func(s *analysis.Step) (float64, bool) { return known(s.ClientCPU) }, unit.Percent),
		series(f, "server's I/O wait", 2, func(s *analysis.Step) (float64, bool) { return serverWait(s) }, unit.Percent),
	}
	lines[2].dash = true
	var said []string
	for _, l := range lines {
		if len(l.points) > 0 {
			c.lines = append(c.lines, l)
			said = append(said, fmt.Sprintf("%s at most %s", l.name, unit.Percent(highest([]line{l}))))
		}
	}
	if len(c.lines) == 0 {
		return nil
	}
	c.y = linearAxis("% of the machine's cores", percent(), 1)
	c.desc = "Share of all cores of their machines that each side kept busy while the load was held: " + strings.Join(said, ", ") + "."
	return &c
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
