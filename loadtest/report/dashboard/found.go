package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"html/template"
	"os"
	"os/exec"
	"strings"
	"time"

	"weir/internal/say"
	"weir/loadtest/analysis"
	"weir/loadtest/report"
	"weir/loadtest/report/figure"
	"weir/loadtest/report/figure/draw"
	"weir/loadtest/results"
)

// Understand analyzes the run in a run directory as far as it exists. One goroutine per run calls
// it; its context ends with the page, or when the analysis is to be repeated at another Moment.
type Understand func(ctx context.Context, dir string, m Moment) (*Found, error)

// A Moment describes the state of a run at the time of an analysis.
type Moment struct {
	GoesOn  bool // the run is still being written
	Awaited bool // the command waits for the analysis, and no measurement is in progress
}

// A Found is the result of an analysis of a run as far as it exists, in the form that the page
// shows. It can be written as JSON and read again. Quantities are in base units; texts are for
// people and have no control characters.
type Found struct {
	At      time.Time `json:"at"`              // time of the analysis
	Cost    float64   `json:"cost"`            // seconds of CPU; 0: unknown
	Until   float64   `json:"until"`           // seconds of the run that were analyzed
	Final   bool      `json:"final,omitempty"` // the run was over
	Problem string    `json:"problem,omitempty"`

	Status     string          `json:"status"`
	Headline   string          `json:"headline"`
	Facts      []string        `json:"facts"` // of the verdict, below the headline
	Work       string          `json:"work"`
	Search     string          `json:"search,omitempty"`
	Checks     []FoundCheck    `json:"checks"`
	Notes      []FoundNote     `json:"notes"`
	Warnings   []string        `json:"warnings"`
	Steps      []FoundStep     `json:"steps"`
	Bottleneck []FoundLimit    `json:"bottleneck"`
	Thresholds []FoundJudgment `json:"thresholds"`

	Curve    []json.RawMessage `json:"curve"` // figures against the load, the curve first
	Drawings []Drawing         `json:"drawings,omitempty"`
}

// A FoundCheck is an analysis.Check.
type FoundCheck struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	Detail string `json:"detail"`
}

// A FoundNote contains the content of an analysis.Note.
type FoundNote struct {
	Check string `json:"check"`
	Text  string `json:"text"`
}

// A FoundStep contains the values of an analysis.Step that the page shows.
type FoundStep struct {
	Step       int      `json:"step"`
	Clients    int      `json:"clients"`
	Rate       float64  `json:"rate,omitempty"`
	Throughput float64  `json:"throughput"`
	Low        *float64 `json:"low"`
	High       *float64 `json:"high"`
	Operations float64  `json:"operations"`
	Steady     *bool    `json:"steady"`
	ServerCPU  *float64 `json:"server"`
	ClientCPU  *float64 `json:"client"`
	Best       bool     `json:"best,omitempty"` // it is the optimum
}

// A FoundLimit is a saturated resource; the first to be saturated is first in the list.
type FoundLimit struct {
	Resource string   `json:"resource"`
	Host     string   `json:"host"`
	From     int      `json:"from"`
	Evidence []string `json:"evidence"`
}

// A FoundJudgment is a threshold and its result.
type FoundJudgment struct {
	Threshold string `json:"threshold"`
	Met       bool   `json:"met"`
	Detail    string `json:"detail"`
}

// A Drawing is a figure for a page without scripts.
type Drawing struct {
	Title string        `json:"title"`
	Desc  string        `json:"desc"`
	Still template.HTML `json:"still"` // of package figure
}

