package scenario

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"weir/internal/document"
	"weir/internal/say"
	"weir/internal/unit"
)

// A Threshold is a condition on the result, such as "throughput > 8 Gbit/s at 2000 clients".
type Threshold struct {
	Measure Quantity
	Sign    string  // < <= > >=
	Value   float64 // in base units of the measure
	Clients int     // at the steps with so many clients; 0: at any step
	Rate    float64 // at the steps with so many arrivals per second; 0: at any step
	Optimum bool    // only at the optimum
	Stop    bool    // a step that breaks it ends the run
}

// Met reports whether a value meets the threshold. NaN does not meet it.
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

// Upper reports whether the threshold is an upper limit, which small values meet.
func (t Threshold) Upper() bool { return strings.HasPrefix(t.Sign, "<") }

// Holds reports whether the threshold applies to a step with so many clients and planned arrivals
// per second (0 in the closed model).
func (t Threshold) Holds(clients int, rate float64) bool {
	return (t.Clients == 0 || t.Clients == clients) && (t.Rate == 0 || t.Rate == rate)
}

// errOrStop is the error of a threshold that is known only after the run and therefore cannot end
// it.
var errOrStop = errors.New("is known only after the run; omit or stop")

// ParseThreshold reads "MEASURE SIGN VALUE", optionally followed by "at N clients", "at N/s" (open
// load) or "at the optimum", and by "or stop". The measure is a name from Quantities; the sign is
// <, <=, > or >=.
func ParseThreshold(text string) (Threshold, error) {
	t := Threshold{}
	rest := strings.TrimSpace(text)
	rest, t.Stop = strings.CutSuffix(rest, " or stop")
	before, where, found := strings.Cut(rest, " at ")
	measure, sign, value, ok := comparison(before)
	if !ok {
		return t, fmt.Errorf("%s; write it with spaces, as in throughput > 8 Gbit/s at 2000 clients", document.Quote(text))
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
		return t, fmt.Errorf("%s: this %w", document.Quote(text), errOrStop)
	}
	return t, nil
}

// comparison splits "MEASURE SIGN VALUE" into its parts.
func comparison(text string) (measure, sign, value string, ok bool) {
	fields := strings.Fields(text)
	if len(fields) < 3 || !slices.Contains([]string{"<", "<=", ">", ">="}, fields[1]) {
		return "", "", "", false
	}
	return fields[0], fields[1], strings.Join(fields[2:], " "), true
}

// at reads the step to which the threshold applies.
func (t *Threshold) at(text string) error {
	words := strings.Fields(text)
	if t.Measure.Whole {
		return fmt.Errorf("%s applies to the whole run; omit %s", t.Measure.Name, document.Quote("at "+text))
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
			err = fmt.Errorf("%s; use more than 0 arrivals per second", document.Quote(text))
		}
		t.Rate = float64(r)
	default:
		err = fmt.Errorf("%s; write for which step it holds, at 2000 clients, at 200/s or at the optimum", document.Quote(text))
	}
	return err
}

// A Boundary is a condition whose limit is sought along the curve, such as "latency_mean < 10 x
// single": the result is the loads at which it holds.
type Boundary struct {
	Measure Quantity
	Sign    string  // < <= > >=
	Value   float64 // in base units of the measure; a factor if Single is set
	Single  bool    // Value is multiplied by the value of the lightest step
}

// Efficiency is the name of a quantity: the throughput of one client as a share of its throughput
// at the lightest step. Only boundaries have it.
const Efficiency = "efficiency"

// DefaultBoundaries returns the boundaries to look for if a scenario contains no boundaries: a job
// that takes ten times as long as alone is the limit of the MONARC tests of 1999.
//
// If clients run jobs, the boundaries are conditions on jobs instead of operations.
func DefaultBoundaries(jobs bool) []string {
	if jobs {
		return []string{"job_mean < 10 x single", "cpu_efficiency >= 50%", "crash_ratio < 1%"}
	}
	return []string{"latency_mean < 10 x single", "error_ratio < 1%", "efficiency >= 50%"}
}

// ParseBoundary reads "MEASURE SIGN VALUE", or "MEASURE SIGN NUMBER x single", in which single is
// the value of the lightest step. The measure is efficiency, or a name from Quantities of a measure
// of a step.
func ParseBoundary(text string) (Boundary, error) {
	b := Boundary{}
	measure, sign, value, ok := comparison(text)
	if !ok {
		return b, fmt.Errorf("%s; write it with spaces, as in latency_mean < 10 x single or error_ratio < 1%%", document.Quote(text))
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
		return b, fmt.Errorf("%s; write a multiple of the lightest step's value, as in 10 x single", document.Quote(value))
	}
	b.Value, b.Single = x, true
	return b, nil
}

// A Unit is the unit in which a Quantity is counted.
type Unit int

// Units of quantities. The comments give the base unit of the values.
const (
	Speed     Unit = iota // bytes per second
	Frequency             // per second
	Share                 // of one
	Duration              // seconds
	Clients               // a number of clients
	Jobs                  // jobs' worth of CPU
	Number                // dimensionless: a ratio, such as the largest share over the mean
)

// A Quantity is a figure of a result that a threshold or a boundary refers to by name.
type Quantity struct {
	Name  string
	Unit  Unit
	Whole bool // of the whole run; the other quantities are measured at each step
	After bool // known only after the run, so that it cannot end the run
}

