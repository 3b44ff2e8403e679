package calibration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"weir/internal/unit"
	"weir/loadtest/cluster"
	"weir/loadtest/engine"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/run"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/monitor"
	"weir/storage"
	"weir/storage/all"
)

// A side is one of the sides that are compared. As a sink it fills its run directory.
type side struct {
	dir, name string
	made      string // topmost folder that was made for dir, "" if it existed before
	plan      *scenario.Plan
	config    engine.Config
	manifest  *results.Manifest
	about     results.About
	out       *results.Writer
	step      int             // number of the last step
	now       Step            // the step under way
	last      time.Time       // end of the newest interval
	pause     time.Duration   // after each file, of this step
	rates     map[int]float64 // files/s of the last step with so many clients
	ended     *measure.Ending // the reason why a step ended early; nil: no step did
}

func newSide(ctx context.Context, dir, name, version string, p *scenario.Plan) (*side, error) {
	if _, err := os.Stat(filepath.Join(dir, results.PlanFile)); err == nil {
		return nil, fmt.Errorf("%s holds a run already: name another folder with --out, or remove this one", dir)
	}
	s := &side{dir: dir, name: name, plan: p, rates: map[int]float64{}, made: results.Missing(filepath.Clean(dir))}
	var err error
	if s.manifest, err = results.OpenManifest(dir); err != nil {
		return nil, err
	}
	if s.about, err = run.About(version, name == "weir"); err != nil {
		return s, err
	}
	s.about.Start = time.Now()
	s.about.Run = fmt.Sprintf("%s-%s-%06x", s.about.Start.UTC().Format("20060102-150405"), name, s.about.Start.UnixNano()/1000&0xffffff)
	service, err := cluster.OpenService(ctx, p, all.Drivers(), nil)
	if err != nil {
		return s, err
	}
	s.config = engine.Config{Plan: p, Service: service, Folder: run.Folder(s.about), Manifest: s.manifest}
	return s, nil
}

// begin makes the run directory, once the plan is final.
func (s *side) begin() (err error) {
	s.out, err = results.Create(s.dir, s.plan, s.about)
	return err
}

func (s *side) close() error {
	if s == nil {
		return nil
	}
	var errs []error
	if s.config.Service != nil {
		errs = append(errs, s.config.Service.Close())
	}
	errs = append(errs, s.manifest.Close())
	if s.out != nil {
		end := measure.Completed()
		if s.ended != nil {
			end = *s.ended
		}
		errs = append(errs, s.out.Event(end.Event(time.Now(), s.step)), s.out.Close())
	}
	return errors.Join(errs...)
}

// Interval implements measure.Sink.
func (s *side) Interval(v *measure.Interval) error {
	s.now.add(v, false)
	s.last = v.Start.Add(time.Duration(v.Seconds * float64(time.Second)))
	return s.out.Interval(v)
}

// idle writes an interval for the time since the last step, which was the others' turn: a run
// directory has no gaps.
func (s *side) idle(step int) error {
	if s.last.IsZero() {
		return nil
	}
	return s.out.Interval(&measure.Interval{Start: s.last, Seconds: time.Since(s.last).Seconds(), Step: step, Phase: measure.GracefulStop,
		Kind: s.kind()})
}

// kind returns the kind of operation of the side's clients.
func (s *side) kind() storage.Kind {
	if workload.Writes(s.plan.Work) {
		return storage.Write
	}
	return storage.Read
}

// Event implements measure.Sink. The end of a step is not the end of the run.
func (s *side) Event(e measure.Event) error {
	switch {
	case e.Kind == measure.EventEnd:
		if end := e.Ending(); end.Outcome != measure.Complete {
			s.ended = &end
		}
		return nil
	case e.Kind == measure.EventStep && s.pause > 0:
		e.Text += fmt.Sprintf(", each with pauses of %v on average", s.pause.Round(time.Microsecond))
	}
	return s.out.Event(e)
}

// Sample implements monitor.Sink.
func (s *side) Sample(v *monitor.Sample) error { return s.out.Sample(v) }

// rate returns the number of files per second in the last step, as in the table.
func (s *side) rate() float64 { return s.now.span().Rate() }

// text summarizes the last step.
func (s *side) text() string {
	return fmt.Sprintf("%s %s/s", s.name, unit.Count(s.rate()))
}
