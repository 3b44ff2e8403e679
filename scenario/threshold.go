package scenario

import (
	"fmt"
	"slices"
	"strings"

	"weir/internal/unit"
)

// A Threshold is what a result must meet, such as "throughput > 8 Gbit/s at
// 2000 clients".
type Threshold struct {
	Measure string  // one of those that ParseThreshold knows
	Sign    string  // < <= > >=
	Value   float64 // in base units: bytes or operations per second, seconds, a share
	Clients int     // 0: at every step
}

func measures() []string {
	out := []string{"throughput", "per_client", "rate", "error_ratio"}
	for _, what := range []string{"latency", "first_byte"} {
		for _, p := range []string{"p50", "p90", "p99", "p999", "max"} {
			out = append(out, what+"_"+p)
		}
	}
	return out
}

// ParseThreshold reads "MEASURE SIGN VALUE" or "MEASURE SIGN VALUE at N
// clients". Measures are throughput and per_client (a speed), rate
// (operations per time), error_ratio (a share), and latency_ and first_byte_
// with p50, p90, p99, p999 or max (a duration).
func ParseThreshold(text string) (Threshold, error) {
	t := Threshold{}
	before, after, found := strings.Cut(text, " at ")
	fields := strings.Fields(before)
	i := slices.IndexFunc(fields, func(f string) bool { return slices.Contains([]string{"<", "<=", ">", ">="}, f) })
	if i != 1 || len(fields) < 3 {
		return t, fmt.Errorf("%s: write it with spaces, as in throughput > 8 Gbit/s at 2000 clients", quote(text))
	}
	t.Measure, t.Sign = fields[0], fields[1]
	if !slices.Contains(measures(), t.Measure) {
		return t, fmt.Errorf("unknown measure %s%s", quote(t.Measure), meant(t.Measure, measures()))
	}
	var err error
	if t.Value, err = threshold(t.Measure, strings.Join(fields[2:], " ")); err != nil {
		return t, err
	}
	if !found {
		return t, nil
	}
	words := strings.Fields(after)
	if len(words) != 2 || words[1] != "clients" && words[1] != "client" {
		return t, fmt.Errorf("%s: write for which step it holds, as in at 2000 clients", quote(after))
	}
	t.Clients, err = count(words[0])
	return t, err
}

func threshold(measure, text string) (float64, error) {
	switch measure {
	case "throughput", "per_client":
		b, err := unit.ParseBitrate(text)
		return float64(b) / 8, err
	case "rate":
		r, err := unit.ParseRate(text)
		return float64(r), err
	case "error_ratio":
		f, err := unit.ParseFraction(text)
		return float64(f), err
	}
	d, err := unit.ParseDuration(text)
	return float64(d) / 1e9, err
}
