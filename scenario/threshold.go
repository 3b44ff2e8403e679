package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weir/internal/unit"
)

// A Threshold is what a result must meet, such as "throughput > 8 Gbit/s at
// 2000 clients".
type Threshold struct {
	Measure Quantity
	Sign    string  // < <= > >=
	Value   float64 // in base units of the measure
	Clients int     // at the steps with so many clients; 0: at any
	Rate    float64 // at the steps with so many arrivals per second; 0: at any
	Optimum bool    // at the step that gives most, only
	Stop    bool    // a step that breaks it ends the run
}

// Met says whether a value meets the threshold. NaN does not.
func (t Threshold) Met(value float64) bool {
	switch t.Sign {
	case "<":
		return value < t.Value
	case "<=":
		return value <= t.Value
	case ">":
		return value > t.Value
	}
	return value >= t.Value
}

// Upper says whether the threshold is a limit that small values meet.
func (t Threshold) Upper() bool { return strings.HasPrefix(t.Sign, "<") }

// Holds says whether the threshold is for a step with so many clients and
// planned arrivals per second (0 in the closed model).
func (t Threshold) Holds(clients int, rate float64) bool {
	return (t.Clients == 0 || t.Clients == clients) && (t.Rate == 0 || t.Rate == rate)
}

// errOrStop explains what cannot end a run.
var errOrStop = errors.New("is known only after the run; omit or stop")

// ParseThreshold reads "MEASURE SIGN VALUE", optionally followed by "at N
// clients", "at N/s" (open load) or "at the optimum", and by "or stop". The
// measures are those of Quantities; the sign is <, <=, > or >=.
func ParseThreshold(text string) (Threshold, error) {
	t := Threshold{}
	rest := strings.TrimSpace(text)
	rest, t.Stop = strings.CutSuffix(rest, " or stop")
	before, where, found := strings.Cut(rest, " at ")
	measure, sign, value, ok := comparison(before)
	if !ok {
		return t, fmt.Errorf("%s; write it with spaces, as in throughput > 8 Gbit/s at 2000 clients", quote(text))
	}
	var err error
	if t.Measure, err = findQuantity(measure); err != nil {
		return t, err
	}
	t.Sign = sign
	if t.Value, err = t.Measure.Parse(value); err != nil {
		return t, err
	}
	if found {
		if err := t.at(where); err != nil {
			return t, err
		}
	}
	if t.Stop && (t.Measure.After || t.Optimum) {
		return t, fmt.Errorf("%s: this %w", quote(text), errOrStop)
	}
	return t, nil
}

// comparison takes "MEASURE SIGN VALUE" apart.
func comparison(text string) (measure, sign, value string, ok bool) {
	fields := strings.Fields(text)
	if len(fields) < 3 || !slices.Contains([]string{"<", "<=", ">", ">="}, fields[1]) {
		return "", "", "", false
	}
	return fields[0], fields[1], strings.Join(fields[2:], " "), true
}

// at reads for which step the threshold is.
func (t *Threshold) at(text string) error {
	words := strings.Fields(text)
	if t.Measure.Whole {
		return fmt.Errorf("%s applies to the whole run; omit %s", t.Measure.Name, quote("at "+text))
	}
	var err error
	switch {
	case slices.Equal(words, []string{"the", "optimum"}):
		t.Optimum = true
	case len(words) == 2 && (words[1] == "clients" || words[1] == "client"):
		t.Clients, err = count(words[0])
	case len(words) == 1 && strings.ContainsRune(words[0], '/'):
		var r unit.Rate
		if r, err = unit.ParseRate(words[0]); err == nil && !(r > 0) {
			err = fmt.Errorf("%s; use more than 0 arrivals per second", quote(text))
		}
		t.Rate = float64(r)
	default:
		err = fmt.Errorf("%s; write for which step it holds, at 2000 clients, at 200/s or at the optimum", quote(text))
	}
	return err
}

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
		return b, fmt.Errorf("%s; write it with spaces, as in latency_mean < 10 x single or error_ratio < 1%%", quote(text))
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
		return b, fmt.Errorf("%s applies to the whole run; use a measure of a step, such as latency_mean or error_ratio", b.Measure.Name)
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
		return b, fmt.Errorf("%s; write a multiple of the lightest step's value, as in 10 x single", quote(value))
	}
	b.Value, b.Single = x, true
	return b, nil
}
