package figure

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"weir/internal/unit"
)

// An Axis spans Min to Max in base units. A value is shown as its product with Factor, in Unit; on
// an axis of Duration, as seconds in the unit that suits the value.
type Axis struct {
	Name     string    `json:"name,omitempty"` // the quantity, without a unit: set if Label is only a unit
	Label    string    `json:"label"`          // with unit
	Unit     string    `json:"unit"`
	Factor   float64   `json:"factor"`
	Duration bool      `json:"duration,omitempty"`
	Min      float64   `json:"min"`
	Max      float64   `json:"max"`
	Base     float64   `json:"base,omitempty"` // above 1: logarithmic
	Ticks    []float64 `json:"ticks"`
}

// Caption returns the full name of the axis, as in "throughput (Gbit/s)".
func (a *Axis) Caption() string {
	if a.Name == "" || strings.HasPrefix(a.Label, a.Name) {
		return a.Label
	}
	if a.Label == "" {
		return a.Name
	}
	return a.Name + " (" + strings.TrimSuffix(a.Label, " each") + ")"
}

// Text formats the number at a tick, without its unit unless the axis is an axis of Duration.
func (a *Axis) Text(x float64) string {
	if a.Duration {
		return unit.Seconds(x)
	}
	return tick(x * a.Factor)
}

// At returns the position of x on the axis, 0 to 1.
func (a *Axis) At(x float64) float64 {
	if a.Base > 1 {
		return share01(math.Log(max(x, a.Min))-math.Log(a.Min), math.Log(a.Max)-math.Log(a.Min))
	}
	return share01(x-a.Min, a.Max-a.Min)
}

func share01(part, whole float64) float64 {
	if whole <= 0 || math.IsNaN(part) || math.IsInf(part, 0) {
		return 0.5
	}
	return min(1, max(0, part/whole))
}

// LoadAxis returns the axis of the steps: it is logarithmic if the steps span more than a factor of
// ten, no step is at zero, and half of the steps are close to the lowest, as doubled steps are. Its
// ticks are the steps themselves.
func LoadAxis(label, of string, at []float64) Axis {
	a := Axis{Label: label, Unit: of, Factor: 1}
	if len(at) == 0 {
		a.Max = 1
		return a
	}
	steps := slices.Compact(slices.Sorted(slices.Values(at)))
	a.Min, a.Max = steps[0], steps[len(steps)-1]
	if a.Min > 0 && a.Max/a.Min > 10 && steps[(len(steps)-1)/2] < (a.Min+a.Max)*0.3 {
		a.Base = 2
	} else {
		a.Min = min(0, a.Min)
	}
	if len(steps) == 1 { // in the middle, not at the edge
		a.Max *= 2
	}
	if a.Max <= a.Min {
		a.Min, a.Max = a.Min-0.5, a.Max+0.5
	}
	const least = 0.07                     // of the axis between two ticks
	for i := len(steps) - 1; i >= 0; i-- { // the last step is always named
		if n := len(a.Ticks); n == 0 || a.At(a.Ticks[n-1])-a.At(steps[i]) >= least {
			a.Ticks = append(a.Ticks, steps[i])
		}
	}
	slices.Reverse(a.Ticks)
	return a
}

// LinearAxis returns an axis that begins at zero and ends at a round number above most.
func LinearAxis(label string, s Scale, most float64) Axis {
	a := Axis{Label: label, Unit: s.unit(), Factor: s.Factor}
	if most*s.Factor < 1e-9 || most > 1e30 || math.IsNaN(most) {
		most = 1 / s.Factor
	}
	step := Nice(most*s.Factor/5) / s.Factor
	n := int(math.Ceil(most/step - 1e-9))
	a.Max = step * float64(n)
	for i := range n + 1 {
		a.Ticks = append(a.Ticks, step*float64(i))
	}
	return a
}

// LogAxis spans least to most, with ticks at powers of ten, and also at 2 and 5 times these powers
// if there are few of them.
func LogAxis(label string, s Scale, least, most float64) Axis {
	a := Axis{Label: label, Base: 10, Unit: s.unit(), Factor: s.Factor}
	if least <= 0 || most <= 0 {
		least, most = 1e-3, 1
	}
	from, to := math.Floor(math.Log10(least*s.Factor)), math.Ceil(math.Log10(most*s.Factor))
	factors := []float64{1}
	if to-from <= 2 {
		factors = []float64{1, 2, 5}
	}
	var all []float64
	for e := from; e <= to; e++ {
		for _, f := range factors {
			all = append(all, f*math.Pow(10, e)/s.Factor)
		}
	}
	first, last := 0, len(all)-1
	for first+1 < last && all[first+1] <= least {
		first++
	}
	for last-1 > first && all[last-1] >= most {
		last--
	}
	a.Ticks = all[first : last+1]
	a.Min, a.Max = a.Ticks[0], a.Ticks[len(a.Ticks)-1]
	return a
}

// tick formats the number at a tick, without an exponent if that is short.
func tick(x float64) string {
	short := strconv.FormatFloat(x, 'g', 5, 64)
	if x, err := strconv.ParseFloat(short, 64); err == nil && math.Abs(x) < 1e7 {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return short
}

// TimeAxis returns an axis from 0 to most seconds.
func TimeAxis(most float64) Axis {
	unit, s := "seconds", Scale{1, "s"}
	switch {
	case most > 3*3600:
		unit, s = "hours", Scale{1.0 / 3600, "h"}
	case most > 300:
		unit, s = "minutes", Scale{1.0 / 60, "min"}
	}
	a := LinearAxis("time since the start ("+unit+")", s, most)
	a.Max = max(most, 1e-9) // no empty stretch at the end
	a.Ticks = slices.DeleteFunc(a.Ticks, func(x float64) bool { return x > a.Max })
	return a
}

// Nice rounds x up to 1, 2 or 5 times a power of ten.
func Nice(x float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, f := range []float64{1, 2, 5} {
		if f*power >= x*(1-1e-9) {
			return f * power
		}
	}
	return 10 * power
}
