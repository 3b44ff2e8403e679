package conduct

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"weir/internal/unit"
	"weir/loadtest/challenge"
	"weir/loadtest/challenge/control"
	"weir/loadtest/challenge/inject"
	"weir/loadtest/measure"
)

const (
	tickTime = 100 * time.Millisecond // between two decisions
	// cancelTime limits the wait for the final reports of copies that were cancelled.
	cancelTime = 10 * time.Second
)

// load holds the profile and ends all copies.
func (s *session) load() (err error) {
	if err := s.startMonitor(s.Stop); err != nil {
		return err
	}
	defer func() {
		if s.Watched != nil {
			s.Watched(nil)
		}
		if stopped := s.watch.Stop(); err == nil {
			err = stopped
		}
	}()
	s.control = s.Controller(s.controlOptions())
	if err := s.begin(); err != nil {
		return err
	}
	s.loaded = true
	s.View.Load()
	err = s.hold()
	if ended := s.endCopies(); err == nil {
		err = ended
	}
	s.View.End()
	end := measure.Completed()
	switch {
	case err != nil:
		end = measure.Broken(err)
	case s.Finish.Err() != nil:
		end = s.Ending()
	}
	if noted := s.event(end.Event(s.clock.now(), s.notes.stage)); err == nil {
		err = noted
	}
	return err
}

// begin makes the ledger, from now on, and writes that the challenge begins or goes on.
func (s *session) begin() error {
	s.begun = s.clock.now()
	held := time.Duration(0)
	if s.left != nil {
		if err := s.resume(s.begun); err != nil {
			return err
		}
		held = s.left.held
	}
	s.ledger = s.ledgerFrom(s.begun.Add(-held), s.begun)
	if err := s.warnOfCredentials(); err != nil {
		return err
	}
	if s.left == nil {
		return s.event(measure.Event{Time: s.begun, Kind: measure.EventRun, Text: "begins"})
	}
	s.ledger.totals = s.left.totals
	for i := range s.left.copies {
		s.ledger.add(&s.left.copies[i], s.notes.stage, time.Time{})
	}
	for i := range s.c.Links { // that were requested shortly before the kill
		s.left.countBegun(s.ledger.each.at(s.begun), s.ledger.all.at(s.begun), i, math.MaxInt32)
	}
	return nil
}

// warnOfCredentials warns of credentials that end before the challenge.
func (s *session) warnOfCredentials() error {
	warnings, err := s.c.Credentials(time.Now(), false)
	if err != nil {
		warnings = append(warnings, oneLine(err.Error()))
	}
	for _, text := range warnings {
		if err := s.warn(text); err != nil {
			return err
		}
	}
	return nil
}

// ledgerFrom returns a ledger of a profile that began at origin, from a moment on.
func (s *session) ledgerFrom(origin, from time.Time) *ledger {
	return newLedger(timeline{s.c, origin}, len(s.c.Links), from)
}

// hold requests copies until the profile is over or Finish ends it.
func (s *session) hold() error {
	ticks := time.NewTicker(tickTime)
	defer ticks.Stop()
	for {
		now := s.clock.now()
		stage, share, over := s.ledger.line.at(now)
		if over || s.Finish.Err() != nil {
			return nil
		}
		if err := s.stage(stage, now); err != nil {
			return err
		}
		if err := s.news(now); err != nil {
			return err
		}
		if err := s.decide(now, share); err != nil {
			return err
		}
		if err := s.work(now); err != nil {
			return err
		}
		select {
		case <-ticks.C:
		case <-s.Finish.Done():
		}
	}
}

// stage writes an event when a stage begins.
func (s *session) stage(stage int, now time.Time) error {
	if stage == s.notes.stage {
		return nil
	}
	s.notes.begin(stage)
	s.watch.SetStep(stage)
	p := &s.c.Profile[stage-1]
	text := fmt.Sprintf("stage %d of %d: %v of the target rates", stage, len(s.c.Profile), p.At)
	if p.Ramp {
		text = fmt.Sprintf("stage %d of %d: to %v of the target rates", stage, len(s.c.Profile), p.At)
	}
	return s.event(measure.Event{Time: now, Kind: measure.EventStep, Step: stage, Duration: time.Duration(p.For).Seconds(), Text: text})
}

// news counts the reports and verifications since the last call.
func (s *session) news(now time.Time) error {
	s.ledger.step(now)
	reports, checked := s.inbox.take()
	for i := range reports {
		if err := s.report(&reports[i]); err != nil {
			return err
		}
	}
	for _, v := range checked {
		if err := s.verdict(v); err != nil {
			return err
		}
	}
	return nil
}

// decide has the controller decide, and requests the copies that are due.
func (s *session) decide(now time.Time, share float64) error {
	for i := range s.seen {
		s.seen[i] = s.ledger.decided(i, share*bytesPerSecond(s.c.Links[i].Rate))
	}
	decisions := s.control.Decide(now.Sub(s.begun), s.seen)
	var copies []inject.Copy
	ceiling := false
	for i, d := range decisions {
		s.ledger.links[i].decision = d
		ceiling = ceiling || d.Reason == challenge.Ceiling
		for range d.Start {
			copies = append(copies, s.copy(i))
		}
	}
	if err := s.request(copies, now); err != nil {
		return err
	}
	if ceiling && s.notes.first("ceiling") {
		return s.warn(fmt.Sprintf("the ceiling of %v for all links together is reached: it limits the rates of links", s.c.Ceiling))
	}
	return nil
}

