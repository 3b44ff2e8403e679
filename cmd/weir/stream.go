package main

import (
	"encoding/json"
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
	Latency    *analysis.Quantiles `json:"latency_seconds"`   // nil: nothing ended well
	Server     *float64            `json:"server_cpu_ratio"`  // of the busiest host's cores, by the server's processes; nil: unknown
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
func stepOf(t *measure.Window, failed *measure.Failures, b *busy) *streamedStep {
	s := &streamedStep{
		Step: t.Step, Hold: t.Seconds, Clients: t.Clients, Throughput: t.Throughput(), Operations: t.Rate(),
		Moved: t.Moved, Done: t.Done, Errors: t.Errors(), Failed: failed.Count(), Server: known(b.share(serverSide)), Client: known(b.share(clientSide)),
		Latency: analysis.QuantilesOf(&t.Latency),
	}
	if t.JobSeconds > 0 || t.Started > 0 {
		s.Jobs = &analysis.JobCounts{Begun: t.Started, Done: t.Ended, Failed: t.JobsFailed, Crashed: t.Crashed}
		s.Running, s.Events, s.Efficiency = t.JobSeconds/max(t.Seconds, 1e-9), float64(t.Events)/max(t.Seconds, 1e-9), known(t.Efficiency())
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
