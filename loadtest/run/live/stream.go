package live

import (
	"encoding/json"
	"io"
	"time"

	"weir/internal/screen"
	"weir/loadtest/analysis"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/challenge/conduct"
	"weir/loadtest/measure"
)

// A Stream writes a line of JSON for each event of a run as it happens. A reader that
// hangs or goes away does not disturb the run. The nil Stream writes nothing.
type Stream struct{ to *screen.Queue }

// NewStream returns a Stream that writes to w.
func NewStream(w io.Writer) *Stream { return &Stream{screen.NewQueue(w)} }

// A Line is one line of a Stream. Its event is start, begin and step (of a step), status (of a data
// challenge), findings, comparison or repetitions, or the event of a line of events.jsonl.
type Line struct {
	Event       string             `json:"event"`
	Time        time.Time          `json:"time"`
	Run         string             `json:"run"` // run directory; of a comparison, the campaign's folder
	Start       *Start             `json:"start,omitempty"`
	Step        *Step              `json:"step,omitempty"`
	Status      *conduct.Status    `json:"status,omitempty"` // of a data challenge, once a second
	Happened    *measure.Event     `json:"happened,omitempty"`
	Findings    *analysis.Findings `json:"findings,omitempty"`
	Comparison  json.RawMessage    `json:"comparison,omitempty"`
	Repetitions json.RawMessage    `json:"repetitions,omitempty"`
}

// Start describes the plan of a run.
type Start struct {
	Name      string  `json:"name"`
	Target    string  `json:"target"`
	Steps     int     `json:"steps"`           // 0: a search, which chooses them as it goes
	Planned   float64 `json:"planned_seconds"` // of a search the most
	Processes int     `json:"processes"`
}

// A Step is the result of a step, with the keys of findings.json's curve as far as
// they are known before the run is over.
type Step struct {
	Step       int                 `json:"step"`
	Duration   float64             `json:"measured_seconds"` // measured
	Clients    float64             `json:"active_clients"`   // mean of the last second
	Throughput float64             `json:"throughput_bytes_per_second"`
	Operations float64             `json:"operations_per_second"`
	Moved      int64               `json:"moved_bytes"`
	Done       int64               `json:"done"`
	Errors     int64               `json:"errors"`
	Wrong      int64               `json:"wrong,omitempty"`
	Failed     int64               `json:"errors_all_phases"` // of all phases, with wrong payloads
	Latency    *analysis.Quantiles `json:"latency_seconds"`   // nil: no operation succeeded
	Server     *float64            `json:"server_cpu_ratio"`  // of the busiest host's cores, by the server's processes; nil: unknown
	Client     *float64            `json:"client_cpu_ratio"`

	Jobs       *analysis.JobCounts `json:"jobs,omitempty"` // nil: clients run no jobs
	Running    float64             `json:"running_jobs,omitempty"`
	Events     float64             `json:"events_per_second,omitempty"`
	Efficiency *float64            `json:"cpu_efficiency,omitempty"`
}

// event writes an event of the run directory dir.
func (s *Stream) event(dir string, e measure.Event) {
	kind := string(e.Kind)
	if e.Kind == measure.EventStep {
		kind = "begin" // "step" is the end of one
	}
	s.Write(Line{Event: kind, Run: dir, Time: e.Time, Happened: &e})
}

// Write writes a line.
func (s *Stream) Write(l Line) {
	if s == nil {
		return
	}
	if l.Time.IsZero() {
		l.Time = time.Now()
	}
	l.Time = l.Time.UTC()
	e := json.NewEncoder(s.to) // writes a line at once
	e.SetEscapeHTML(false)
	_ = e.Encode(l) // Close returns the error
}

// Close waits until everything is written. It returns err or, if that is nil, the first error of
// the writes.
func (s *Stream) Close(err error) error {
	if s == nil {
		return err
	}
	if lost := s.to.Close(); err == nil {
		err = lost
	}
	return err
}

func stepOf(w *measure.Window, failures *measure.Failures, cpu *cpuUsage) *Step {
	s := &Step{
		Step: w.Step, Duration: w.Seconds, Clients: w.Clients, Throughput: w.Throughput(), Operations: w.Rate(),
		Moved: w.Moved, Done: w.Done, Errors: w.Errors(), Wrong: w.Wrong, Failed: failures.Count(), Latency: steps.QuantilesOf(&w.Latency),
		Server: known(cpu.share(serverSide)), Client: known(cpu.share(clientSide)),
	}
	if w.JobSeconds > 0 || w.Started > 0 {
		seconds := max(w.Seconds, 1e-9)
		s.Jobs = &analysis.JobCounts{Begun: w.Started, Done: w.Ended, Failed: w.JobsFailed, Crashed: w.Crashed}
		s.Running, s.Events, s.Efficiency = w.JobSeconds/seconds, float64(w.Events)/seconds, known(w.Efficiency())
	}
	return s
}

// known returns nil for a value below 0.
func known(x float64) *float64 {
	if x < 0 {
		return nil
	}
	return &x
}
