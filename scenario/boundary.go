package scenario

import (
	"fmt"
	"strconv"
	"strings"
)

// A Boundary is a condition that is sought along the curve, such as
// "latency_mean < 10 x single": the loads at which it holds.
type Boundary struct {
	Measure Quantity
	Sign    string  // < <= > >=
	Value   float64 // in base units of the measure; a factor where Single
	Single  bool    // Value times what the lightest step gave
}

// Efficiency is the quantity of what one client gets, as a share of what it got
// at the lightest step. Only boundaries have it.
const Efficiency = "efficiency"

// DefaultBoundaries are looked for where a scenario asks for none: a job that
// takes ten times as long as alone is the limit of the MONARC tests of 1999.
//
// Where clients run jobs, jobs are what is looked at instead of operations.
func DefaultBoundaries(jobs bool) []string {
	if jobs {
		return []string{"job_mean < 10 x single", "cpu_efficiency >= 50%", "crash_ratio < 1%"}
	}
	return []string{"latency_mean < 10 x single", "error_ratio < 1%", "efficiency >= 50%"}
}

// ParseBoundary reads "MEASURE SIGN VALUE", or "MEASURE SIGN NUMBER x single",
// where single is what the lightest step gave. The measures are those of
// Quantities that are of a step, and efficiency.
func ParseBoundary(text string) (Boundary, error) {
	b := Boundary{}
	measure, sign, value, ok := comparison(text)
	if !ok {
		return b, fmt.Errorf("%s: write it with spaces, as in latency_mean < 10 x single or error_ratio < 1%%", quote(text))
	}
	b.Sign = sign
	if measure == Efficiency {
		b.Measure = Quantity{Name: Efficiency, Unit: Share}
	} else {
		var err error
		if b.Measure, err = findQuantity(measure); err != nil {
			return b, err
		}
	}
	if b.Measure.Whole {
		return b, fmt.Errorf("%s is of the whole run: a boundary is of what a step gave, such as latency_mean or error_ratio", b.Measure.Name)
	}
	number, single := strings.CutSuffix(value, "single")
	if !single {
		var err error
		b.Value, err = b.Measure.Parse(value)
		return b, err
	}
	number = strings.TrimSpace(number)
	factor, hasSign := strings.CutSuffix(number, "x")
	x, err := strconv.ParseFloat(strings.TrimSpace(factor), 64)
	if err != nil || !hasSign || !(x > 0) || x > 1e9 {
		return b, fmt.Errorf("%s: write how many times what the lightest step gave, as in 10 x single", quote(value))
	}
	b.Value, b.Single = x, true
	return b, nil
}
