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

	"weir/analysis"
	"weir/results"
)

// A Sender follows a run directory and sends what its metrics say to a receiver.
// The directory is its queue: while the receiver is down or slow, nothing is
// read, and what has gathered is sent when it is there again.
type Sender struct {
	receiver Receiver
	find     Finder
	courier  *courier
	wait     time.Duration // between two looks

	cancel context.CancelFunc
	last   chan struct{} // closed by Finish: the run is over, and its findings are there
	ended  chan struct{}

	mu     sync.Mutex // guards all below
	report Report
	active time.Time // when something was taken last
}

// A Report says what became of a run's numbers.
type Report struct {
	Receiver string
	Sent     int       // values that were taken
	Requests int       // that were taken
	Refused  int       // values that the receiver will not take
	Reason   string    // why, the first time
	Left     int       // values that could not be brought there
	Since    time.Time // time of the first of them
	Trouble  string    // what went wrong last
	Err      error     // why the run directory could not be read
}

// Options say how a run is sent.
type Options struct {
	Since time.Time     // what is earlier is not sent; zero: all
	Every time.Duration // between two looks at the run directory; 0: 2 s
	Find  Finder        // what the run shows; nil: analysis.Analyze
}

// Send begins to follow the run in dir and to send it to t, until Finish or the
// end of ctx. An error is one of dir, or of t's credentials.
func Send(ctx context.Context, dir string, t Receiver, o Options) (*Sender, error) {
	follower, err := results.Follow(dir)
	if err != nil {
		return nil, err
	}
	c, err := newCourier(t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t, err)
	}
	follower.Bound(256 << 10) // a line becomes up to a hundred points
	ctx, cancel := context.WithCancel(ctx)
	s := &Sender{
		receiver: t, find: o.Find, courier: c, wait: o.Every, cancel: cancel,
		last: make(chan struct{}), ended: make(chan struct{}), report: Report{Receiver: t.String()}, active: time.Now(),
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
		defer func() { // whatever is wrong here, the run is worth more
			if r := recover(); r != nil {
				s.fail(fmt.Errorf("a mistake in weir ended it: %v", r))
			}
		}()
		s.follow(ctx, follower, o.Since)
	}()
	return s, nil
}

// Finish tells that nothing more comes: what is there is sent, with what the
// run shows, and then the report is given. A receiver that has taken nothing for as
// long as patience is left alone, after two seconds at least if it has been so
// before; as well as one that needs longer than most (0: no bound).
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

// lastChance is what a receiver gets that has been dead before the end.
const lastChance = 2 * time.Second

// follow sends until Finish was called and all is there, or ctx ends. What is
// not sent then is counted.
func (s *Sender) follow(ctx context.Context, f *results.Follower, since time.Time) {
	enc := s.receiver.encoder()
	order := &ordered{to: enc}
	l := newLedger(f.Run(), order, since)
	steps := stepEnds{}
	for finishing := false; ; {
		moved, err := f.Poll(l.takers())
		s.fail(err)
		if !moved && !finishing {
			steps.look(l, f.Run())
		}
		order.release(l.settled(moved))
		s.bring(ctx, enc.flush())
		switch {
		case moved && err == nil:
			continue
		case finishing || ctx.Err() != nil:
			s.conclude(ctx, l, f.Run())
			order.release(always)
			s.bring(ctx, enc.flush())
			return
		}
		finishing = s.rest(ctx)
		f.Over() // a last line may have no end
	}
}

// rest waits until it is time for the next look, and tells whether it is the last.
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

// conclude tells what the run shows.
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

// bring sends payloads, or counts them as left once ctx has ended.
func (s *Sender) bring(ctx context.Context, all []payload) {
	for _, p := range all {
		err := ctx.Err()
		if err == nil {
			err = s.courier.bring(ctx, p, func(err error) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.report.Trouble = brief(err.Error())
			})
		}
		s.note(p, err)
	}
}

// note keeps what became of p.
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

// fail keeps why the run can not be read now; nil: it can.
func (s *Sender) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.Err = err
}

// stepEnds has the analysis look at a run whenever a step of it has ended, as
// long as that is quick: it is done on the machine that makes the load.
type stepEnds struct {
	step int
	slow bool
}

// quickLook is how long an analysis may take while the load goes on.
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
	if f, err := analysis.Analyze(run); err == nil { // an error is told at the end
		l.findings(f)
	}
	e.slow = time.Since(begin) > quickLook
}

// A Finder says what a run shows.
type Finder func(*results.Run) (*analysis.Findings, error)

// Written is a Finder that takes findings.json if it was written after the
// last second of the run, and analyses the run if not.
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
