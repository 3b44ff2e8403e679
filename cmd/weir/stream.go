package main

import (
	"encoding/json"
	"io"
	"time"

	"weir/analysis"
	"weir/internal/screen"
	"weir/measure"
)

// A stream tells programs what happens, a line of JSON for each thing, while
// it happens: what --json-stream prints. A reader that hangs or goes away does
// not disturb the run.
type stream struct{ to *screen.Queue }

// A streamed is one line. Its event is start, begin and step (of a step),
// findings, comparison or repetitions, or that of a line of events.jsonl.
type streamed struct {
	Event       string             `json:"event"`
	Time        time.Time          `json:"time"`
	Run         string             `json:"run"` // run directory; of a comparison, the campaign's folder
	Start       *streamedStart     `json:"start,omitempty"`
	Step        *streamedStep      `json:"step,omitempty"`
	Happened    *measure.Event     `json:"happened,omitempty"`
	Findings    *analysis.Findings `json:"findings,omitempty"`
	Comparison  json.RawMessage    `json:"comparison,omitempty"`
	Repetitions json.RawMessage    `json:"repetitions,omitempty"`
}

// streamedStart is what a run will be.
type streamedStart struct {
	Name      string  `json:"name"`
	Target    string  `json:"target"`
	Steps     int     `json:"steps"`           // 0: a search, which finds them as it goes
	Planned   float64 `json:"planned_seconds"` // of a search the most
	Processes int     `json:"processes"`
}

// streamedStep is what a step gave, by the keys of findings.json's curve as far
// as they can be known before the run is over.
type streamedStep struct {
	Step       int                 `json:"step"`
	Hold       float64             `json:"hold_seconds"`   // measured
	Clients    float64             `json:"active_clients"` // mean of the last second
	Throughput float64             `json:"throughput_bytes_per_second"`
	Operations float64             `json:"operations_per_second"`
	Moved      int64               `json:"moved_bytes"`
	Done       int64               `json:"done"`
	Errors     int64               `json:"errors"`
	Failed     int64               `json:"errors_all_phases"` // those of ramp, settle and drain included
	Latency    *analysis.Quantiles `json:"latency_seconds"`  // nil: nothing ended well
	Server     *float64            `json:"server_cpu_ratio"` // of the busiest host's cores, by the server's processes; nil: unknown
	Client     *float64            `json:"client_cpu_ratio"`

	Jobs       *analysis.JobCounts `json:"jobs,omitempty"` // nil: clients run none
	Running    float64             `json:"running_jobs,omitempty"`
	Events     float64             `json:"events_per_second,omitempty"`
	Efficiency *float64            `json:"cpu_efficiency,omitempty"`
}

// tell writes a line. The nil stream tells nothing.
func (s *stream) tell(l streamed) {
	if s == nil {
		return
	}
	if l.Time.IsZero() {
		l.Time = time.Now()
	}
	l.Time = l.Time.UTC()
	e := json.NewEncoder(s.to) // writes a line at once
	e.SetEscapeHTML(false)
	_ = e.Encode(l) // the end tells why it failed
}

// end waits until all was told, and returns err, or why not all could be.
func (s *stream) end(err error) error {
	if s == nil {
		return err
	}
	if lost := s.to.Close(); err == nil {
		err = lost
	}
	return err
}

// stepOf is what the step of t gave.
func stepOf(t *tally, failed *measure.Failures, b *busy) *streamedStep {
	s := &streamedStep{
		Step: t.step, Hold: t.seconds, Clients: t.clients, Throughput: t.throughput(), Operations: t.rate(),
		Moved: t.moved, Done: t.done, Errors: t.wrong, Failed: failed.Count(), Server: known(b.share(serverSide)), Client: known(b.share(clientSide)),
		Latency: analysis.QuantilesOf(&t.latency),
	}
	if j := &t.jobs; j.running > 0 || j.begun > 0 {
		s.Jobs = &analysis.JobCounts{Begun: j.begun, Done: j.done, Failed: j.failed, Crashed: j.crashed}
		s.Running, s.Events, s.Efficiency = j.running/max(t.seconds, 1e-9), float64(j.events)/max(t.seconds, 1e-9), known(j.efficiency())
	}
	return s
}

// known is nil for what is below 0.
func known(x float64) *float64 {
	if x < 0 {
		return nil
	}
	return &x
}

// printList prints things as tell does it for people, or for programs as JSON: a list,
// empty if there is none, under its name.
func printList[T any](w io.Writer, asJSON bool, name string, all []T, tell func(io.Writer, []T) error) error {
	if asJSON {
		return writeJSON(w, map[string]any{name: append([]T{}, all...)})
	}
	return tell(w, all)
}

// writeJSON prints v as programs read it and people can.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