// UnderstandBy analyzes a run with a command that prints a Found in JSON. Unless the analysis is
// awaited, it has low priority, so that the page does not disturb the measurement that it shows.
func UnderstandBy(ctx context.Context, command []string, m Moment) (*Found, error) {
	if nice, err := exec.LookPath("nice"); err == nil && !m.Awaited {
		command = append([]string{nice, "-n", "19"}, command...)
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.WaitDelay = 10 * time.Second
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	out, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok && len(failed.Stderr) > 0 {
		return nil, errors.New(say.Plain(string(failed.Stderr)))
	}
	if err != nil {
		return nil, err
	}
	found := new(Found)
	if err := json.Unmarshal(out, found); err != nil {
		return nil, err
	}
	found.Cost = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	return found, nil
}

// UnderstandHere analyzes the run in dir in this process. ctx does not end the analysis.
func UnderstandHere(_ context.Context, dir string, m Moment) (*Found, error) {
	run, err := results.Open(dir)
	if err != nil {
		return nil, err
	}
	run.GoesOn = m.GoesOn
	f, series, err := analysis.AnalyzeWithSeries(run)
	if err != nil {
		return nil, err
	}
	out := &Found{Status: say.Plain(f.Validity.Status), Headline: say.Plain(f.Headline), Facts: plain(strings.Split(f.Verdict, "\n")[1:]),
		Work: say.Plain(f.Work), Search: say.Plain(f.Search),
		Warnings: plain(f.Warnings), Checks: []FoundCheck{}, Notes: []FoundNote{}, Bottleneck: []FoundLimit{}, Thresholds: []FoundJudgment{},
		Steps: stepsOf(f)}
	for i := range f.Validity.Checks {
		if c := &f.Validity.Checks[i]; !f.Validity.Noted(c) {
			out.Checks = append(out.Checks, FoundCheck{say.Plain(c.Name), c.Status, say.Plain(c.Text())})
		}
	}
	for i := range f.Validity.Notes {
		n := &f.Validity.Notes[i]
		out.Notes = append(out.Notes, FoundNote{say.Plain(n.Check), say.Plain(n.Text())})
	}
	for _, b := range f.Bottleneck {
		out.Bottleneck = append(out.Bottleneck, FoundLimit{say.Plain(b.Resource), say.Plain(b.Host), b.From, plain(b.Evidence)})
	}
	for _, j := range f.Thresholds {
		out.Thresholds = append(out.Thresholds, FoundJudgment{say.Plain(j.Threshold), j.Met, say.Plain(j.Detail)})
	}
	return out, out.draw(report.Figures(f, series))
}

func plain(texts []string) []string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = say.Plain(t)
	}
	return out
}

func stepsOf(f *analysis.Findings) []FoundStep {
	out := []FoundStep{}
	for i := range f.Curve {
		s := &f.Curve[i]
		step := FoundStep{Step: s.Step, Clients: s.Clients, Rate: s.Rate, Throughput: s.Throughput, Low: s.ThroughputLow, High: s.ThroughputHigh,
			Operations: s.Operations, Steady: s.Steady, ServerCPU: s.ServerCPU, ClientCPU: s.ClientCPU, Best: f.Optimum != nil &&
				f.Optimum.Step == s.Step}
		if f.Measure == analysis.Rate {
			step.Low, step.High = s.OperationsLow, s.OperationsHigh
		}
		out = append(out, step)
	}
	return out
}

// draw converts the figures to the forms that pages use.
func (f *Found) draw(p report.Plots) error {
	f.Curve = []json.RawMessage{}
	load := append(p.Load[:len(p.Load):len(p.Load)], p.Jobs...)
	if len(p.Matrix) > 0 { // the stages of a data challenge are no curve
		load, p.Load = nil, nil
	}
	for i := range load {
		b, err := json.Marshal(&load[i])
		if err != nil {
			return err
		}
		f.Curve = append(f.Curve, b)
	}
	page, err := draw.NewPage()
	if err != nil {
		return err
	}
	first := min(1, len(p.Load))
	for _, all := range [][]figure.Figure{p.Matrix, p.Challenge, p.Load[:first], p.Jobs, p.Time, p.Load[first:]} {
		for i := range all {
			g := &all[i]
			f.Drawings = append(f.Drawings, Drawing{say.Plain(g.Title), say.Plain(g.Desc), page.Still(g)})
		}
	}
	return nil
}
