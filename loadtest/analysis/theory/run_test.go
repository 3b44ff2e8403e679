package theory

import (
	"net/url"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"weir/internal/require"
	"weir/internal/unit"
	"weir/loadtest/analysis"
	"weir/loadtest/engine"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/storage"
	"weir/storage/simulated"
)

// plan returns the plan of a scenario with the trial's loads: every step is held for the same time,
// at least 5 s, in which about the given number of operations end at the best load. Lighter steps
// have fewer operations.
func (c trial) plan(operations float64) *scenario.Plan {
	t := c.theory
	_, rate := t.Best(c.most())
	hold := time.Duration(max(operations/rate, 5) * 1e9)
	cycle := t.Residence(c.most()) + t.Think
	settle := max(hold/20, 3*cycle)
	work := workload.Work{Kind: "read", Pick: "random", Session: "kept", Think: c.span()}
	p := &scenario.Plan{Name: "theory", Model: "closed", Driver: "simulated", Target: c.url(), Work: work, Seed: c.seed,
		GracefulStop: unit.Duration(time.Hour)}
	for i, n := range c.loads {
		p.Steps = append(p.Steps, scenario.Step{Number: i + 1, Clients: n, Warmup: unit.Duration(settle.Round(time.Second) + time.Second),
			Duration: unit.Duration(hold.Round(time.Second))})
	}
	return p
}

func (c trial) span() workload.Span {
	z := unit.Duration(c.theory.Think)
	switch c.think {
	case "fixed":
		return workload.Span{Fixed: z}
	case "uniform":
		return workload.Span{Uniform: []unit.Duration{z / 2, z + z/2}}
	case "exponential":
		return workload.Span{Exponential: z}
	}
	return workload.Span{}
}

// measured runs a plan with the engine on the simulated service, in simulated time, into a run
// directory, and analyzes it.
func measured(t *testing.T, p *scenario.Plan, driver storage.Driver) *analysis.Findings {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	u, err := url.Parse(p.Target)
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		service, err := driver.Open(t.Context(), storage.Target{URL: u})
		require.NoError(t, err)
		var files []workload.File
		for i := range 10 {
			files = append(files, workload.File{Path: simulated.FileName(i), Size: 1024})
		}
		out, err := results.Create(dir, p, results.About{Start: time.Now()})
		require.NoError(t, err)
		sink := &joining{Sink: out, least: time.Duration(p.Steps[0].Duration).Seconds() / 40}
		if err := engine.Run(t.Context(), engine.Config{Plan: p, Service: service, Files: files, Folder: "none", Sink: sink,
			Pacer: engine.Timers()}); err != nil {
			t.Error(err)
		}
		if err := out.Close(); err != nil {
			t.Error(err)
		}
	})
	run, err := results.Open(dir)
	require.NoError(t, err)
	f, err := analysis.Analyze(run)
	require.NoError(t, err)
	return f
}

// joining joins seconds of a phase to intervals of some length: a slow station is held for many
// minutes, and writing all seconds would take most of the time of the test. The analysis joins a
// hold's seconds to twenty batches anyway.
type joining struct {
	measure.Sink
	least float64 // seconds
	sum   *measure.Interval
}

func (j *joining) Interval(v *measure.Interval) error {
	if j.sum != nil && (j.sum.Step != v.Step || j.sum.Phase != v.Phase) {
		if err := j.flush(); err != nil {
			return err
		}
	}
	if j.sum == nil {
		j.sum = v
	} else {
		seconds := j.sum.Seconds + v.Seconds
		clients := (j.sum.Clients*j.sum.Seconds + v.Clients*v.Seconds) / seconds
		j.sum.Add(v)
		j.sum.Seconds, j.sum.Clients = seconds, clients
	}
	if j.sum.Seconds >= j.least {
		return j.flush()
	}
	return nil
}

func (j *joining) Event(e measure.Event) error {
	if e.Kind == measure.EventEnd {
		if err := j.flush(); err != nil {
			return err
		}
	}
	return j.Sink.Event(e)
}

func (j *joining) flush() error {
	v := j.sum
	if j.sum = nil; v == nil {
		return nil
	}
	return j.Sink.Interval(v)
}
