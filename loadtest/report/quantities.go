package report

import (
	"strings"

	"weir/loadtest/report/figure"
)

// scaled returns an axis from zero to the highest value of lines, labeled with a suitable unit.
func scaled(lines []figure.Line, by func(most float64) figure.Scale) figure.Axis {
	return scaledTo(highest(lines), by)
}

func scaledTo(most float64, by func(most float64) figure.Scale) figure.Axis {
	s := by(most)
	return figure.LinearAxis(strings.TrimSpace(s.Unit), s, most)
}

// decimal scales with prefixes of a unit.
func decimal(what string) func(most float64) figure.Scale {
	return func(most float64) figure.Scale { return figure.Decimal(most, what) }
}

// bitsAxis returns an axis for bytes per second.
func bitsAxis(lines []figure.Line) figure.Axis { return scaled(lines, figure.Bits) }

// percentAxis returns an axis of shares up to the highest value of lines, and at least up to least.
func percentAxis(label string, least float64) func(lines []figure.Line) figure.Axis {
	return func(lines []figure.Line) figure.Axis {
		return figure.LinearAxis(label, figure.Percent(), max(least, highest(lines)))
	}
}
