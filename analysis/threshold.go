package analysis

import (
	"fmt"
	"strings"

	"weir/internal/unit"
	"weir/scenario"
)

// A Judgment is one of the scenario's thresholds held against what was found.
type Judgment struct {
	Threshold string `json:"threshold"` // as the scenario has it
	Met       bool   `json:"met"`       // false also where nothing was measured that could be judged
	Detail    string `json:"detail"`    // the value that decided, with its step
}

// Missed tells whether any threshold was not met.
func (f *Findings) Missed() bool {
	for _, j := range f.Thresholds {
		if !j.Met {
			return true
		}
	}
	return false
}

// hold holds thresholds against the curve. A threshold without a number of
// clients must be met at every step; one that no step can answer is not met, so
// that a gate never opens by accident.
func (f *Findings) hold(thresholds []string) []Judgment {
	out := []Judgment{}
	for _, text := range thresholds {
		j := Judgment{Threshold: text}
		t, err := scenario.ParseThreshold(text)
		if err != nil {
			j.Detail = err.Error()
		} else {
			j.Met, j.Detail = f.holdOne(t)
		}
		out = append(out, j)
	}
	return out
}

func (f *Findings) holdOne(t scenario.Threshold) (met bool, detail string) {
	judged := 0
	for i := range f.Curve {
		s := &f.Curve[i]
		if t.Clients > 0 && s.Clients != t.Clients {
			continue
		}
		value, ok := s.value(t.Measure)
		if !ok {
			return false, fmt.Sprintf("%s was not measured with %s", t.Measure, f.at(s))
		}
		detail = fmt.Sprintf("%s with %s", inUnits(t.Measure, value), f.at(s))
		if !compare(value, t.Sign, t.Value) {
			return false, detail
		}
		judged++
	}
	switch {
	case judged == 0 && t.Clients > 0:
		return false, fmt.Sprintf("no step had %d clients", t.Clients)
	case judged == 0:
		return false, "no step was measured"
	case judged > 1:
		detail = fmt.Sprintf("at all %d steps", judged)
	}
	return true, detail
}

// value returns what a step gave, in base units; ok is false if it does not tell.
func (s *Step) value(measure string) (value float64, ok bool) {
	switch measure {
	case "throughput":
		return s.Throughput, true
	case "per_client":
		return s.PerClient, true
	case "rate":
		return s.Operations, true
	case "error_ratio":
		return s.ErrorRatio, s.Done+s.Errors > 0
	}
	what, p, _ := cutLast(measure, "_")
	q := s.Latency
	if what == "first_byte" {
		q = s.FirstByte
	}
	if q == nil || q.Count == 0 {
		return 0, false
	}
	value, ok = map[string]float64{"p50": q.P50, "p90": q.P90, "p99": q.P99, "p999": q.P999, "max": q.Max}[p]
	return value, ok
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

func compare(value float64, sign string, limit float64) bool {
	switch sign {
	case "<":
		return value < limit
	case "<=":
		return value <= limit
	case ">":
		return value > limit
	}
	return value >= limit
}

func inUnits(measure string, value float64) string {
	switch measure {
	case "throughput", "per_client":
		return unit.Bits(value)
	case "rate":
		return unit.Count(value) + "/s"
	case "error_ratio":
		return unit.Percent(value)
	}
	return unit.Seconds(value)
}
