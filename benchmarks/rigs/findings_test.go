package rigs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// findings has the fields of findings.json that are used here. It is a type of its own, since
// programs of users read the file in the same way.
type findings struct {
	Headline   string   `json:"headline"`
	Verdict    string   `json:"verdict"`
	Measure    string   `json:"measure"`
	Validity   validity `json:"validity"`
	Warnings   []string `json:"warnings"`
	Curve      []step   `json:"curve"`
	Outages    []outage `json:"outages"`
	Optimum    *place   `json:"optimum"`
	Knee       *place   `json:"knee"`
	Cheapest   *place   `json:"cheapest"`
	Bottleneck []limit  `json:"bottleneck"`
	Servers    []part   `json:"servers"`
	Boundaries []struct {
		Condition string   `json:"condition"`
		To        *float64 `json:"to_clients"`
	} `json:"boundaries"`
	Balance *struct {
		Backends []struct {
			Name  string  `json:"name"`
			Share float64 `json:"share"`
		} `json:"backends"`
	} `json:"balance"`
	Challenge *challengeFindings `json:"challenge"`
}

type validity struct {
	Status string `json:"status"`
	Checks []struct {
		Name   string `json:"name"`
		Status string `json:"status"`
	} `json:"checks"`
}

type step struct {
	Step        int              `json:"step"`
	Clients     int              `json:"clients"`
	Duration    float64          `json:"measured_seconds"`
	Throughput  float64          `json:"throughput_bytes_per_second"`
	Low         float64          `json:"throughput_low"`
	High        float64          `json:"throughput_high"`
	Operations  float64          `json:"operations_per_second"`
	Moved       int64            `json:"moved_bytes"`
	Done        int64            `json:"done"`
	Errors      int64            `json:"errors"`
	ErrorRatio  float64          `json:"error_ratio"`
	ErrorsBy    map[string]int64 `json:"errors_by_class"`
	Wrong       int64            `json:"wrong"`
	Retried     int64            `json:"retried"`
	Waits       int64            `json:"waits"`
	Verified    int64            `json:"verified"`
	Sessions    float64          `json:"sessions_per_second"`
	Latency     *quantiles       `json:"latency_seconds"`
	Fairness    float64          `json:"fairness"`
	Steady      *bool            `json:"steady"`
	Paused      *float64         `json:"paused_seconds"`
	PausedShare *float64         `json:"paused_share"`
	Away        *float64         `json:"unavailable_seconds"`
	Excluded    string           `json:"excluded"`
}

type quantiles struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

// An outageKind is the part that was unavailable.
type outageKind string

// ofGenerator is an outage in which the load generator itself did not run.
const ofGenerator outageKind = "generator"

type outage struct {
	Kind    outageKind `json:"kind"`
	Step    int        `json:"step"`
	From    time.Time  `json:"from"`
	To      time.Time  `json:"to"`
	Seconds float64    `json:"seconds"`
	Class   string     `json:"class"`
	Failed  int64      `json:"failed"`
}

type place struct {
	Clients       float64 `json:"clients"`
	Low           float64 `json:"clients_low"`
	High          float64 `json:"clients_high"`
	Throughput    float64 `json:"throughput_bytes_per_second"`
	Operations    float64 `json:"operations_per_second"`
	TestedStep    int     `json:"tested_step"`
	TestedClients int     `json:"tested_clients"`
	Inside        bool    `json:"inside_tested_range"`
}

type limit struct {
	Resource string `json:"resource"`
	Side     string `json:"side"`
	From     int    `json:"from_clients"`
}

type part struct {
	Name    string     `json:"name"`
	Moved   int64      `json:"moved_bytes"`
	Errors  int64      `json:"errors"`
	Latency *quantiles `json:"latency_seconds"`
}

// readFindings reads the findings of a run directory. It returns nil if there are no findings.
func readFindings(dir string) (*findings, error) {
	b, err := os.ReadFile(filepath.Join(dir, "findings.json"))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	f := &findings{}
	return f, json.Unmarshal(b, f)
}

// step returns the step with a number, or an empty step if the curve has no such step.
func (f *findings) step(number int) step {
	for _, s := range f.steps() {
		if s.Step == number {
			return s
		}
	}
	return step{}
}

// best returns the step with the highest throughput or rate.
func (f *findings) best() step {
	best := step{}
	for _, s := range f.steps() {
		if f.yield(&s) > f.yield(&best) {
			best = s
		}
	}
	return best
}

// steps returns the steps of the curve, or nil for a run without findings.
func (f *findings) steps() []step {
	if f == nil {
		return nil
	}
	return f.Curve
}

func (f *findings) yield(s *step) float64 {
	if f.Measure == "rate" {
		return s.Operations
	}
	return s.Throughput
}

// status returns the validity, or "none" if a run has no findings.
func (f *findings) status() string {
	if f == nil {
		return "none"
	}
	return f.Validity.Status
}

// check returns the status of the check with a name, or "" if there is no such check.
func (f *findings) check(name string) string {
	if f != nil {
		for _, c := range f.Validity.Checks {
			if c.Name == name {
				return c.Status
			}
		}
	}
	return ""
}

// troubles returns the names of the checks that warn or fail.
func (f *findings) troubles() (names []string) {
	if f != nil {
		for _, c := range f.Validity.Checks {
			if c.Status == "warn" || c.Status == "fail" {
				names = append(names, c.Name)
			}
		}
	}
	return names
}

// limit returns the first bottleneck; its resource is "" if there is no bottleneck.
func (f *findings) limit() limit {
	if f == nil || len(f.Bottleneck) == 0 {
		return limit{}
	}
	return f.Bottleneck[0]
}

// peaks reports whether the findings have a maximum inside the tested range.
func (f *findings) peaks() bool { return f != nil && f.Optimum != nil && f.Optimum.Inside }

// noCapacity reports whether the findings make no statement about the capacity of the service.
func (f *findings) noCapacity() bool {
	claims := []string{"latency", "inside the server", "none", "cpu", "core"}
	return f == nil || !f.peaks() && f.Knee == nil && !slices.Contains(claims, f.limit().Resource)
}

// ownStops reports whether the load generator itself did not run for a time.
func (f *findings) ownStops() bool {
	return f != nil && slices.ContainsFunc(f.Outages, func(o outage) bool { return o.Kind == ofGenerator })
}

// outages returns the outages of the service, or nil for a run without findings.
func (f *findings) outages() []outage {
	if f == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(f.Outages), func(o outage) bool { return o.Kind == ofGenerator })
}

// excludes reports whether a step is excluded from the curve.
func (f *findings) excludes(number int) bool { return f.step(number).Excluded != "" }

// errors returns the number of errors of a class in all steps.
func (f *findings) errors(class string) (n int64) {
	for _, s := range f.steps() {
		if n += s.ErrorsBy[class]; class == "checksum" {
			n += s.Wrong
		}
	}
	return n
}

// sentence returns the first statement of the findings: the headline, or the first sentence of the
// verdict.
func (f *findings) sentence() string {
	if f == nil {
		return ""
	}
	if f.Headline != "" {
		return f.Headline
	}
	first, _, cut := strings.Cut(f.Verdict, ". ")
	if cut {
		first += "."
	}
	return first
}
