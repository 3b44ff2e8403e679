package dashboard

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"weir/internal/pause"
	"weir/internal/say"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/monitor"
)

// Waiting times before another look at a run directory that is missing or damaged.
const (
	waitForRun  = time.Second / 2
	waitDamaged = 2 * time.Second
	overEvery   = time.Second // the check whether the writer has exited opens a file
)

// follow reads the run directory until ctx ends: from its start when it exists, and from its start
// again when another run is written there.
func (s *shown) follow(ctx context.Context) {
	if s.dir == "" {
		return // the place of the run is still unknown
	}
	for ctx.Err() == nil {
		f, err := results.Follow(s.dir)
		if err != nil {
			s.wait(err)
			pause.For(ctx, waitForRun)
			continue
		}
		s.begin(f.Run())
		s.read(ctx, f)
	}
}

// wait records the reason why there is no run to read.
func (s *shown) wait(err error) {
	problem := ""
	if !errors.Is(err, fs.ErrNotExist) {
		problem = say.Plain(err.Error())
	}
	if s.problem == problem { // only this goroutine writes it
		return
	}
	s.change(func() { s.problem = problem })
}

// begin discards the data of the previous run and begins with run.
func (s *shown) begin(run *results.Run) {
	s.change(func() {
		seq := s.h.seq
		s.h = newHistory()
		s.h.seq = seq
		for _, step := range run.Plan.Steps {
			s.h.planned[step.Number] = step
		}
		about := run.About
		s.about, s.plan, s.runSeq = &about, run.Plan, seq
		s.over, s.ended, s.reading, s.problem, s.found = false, false, true, "", nil
	})
}

// read reads until ctx ends or another run is in the directory.
func (s *shown) read(ctx context.Context, f *results.Follower) {
	take := results.Takers{
		Interval: func(v *measure.Interval) { s.h.interval(v) },
		Sample:   func(v *monitor.Sample) { s.h.sample(v) },
		Event:    func(v *measure.Event) { s.h.event(v) },
		Link:     func(v *results.LinkInterval) { s.h.link(v) },
	}
	var asked time.Time
	for ctx.Err() == nil {
		moved, err := s.poll(ctx, f, take)
		if err != nil && s.replaced() {
			return
		}
		over, reported := s.over, s.reported
		if now := s.clock(); now.Sub(asked) >= overEvery {
			asked, over, reported = now, f.Over(), hasReport(s.dir)
			if over { // the last lines of the writer
				more, _ := s.poll(ctx, f, take) // an error occurs again in the next read
				moved = moved || more
			}
		}
		problem := ""
		if err != nil {
			problem = say.Plain(err.Error())
		}
		if moved || s.reading || over != s.over || f.Ended() != s.ended || problem != s.problem || reported != s.reported {
			s.change(func() {
				s.over, s.ended, s.reading, s.problem, s.reported = over, f.Ended(), false, problem, reported
			})
		}
		if err != nil {
			pause.For(ctx, waitDamaged)
		} else {
			pause.For(ctx, pollEvery)
		}
	}
}

// poll reads all available lines. The lines of a second are written one after the other: a moment
// later the remaining lines are available as well.
func (s *shown) poll(ctx context.Context, f *results.Follower, take results.Takers) (moved bool, err error) {
	for ctx.Err() == nil {
		begin := time.Now()
		s.mu.Lock()
		more, err := f.Poll(take)
		s.mu.Unlock()
		moved = moved || more
		if err != nil || !more {
			return moved, err
		}
		if time.Since(begin) < settle {
			pause.For(ctx, settle)
		}
	}
	return moved, nil
}

// replaced reports whether the directory now contains another run, or no run.
func (s *shown) replaced() bool {
	run, err := results.Open(s.dir)
	return err != nil || run.About.Run != s.about.Run
}

func hasReport(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, results.ReportFile))
	return err == nil && info.Mode().IsRegular()
}