// copy returns the next copy of a link. Its id determines link and source, so that a process that
// resumes the challenge finds them in the manifest.
func (s *session) copy(link int) inject.Copy {
	n := s.next[link]
	s.next[link]++
	return s.copyOf(link, n)
}

// copyOf returns the n-th copy of a link, from 0.
func (s *session) copyOf(link int, n int64) inject.Copy {
	id := s.c.CopyID(link, n)
	c := inject.Copy{ID: id, Link: link, Source: s.sites.Source(link, int(n)), Dest: s.sites.Dest(link, id)}
	if s.remover != nil {
		c.Dest = c.Source.Path
	}
	return c
}

// manifestPath returns the path of a copy in the manifest.
func (s *session) manifestPath(c *inject.Copy) string {
	path := s.c.Links[c.Link].To + "/" + c.Dest
	if s.remover != nil {
		path += ownedBy + strconv.FormatInt(c.ID, 10)
	}
	return path
}

// request records copies in the manifest and requests them, unless Finish has ended the challenge.
func (s *session) request(copies []inject.Copy, now time.Time) error {
	if len(copies) == 0 || s.Finish.Err() != nil {
		return nil
	}
	for i := range copies {
		c := &copies[i]
		if err := s.manifest.Created(s.manifestPath(c), c.Source.Size, uint64(c.ID)); err != nil {
			return err
		}
	}
	if s.Finish.Err() != nil { // while they were recorded: the clean-up finds none of them
		return nil
	}
	s.ledger.start(copies, now)
	if err := s.injector.Start(s.Stop, copies); err != nil && s.Stop.Err() == nil {
		return fmt.Errorf("requesting copies: %w", err)
	}
	return nil
}

// work does everything that is not urgent: jobs at the sites and, once a second, the records.
func (s *session) work(now time.Time) error {
	if err := s.commits.run(); err != nil {
		return err
	}
	s.pool.run(now)
	if now.Sub(s.notes.worked) < time.Second {
		return nil
	}
	s.notes.worked = now
	if err := s.write(s.ledger.horizon(), nil); err != nil {
		return err
	}
	if err := s.health(now); err != nil {
		return err
	}
	s.View.Status(s.status(now))
	return nil
}

// endCopies ends all copies that are in flight: after the profile they may end for a while, after
// Finish they are cancelled at once.
func (s *session) endCopies() error {
	for i := range s.ledger.links {
		s.ledger.links[i].seen.Target = 0
		s.ledger.links[i].decision = control.Decision{Reason: challenge.Stopped}
	}
	err := s.wait(s.Finish, time.Duration(s.Plan.GracefulStop))
	err = errors.Join(err, s.cancel()) // even if the records cannot be written
	if err != nil {
		return err
	}
	if err := s.wait(s.Stop, cancelTime); err != nil {
		return err
	}
	return s.abandon()
}

// cancel cancels all copies that are in flight.
func (s *session) cancel() error {
	ids := slices.Collect(maps.Keys(s.ledger.copies))
	if len(ids) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(s.Stop, cancelTime)
	defer cancel()
	if err := s.injector.Cancel(ctx, ids); err != nil && s.Stop.Err() == nil {
		return s.warn(fmt.Sprintf("copies could not be cancelled: %v", err))
	}
	return nil
}

// wait counts reports until no copy is in flight or verified any more, for a time or until ctx ends.
func (s *session) wait(ctx context.Context, limit time.Duration) error {
	ticks := time.NewTicker(tickTime)
	defer ticks.Stop()
	for until := s.clock.now().Add(limit); ; {
		now := s.clock.now()
		if err := s.news(now); err != nil {
			return err
		}
		if err := s.work(now); err != nil {
			return err
		}
		if len(s.ledger.copies)+len(s.waiting) == 0 || !now.Before(until) || ctx.Err() != nil {
			return nil
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
		}
	}
}

// abandon writes the last lines: of copies without a final report, of copies that were not verified
// in time, and of the time until now.
func (s *session) abandon() error {
	open := len(s.ledger.copies)
	for id := range s.ledger.copies {
		r := inject.Report{ID: id, At: time.Now(), State: inject.Cancelled, Moved: -1,
			Reason: fmt.Sprintf("no final report within %v after it was cancelled", unit.Duration(cancelTime))}
		if err := s.report(&r); err != nil {
			return err
		}
	}
	for id := range s.waiting {
		if err := s.verdict(verdict{id: id}); err != nil {
			return err
		}
	}
	now := s.clock.now()
	s.ledger.step(now)
	s.ledger.each.cut(now)
	s.ledger.all.cut(now)
	if err := s.write(now, nil); err != nil || open == 0 {
		return err
	}
	return s.warn(fmt.Sprintf("%d copies had no final report: they may still be made at the sites", open))
}
