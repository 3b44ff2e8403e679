package report

import (
	"math"
	"slices"
	"strconv"
)

// A chart is a plot with its text. It is drawn by svg.
type chart struct {
	id, title string
	desc      string // what the plot shows, in words
	stamp     string // whether the run can be believed
	x, y      axis
	lines     []line
	columns   []column
	zones     []zone // shaded stretches of the x axis
	marks     []mark
}

// An axis spans min to max in base units; logarithmic if base is above 1.
type axis struct {
	label    string // with unit
	min, max float64
	base     float64
	ticks    []float64
	text     func(float64) string
}

// A line is drawn through points; dots marks each of them.
type line struct {
	name   string
	color  int // of the palette, from 0
	dash   bool
	dots   bool
	points []point
}

// A point may have an interval and a note that shows when it is pointed at.
type point struct {
	x, y      float64
	low, high *float64
	note      string
}

// A zone is a stretch of the x axis that belongs together, with a name.
type zone struct {
	from, to float64
	name     string
}

// A mark is a named vertical line.
type mark struct {
	x    float64
	name string
}

// at returns where x lies on the axis, 0 to 1.
func (a *axis) at(x float64) float64 {
	if a.base > 1 {
		return share01(math.Log(max(x, a.min))-math.Log(a.min), math.Log(a.max)-math.Log(a.min))
	}
	return share01(x-a.min, a.max-a.min)
}

func share01(part, whole float64) float64 {
	if whole <= 0 || math.IsNaN(part) || math.IsInf(part, 0) {
		return 0.5
	}
	return min(1, max(0, part/whole))
}

// loadAxis is the axis that steps lie on: logarithmic if they span more than
// a factor of ten and none is at zero. Its ticks are the steps themselves.
func loadAxis(label string, at []float64) axis {
	a := axis{label: label, text: tick}
	if len(at) == 0 {
		a.max = 1
		return a
	}
	steps := slices.Compact(slices.Sorted(slices.Values(at)))
	a.min, a.max = steps[0], steps[len(steps)-1]
	if a.min > 0 && a.max/a.min > 10 {
		a.base = 2
	} else {
		a.min = min(0, a.min)
	}
	if a.max <= a.min {
		a.min, a.max = a.min-0.5, a.max+0.5
	}
	const least = 0.07                     // of the axis between two ticks
	for i := len(steps) - 1; i >= 0; i-- { // the last step is always named
		if n := len(a.ticks); n == 0 || a.at(a.ticks[n-1])-a.at(steps[i]) >= least {
			a.ticks = append(a.ticks, steps[i])
		}
	}
	return a
}

// linearAxis begins at zero and ends at a nice number above most.
func linearAxis(label string, s scale, most float64) axis {
	a := axis{label: label, text: func(x float64) string { return tick(x * s.factor) }}
	if most*s.factor < 1e-9 || most > 1e30 || math.IsNaN(most) {
		most = 1 / s.factor
	}
	step := nice(most*s.factor/5) / s.factor
	n := int(math.Ceil(most/step - 1e-9))
	a.max = step * float64(n)
	for i := range n + 1 {
		a.ticks = append(a.ticks, step*float64(i))
	}
	return a
}

// logAxis spans least to most, with ticks at powers of ten, and at 2 and 5
// times them if there are few of those.
func logAxis(label string, s scale, least, most float64) axis {
	a := axis{label: label, base: 10, text: func(x float64) string { return tick(x * s.factor) }}
	if least <= 0 || most <= 0 {
		least, most = 1e-3, 1
	}
	from, to := math.Floor(math.Log10(least*s.factor)), math.Ceil(math.Log10(most*s.factor))
	factors := []float64{1}
	if to-from <= 2 {
		factors = []float64{1, 2, 5}
	}
	var all []float64
	for e := from; e <= to; e++ {
		for _, f := range factors {
			all = append(all, f*math.Pow(10, e)/s.factor)
		}
	}
	first, last := 0, len(all)-1
	for first+1 < last && all[first+1] <= least {
		first++
	}
	for last-1 > first && all[last-1] >= most {
		last--
	}
	a.ticks = all[first : last+1]
	a.min, a.max = a.ticks[0], a.ticks[len(a.ticks)-1]
	return a
}

// tick writes the number at a tick, without an exponent where that is short.
func tick(x float64) string {
	short := strconv.FormatFloat(x, 'g', 5, 64)
	if x, err := strconv.ParseFloat(short, 64); err == nil && math.Abs(x) < 1e7 {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return short
}

// timeAxis spans 0 to most seconds.
func timeAxis(most float64) axis {
	unit, s := "seconds", scale{1, "s"}
	switch {
	case most > 3*3600:
		unit, s = "hours", scale{1.0 / 3600, "h"}
	case most > 300:
		unit, s = "minutes", scale{1.0 / 60, "min"}
	}
	a := linearAxis("time since the start ("+unit+")", s, most)
	a.max = max(most, 1e-9) // no empty stretch at the end
	a.ticks = slices.DeleteFunc(a.ticks, func(x float64) bool { return x > a.max })
	return a
}

// nice rounds x up to 1, 2 or 5 times a power of ten.
func nice(x float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, f := range []float64{1, 2, 5} {
		if f*power >= x*(1-1e-9) {
			return f * power
		}
	}
	return 10 * power
}

// mostPoints is how many points one line keeps.
const mostPoints = 600

// thin keeps at most mostPoints points of a time series: of each stretch the
// lowest and the highest, in their order, so that no peak is lost.
func thin(points []point) []point {
	if len(points) <= mostPoints {
		return points
	}
	const stretches = mostPoints / 2
	out := make([]point, 0, mostPoints)
	for i := range stretches {
		part := points[i*len(points)/stretches : (i+1)*len(points)/stretches]
		low, high := 0, 0
		for k := range part {
			if part[k].y < part[low].y {
				low = k
			}
			if part[k].y > part[high].y {
				high = k
			}
		}
		out = append(out, part[min(low, high)])
		if low != high {
			out = append(out, part[max(low, high)])
		}
	}
	return out
}
