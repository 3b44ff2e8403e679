package conduct

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"weir/loadtest/challenge"
	"weir/loadtest/challenge/inject"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/storage"
)

// An ended is a copy that has ended at the service, and is verified before its final line.
type ended struct {
	copy *copyState
	line results.Transfer
}

// totals count the copies that have their final line.
type totals struct{ done, failed, cancelled int64 }

func (n *totals) end(t *results.Transfer) {
	switch {
	case t.Done:
		n.done++
	case t.Class.Failure():
		n.failed++
	default:
		n.cancelled++
	}
}

// report counts a report. If it is the last of its copy, the copy is verified, or has its final line.
func (s *session) report(r *inject.Report) error {
	r.At = s.clock.at(r.At)
	if !r.Begin.IsZero() {
		r.Begin = s.clock.at(r.Begin)
	}
	c := s.ledger.report(r, r.At)
	if c == nil {
		return nil
	}
	line := s.line(c, r)
	if r.Exists { // it stays: somebody else made it
		s.ledger.end(c.Link, &line)
		err := s.out.Transfer(&line)
		listed := s.manifestPath(&c.Copy)
		s.commits.add(func() { _ = s.manifest.Removed(listed) }) // else clean finds that it is foreign
		return errors.Join(err, s.failure(&line))
	}
	if r.State != inject.Done || r.Verified || !s.c.Verify {
		return s.final(c, &line)
	}
	if line.LastByte.IsZero() { // the time of the verification by weir is known
		line.LastByte = line.End
	}
	s.waiting[c.ID] = &ended{c, line}
	to, id, path, file := line.Dest, c.ID, c.Dest, c.Source
	s.pool.add("verify "+to, time.Time{}, func(ctx context.Context) {
		ok, err := s.sites.Verify(ctx, to, path, file)
		s.inbox.verified(verdict{id: id, verified: ok, err: err, at: s.clock.now()})
	})
	return nil
}

// line returns the line of a copy that has ended.
func (s *session) line(c *copyState, r *inject.Report) results.Transfer {
	l := &s.c.Links[c.Link]
	t := results.Transfer{Step: c.stage, Case: l.Name(), Request: c.ID, File: c.Dest, Size: c.Source.Size, Source: l.From, Dest: l.To,
		Mode: string(l.Mode), Asked: c.asked, Begin: c.begin, LastByte: c.full, End: r.At, Moved: c.moved,
		Done: r.State == inject.Done, Verified: r.Verified,
		Last: true, Class: r.Class, Reason: r.Reason, Site: r.Site, Expired: r.Expired, Label: r.Label}
	switch {
	case t.Done:
		t.Class, t.Reason, t.Site = storage.None, "", ""
	case r.State == inject.Cancelled:
		t.Class = storage.Canceled
	case t.Class == storage.None:
		t.Class = storage.Other
	}
	return t
}

// verdict writes the final line of a copy that was verified. A copy that was not verified before
// the end of the challenge counts as done.
func (s *session) verdict(v verdict) error {
	w := s.waiting[v.id]
	if w == nil {
		return nil
	}
	delete(s.waiting, v.id)
	if v.at.After(w.line.End) {
		w.line.End = v.at
	}
	switch {
	case v.err == nil:
		w.line.Verified = v.verified
	case errors.Is(v.err, context.Canceled): // Stop has ended the challenge
	default:
		w.line.Done, w.line.Class, w.line.Site = false, storage.Classify(v.err), w.line.Dest
		w.line.Reason = "verification of the copy: " + oneLine(v.err.Error())
	}
	return s.final(w.copy, &w.line)
}

// final writes the final line of a copy, counts it, and has the copy removed.
func (s *session) final(c *copyState, t *results.Transfer) error {
	if err := s.out.Transfer(t); err != nil {
		return err
	}
	s.ledger.end(c.Link, t)
	due := s.clock.now()
	if t.Done {
		due = due.Add(time.Duration(s.c.Files.Linger))
	}
	damaged := t.Class == storage.Checksummed && t.Site == t.Dest
	s.remove(&c.Copy, due, c.state == inject.Done || damaged)
	if !t.Class.Failure() {
		return nil
	}
	return s.failure(t)
}

// remove has a copy removed when it is due, and its final line is on stable storage. made reports whether the
// service has made it: there may be a foreign file at the path of another copy. Those have a queue of their own,
// because they need not linger.
func (s *session) remove(c *inject.Copy, due time.Time, made bool) {
	site, path, id, listed := s.c.Links[c.Link].To, c.Dest, c.ID, s.manifestPath(c)
	queue := "remove " + site
	if !made {
		queue = "remove failed " + site
	}
	do := func(ctx context.Context) {
		// if that fails, the copy stays in the manifest: the clean-up tries again, and reports the error
		switch {
		case s.remover == nil && made:
			_ = s.sites.Remove(ctx, site, path)
		case s.remover == nil:
			_ = s.sites.RemoveRest(ctx, id)
		case !made || s.remover.Remove(ctx, []int64{id}) == nil:
			_ = s.manifest.Removed(listed)
		}
	}
	s.commits.add(func() { s.pool.add(queue, due, do) })
}

// failure writes an event for the first failure of its class and site in the stage.
func (s *session) failure(t *results.Transfer) error {
	if !s.notes.first(t.Class.String() + " " + t.Site) {
		return nil
	}
	text := fmt.Sprintf("copy from %s: %s", t.Case, oneLine(t.Reason))
	if t.Expired {
		text += " (its credentials had ended)"
	}
	return s.event(measure.Event{Time: t.End, Kind: measure.EventError, Step: s.notes.stage, Class: t.Class, On: t.Site,
		What: storage.Copy.String(), Text: text})
}

// write writes the cells that end at a moment or before it. written has, for each link, the end of the
// cells that have a line already; nil: there are none.
func (s *session) write(until time.Time, written []time.Time) error {
	for _, c := range s.ledger.all.take(until) {
		if c.seconds() <= 0 {
			continue
		}
		if err := s.out.Interval(c.interval()); err != nil {
			return err
		}
	}
	for _, c := range s.ledger.each.take(until) {
		for i := range c.parts {
			if c.seconds() <= 0 || written != nil && !c.end.After(written[i]) {
				continue
			}
			if err := s.out.LinkInterval(c.link(i, &s.c.Links[i])); err != nil {
				return err
			}
		}
	}
	return nil
}

// link returns the line of a link in a cell.
func (c *cell) link(i int, l *challenge.Link) *results.LinkInterval {
	p, seconds := &c.parts[i], c.seconds()
	return &results.LinkInterval{Start: c.start.UTC(), Seconds: seconds, Stage: c.stage, Source: l.From, Dest: l.To,
		Target: math.Round(1e3*p.target/seconds) / 1e3, Moved: p.moved, Wrong: p.wrong, Flight: p.flight / seconds, Queued: p.queued / seconds,
		Allowed: p.allowed, Started: p.started, Done: p.done, Failed: p.failed, Late: math.Round(1e3*c.late) / 1e3,
		Reason: p.reason()}
}
