package export

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"weir/loadtest/analysis"
	"weir/loadtest/results"
)

// A Sender follows a run directory and sends its metrics to a receiver. The directory is the queue:
// while the receiver is down or slow, nothing is read; the backlog is sent when the receiver is
// back.
type Sender struct {
	receiver Receiver
	find     Finder
	uploader *uploader
	wait     time.Duration // between two polls

	cancel context.CancelFunc
	last   chan struct{} // closed by Finish: the run is over, and its findings exist
	ended  chan struct{}

	mu     sync.Mutex // guards all below
	report Report
	active time.Time // time of the last accepted request
}

// A Report has the numbers of values of a run that were sent or not.
type Report struct {
	Sent     int       // accepted values
	Requests int       // accepted requests
	Refused  int       // values that the receiver rejected permanently
	Reason   string    // of the first rejection
	Left     int       // values that could not be sent
	Since    time.Time // time of the first of these values
	Trouble  string    // last temporary failure
	Err      error     // reason why the run directory could not be read
}

// Options control the export of a run.
type Options struct {
	Since time.Time     // earlier values are not sent; zero: send all values
	Every time.Duration // between two polls of the run directory; 0: 2 s
	Find  Finder        // returns the findings; nil: analysis.Analyze
}

// Send begins to follow the run in dir and to send it to t, until Finish or the end of ctx. An
// error is an error of dir, or of t's credentials.
func Send(ctx context.Context, dir string, t Receiver, o Options) (*Sender, error) {
	follower, err := results.Follow(dir)
	if err != nil {
		return nil, err
	}
	c, err := newUploader(t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t, err)
	}
	follower.Bound(256 << 10) // a line becomes up to a hundred points
	ctx, cancel := context.WithCancel(ctx)
	s := &Sender{
		receiver: t, find: o.Find, uploader: c, wait: o.Every, cancel: cancel,
		last: make(chan struct{}), ended: make(chan struct{}), active: time.Now(),
	}
	if s.wait <= 0 {
		s.wait = 2 * time.Second
	}
	if s.find == nil {
		s.find = analysis.Analyze
	}
	go func() {
		defer close(s.ended)
		defer c.close()
		defer func() { // a bug here must not end the run
			if r := recover(); r != nil {
				s.fail(fmt.Errorf("the export ended because of a bug in weir: %v", r))
			}
		}()
		s.follow(ctx, follower, o.Since)
	}()
	return s, nil
}

// Finish sends the rest of the run with its findings and returns the report. It gives up on a
// receiver that has accepted nothing for patience (for at most 2 s if it did not respond before),
// or that needs longer than most (0: no limit).
func (s *Sender) Finish(patience, most time.Duration) Report {
	defer s.cancel()
	close(s.last)
	begin := time.Now()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-s.ended:
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.report
		case now := <-tick.C:
			s.mu.Lock()
			active := s.active
			s.mu.Unlock()
			dead := now.Sub(active) > patience && now.Sub(begin) > min(patience, lastChance)
			if dead || most > 0 && now.Sub(begin) > most {
				s.cancel()
			}
		}
	}
}

// lastChance is the time for a receiver that did not respond before the end.
const lastChance = 2 * time.Second

// follow sends until Finish was called and everything is sent, or ctx ends. It counts the values
// that are not sent.
func (s *Sender) follow(ctx context.Context, f *results.Follower, since time.Time) {
	enc := s.receiver.encoder()
	order := &ordered{to: enc}
	l := newLedger(f.Run(), order, since)
	steps := stepEnds{}
	for finishing := false; ; {
		moved, err := f.Poll(l.handlers())
		s.fail(err)
		if !moved && !finishing {
			steps.look(l, f.Run())
		}
		order.release(l.complete(moved))
		s.upload(ctx, enc.flush())
		switch {
		case moved && err == nil:
			continue
		case finishing || ctx.Err() != nil:
			s.conclude(ctx, l, f.Run())
			order.release(always)
			s.upload(ctx, enc.flush())
			return
		}
		finishing = s.rest(ctx)
		f.Over() // a last line may be unterminated
	}
}

// rest waits for the next poll, and reports whether it is the last poll.
func (s *Sender) rest(ctx context.Context) (last bool) {
	t := time.NewTimer(s.wait)
	defer t.Stop()
	select {
	case <-s.last:
		return true
	case <-t.C:
	case <-ctx.Done():
	}
	return false
}

// conclude adds the findings of the run.
func (s *Sender) conclude(ctx context.Context, l *ledger, run *results.Run) {
	var found *analysis.Findings
	if ctx.Err() == nil {
		var err error
		if found, err = s.find(run); err != nil {
			s.fail(err)
		}
	}
	l.end(found)
}

// upload sends payloads, or counts them as left after ctx has ended.
func (s *Sender) upload(ctx context.Context, all []payload) {
	for _, p := range all {
		err := ctx.Err()
		if err == nil {
			err = s.uploader.upload(ctx, p, func(err error) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.report.Trouble = brief(err.Error())
			})
		}
		s.note(p, err)
	}
}

// note counts p in the report.
func (s *Sender) note(p payload, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &s.report
	switch {
	case err == nil:
		r.Sent += p.values
		r.Requests++
		s.active = time.Now()
	case errors.Is(err, errRefused):
		if r.Refused == 0 {
			r.Reason = err.Error()
		}
		r.Refused += p.values
		s.active = time.Now()
	default:
		if at := time.UnixMilli(p.first).UTC(); r.Left == 0 || at.Before(r.Since) {
			r.Since = at
		}
		r.Left += p.values
	}
}

// fail records the reason why the run cannot be read, or nil if it can.
func (s *Sender) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.Err = err
}

// stepEnds analyzes a run whenever a step has ended, as long as that is fast, because it runs on
// the load generator.
type stepEnds struct {
	step int
	slow bool
}

// quickLook is the maximum duration of an analysis during the load.
const quickLook = 200 * time.Millisecond

func (e *stepEnds) look(l *ledger, run *results.Run) {
	step := l.about.second.Step
	if step == e.step || e.slow {
		return
	}
	first := e.step == 0
	e.step = step
	if first {
		return // nothing has ended yet
	}
	begin := time.Now()
	if f, err := analysis.Analyze(run); err == nil { // an error is reported at the end
		l.findings(f)
	}
	e.slow = time.Since(begin) > quickLook
}

// A Finder returns the findings of a run.
type Finder func(*results.Run) (*analysis.Findings, error)

// Written is a Finder that reads findings.json if it is newer than the last second of the run, and analyzes the run if not.
func Written(run *results.Run) (*analysis.Findings, error) {
	found := filepath.Join(run.Dir, results.FindingsFile)
	made, err := os.Stat(found)
	if err != nil {
		return analysis.Analyze(run)
	}
	last, err := os.Stat(filepath.Join(run.Dir, results.IntervalsFile))
	if err != nil || made.ModTime().Before(last.ModTime()) {
		return analysis.Analyze(run)
	}
	text, err := os.ReadFile(found)
	var f analysis.Findings
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err != nil || f.Version != analysis.FindingsVersion || f.Run != run.About.Run {
		return analysis.Analyze(run)
	}
	return &f, nil
}
