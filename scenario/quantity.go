package scenario

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"weir/internal/unit"
)

// A Unit is what a Quantity is counted in.
type Unit int

// Units of quantities, and what their values are in base units.
const (
	Speed     Unit = iota // bytes per second
	Frequency             // per second
	Share                 // of one
	Duration              // seconds
	Clients               // a number of clients
	Jobs                  // jobs' worth of CPU
	Number                // of nothing: how many times as much
)

// A Quantity is a figure of a result that can be asked for by name, in a
// threshold or in a boundary condition.
type Quantity struct {
	Name  string
	Unit  Unit
	Whole bool // of the whole run; the others are of a step
	After bool // known only after the run, so that it can not end one
}

// Quantities returns all quantities by their full names. Those of a step are
// keys of analysis.Step, or a duration and which one of its distribution.
func Quantities() []Quantity {
	out := []Quantity{
		{Name: "throughput", Unit: Speed}, {Name: "per_client", Unit: Speed},
		{Name: "rate", Unit: Frequency}, {Name: "per_client_rate", Unit: Frequency},
		{Name: "error_ratio", Unit: Share},
		{Name: "missed_ratio", Unit: Share},   // open load: arrivals that never started, of all
		{Name: "wait_ratio", Unit: Share},     // times that the service said "ask again", per operation
		{Name: "cpu_efficiency", Unit: Share}, // of jobs: time for which they computed, of the time for which they ran
		{Name: "cluster_throughput", Unit: Jobs}, {Name: "events_rate", Unit: Frequency},
		{Name: "job_failure_ratio", Unit: Share}, {Name: "crash_ratio", Unit: Share},
		{Name: "server_cpu", Unit: Share, After: true}, {Name: "client_cpu", Unit: Share, After: true},
		{Name: "imbalance", Unit: Number, After: true}, // of several servers that share the load: the largest share over the mean
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
	return []string{"latency", "first_byte", "connect", "login", "redirect", "job"}
}
func quantiles() []string { return []string{"mean", "p50", "p90", "p99", "p999", "max"} }

// findQuantity returns the quantity of a name. p50, p90, p99 and p999 are
// short for those of the latency. Its error tells what would be right.
func findQuantity(name string) (Quantity, error) {
	full := name
	if slices.Contains([]string{"p50", "p90", "p99", "p999"}, name) {
		full = "latency_" + name
	}
	all := Quantities()
	if i := slices.IndexFunc(all, func(q Quantity) bool { return q.Name == full }); i >= 0 {
		return all[i], nil
	}
	told := meant(name, quantityNames())
	if strings.HasPrefix(told, ": use") { // all of them are too many to read
		told = fmt.Sprintf("; use one of throughput, per_client, rate, per_client_rate, error_ratio, missed_ratio, wait_ratio, cpu_efficiency, cluster_throughput, "+
			"events_rate, job_failure_ratio, crash_ratio, server_cpu, client_cpu, imbalance; %s with %s; "+
			"optimum., knee., cheapest. or maximum_power. with clients, throughput or rate", oneOf(durations(), "_"), oneOf(quantiles(), ""))
	}
	return Quantity{}, fmt.Errorf("unknown measure %s%s", quote(name), told)
}

func oneOf(words []string, end string) string {
	return strings.Join(words[:len(words)-1], end+", ") + end + " or " + words[len(words)-1] + end
}

// quantityNames are the names to suggest: the latency's quantiles in short, too.
func quantityNames() []string {
	var out []string
	for _, q := range Quantities() {
		out = append(out, q.Name)
	}
	return append(out, "p50", "p90", "p99", "p999")
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

// plainNumber reads a number that the name of what is counted may follow.
func plainNumber(text, of, want string) (float64, error) {
	digits := text
	if of != "" {
		digits = strings.TrimSuffix(strings.TrimSuffix(text, " "+of+"s"), " "+of)
	}
	x, err := strconv.ParseFloat(digits, 64)
	if err != nil || !(x >= 0 && x <= math.MaxInt32) {
		return 0, fmt.Errorf("%s: %s", quote(text), want)
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