// Quantities returns all quantities by their full names. The names of quantities of a step are keys
// of analysis.Step, or a duration and a statistic of its distribution.
func Quantities() []Quantity {
	out := []Quantity{
		{Name: "throughput", Unit: Speed}, {Name: "per_client", Unit: Speed},
		{Name: "rate", Unit: Frequency}, {Name: "per_client_rate", Unit: Frequency},
		{Name: "error_ratio", Unit: Share},
		{Name: "missed_ratio", Unit: Share},   // open load: share of all arrivals that were not started
		{Name: "wait_ratio", Unit: Share},     // number of times that the service replied "ask again", per operation
		{Name: "cpu_efficiency", Unit: Share}, // of jobs: computing time as a share of the total run time
		{Name: "cluster_throughput", Unit: Jobs}, {Name: "events_rate", Unit: Frequency},
		{Name: "job_failure_ratio", Unit: Share}, {Name: "crash_ratio", Unit: Share},
		{Name: "server_cpu", Unit: Share, After: true}, {Name: "client_cpu", Unit: Share, After: true},
		{Name: "imbalance", Unit: Number, After: true}, // several servers that share the load: the largest share over the mean
	}
	for _, of := range durations() {
		for _, p := range quantiles() {
			out = append(out, Quantity{Name: of + "_" + p, Unit: Duration})
		}
	}
	for _, at := range []string{"optimum", "knee", "cheapest", "maximum_power"} {
		out = append(out, Quantity{at + ".clients", Clients, true, true}, Quantity{at + ".throughput", Speed, true, true},
			Quantity{at + ".rate", Frequency, true, true})
	}
	return out
}

func durations() []string {
	return []string{"latency", "first_byte", "connect", "tls_handshake", "login", "redirect", "job"}
}
func quantiles() []string { return []string{"mean", "p50", "p90", "p95", "p99", "p999", "max"} }

// findQuantity returns the quantity of a name. p50, p90, p95, p99 and p999 are short for the quantiles
// of the latency. Its error contains the correct name or the list of names.
func findQuantity(name string) (Quantity, error) {
	full := name
	if slices.Contains([]string{"p50", "p90", "p95", "p99", "p999"}, name) {
		full = "latency_" + name
	}
	all := Quantities()
	if i := slices.IndexFunc(all, func(q Quantity) bool { return q.Name == full }); i >= 0 {
		return all[i], nil
	}
	hint := document.Meant(name, quantityNames())
	if say.Nearest(name, quantityNames()) == "" { // all of them are too many to read
		hint = fmt.Sprintf("; use one of throughput, per_client, rate, per_client_rate, error_ratio, missed_ratio, wait_ratio, cpu_efficiency, "+
			"cluster_throughput, events_rate, job_failure_ratio, crash_ratio, server_cpu, client_cpu, imbalance; %s with %s; "+
			"optimum., knee., cheapest. or maximum_power. with clients, throughput or rate", oneOf(durations(), "_"), oneOf(quantiles(), ""))
	}
	return Quantity{}, fmt.Errorf("unknown measure %s%s", document.Quote(name), hint)
}

func oneOf(words []string, end string) string {
	return strings.Join(words[:len(words)-1], end+", ") + end + " or " + words[len(words)-1] + end
}

// quantityNames returns the names to suggest, which include the short names of the quantiles of the
// latency.
func quantityNames() []string {
	var out []string
	for _, q := range Quantities() {
		out = append(out, q.Name)
	}
	return append(out, "p50", "p90", "p95", "p99", "p999")
}

// Parse reads a value of the quantity, with its unit, and returns it in base
// units.
func (q Quantity) Parse(text string) (value float64, err error) {
	switch q.Unit {
	case Speed:
		b, err := unit.ParseBitrate(text)
		return float64(b) / 8, err
	case Frequency:
		r, err := unit.ParseRate(text)
		return float64(r), err
	case Share:
		f, err := unit.ParseFraction(text)
		return float64(f), err
	case Clients:
		return plainNumber(text, "client", "a number of clients is a number such as 2000")
	case Jobs:
		return plainNumber(text, "job", "a cluster throughput is a number of jobs such as 45")
	case Number:
		return plainNumber(text, "", "an imbalance is a number such as 1.2: the largest share over the mean")
	}
	d, err := unit.ParseDuration(text)
	return float64(d) / 1e9, err
}

// plainNumber reads a number. The name of the counted thing may follow it, in the singular or
// plural.
func plainNumber(text, of, want string) (float64, error) {
	digits := text
	if of != "" {
		digits = strings.TrimSuffix(strings.TrimSuffix(text, " "+of+"s"), " "+of)
	}
	x, err := strconv.ParseFloat(digits, 64)
	if err != nil || !(x >= 0 && x <= math.MaxInt32) {
		return 0, fmt.Errorf("%s: %s", document.Quote(text), want)
	}
	return x, nil
}

// Format prints a value of the quantity in its unit.
func (q Quantity) Format(value float64) string {
	switch q.Unit {
	case Speed:
		return unit.Bits(value)
	case Frequency:
		return unit.Count(value) + "/s"
	case Share:
		return unit.Percent(value)
	case Clients:
		if value == 1 {
			return "1 client"
		}
		return strconv.FormatFloat(value, 'f', -1, 64) + " clients"
	case Jobs:
		return unit.Significant(value) + " jobs"
	case Number:
		return unit.Significant(value)
	}
	return unit.Seconds(value)
}
