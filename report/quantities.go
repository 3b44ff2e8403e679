package report

import (
	"strings"

	"weir/analysis"
	"weir/internal/unit"
	"weir/report/figure"
)

// scaled is an axis from zero to the most of lines, labeled with the unit that
// suits it.
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

// bitsAxis is of bytes per second.
func bitsAxis(lines []figure.Line) figure.Axis { return scaled(lines, figure.Bits) }

// rateAxis is of operations per second.
func rateAxis(lines []figure.Line) figure.Axis { return scaled(lines, decimal(" ops/s")) }

// percentAxis shows shares up to the most of lines, and up to least in any case.
func percentAxis(label string, least float64) func(lines []figure.Line) figure.Axis {
	return func(lines []figure.Line) figure.Axis {
		return figure.LinearAxis(label, figure.Percent(), max(least, highest(lines)))
	}
}

// A yield is what steps are compared by.
type yield struct {
	name string                                    // in lower case
	text func(x float64) string                    // with its unit
	axis func([]figure.Line) figure.Axis           // from zero
	of   func(*analysis.Step) float64              // of all clients
	each func(*analysis.Step) float64              // of one
	ends func(*analysis.Step) (low, high *float64) // of the 95% interval of of; nil: not known
}

// yieldOf is throughput, or operations where nothing is moved.
func yieldOf(f *analysis.Findings) yield {
	if f.Measure == analysis.Rate {
		return yield{
			name: rateName(f), text: func(x float64) string { return unit.Count(x) + " " + things(f) }, axis: func(lines []figure.Line) figure.Axis { return scaled(lines, decimal(" "+things(f))) },
			of: func(s *analysis.Step) float64 { return s.Operations }, each: func(s *analysis.Step) float64 { return s.PerClientRate },
			ends: func(s *analysis.Step) (low, high *float64) { return s.OperationsLow, s.OperationsHigh },
		}
	}
	return yield{
		name: "throughput", text: unit.Bits, axis: bitsAxis,
		of: func(s *analysis.Step) float64 { return s.Throughput }, each: func(s *analysis.Step) float64 { return s.PerClient },
		ends: func(s *analysis.Step) (low, high *float64) { return s.ThroughputLow, s.ThroughputHigh },
	}
}

// rateName is what is counted where nothing is moved.
func rateName(f *analysis.Findings) string {
	if f.OfJobs() {
		return "jobs"
	}
	return "operations"
}

// perSecond writes a rate of things that their name is known of.
func perSecond(x float64) string { return unit.Count(x) + "/s" }

// known is what p points to, if that is known.
func known(p *float64) (x float64, ok bool) {
	if p == nil {
		return 0, false
	}
	return *p, true
}
