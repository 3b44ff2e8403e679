package conduct

import (
	"context"
	"fmt"
	"slices"
	"time"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/challenge"
	"weir/loadtest/challenge/inject"
	"weir/loadtest/measure"
	"weir/loadtest/results"
)

// left is the state of a challenge that is resumed, as its run directory has it.
type left struct {
	held    time.Duration // of the profile
	stages  map[int]bool  // that have begun
	final   map[int64]bool
	next    []int64 // number of the next copy of each link, as far as final lines have it
	totals  totals
	recent  []recent      // that ended after the last cell that was written, or were reported after it
	all     time.Time     // end of the last cell of intervals.jsonl
	each    []time.Time   // of links.jsonl, for each link: a kill may have left a cell without some of them
	begin   time.Time     // of the first stage
	last    time.Time     // sign of life of the process before
	copies  []inject.Copy // without a final line
	begun   int64         // copies that intervals.jsonl has as begun, less the copies that are known to have begun
	started []int         // the same of each link, by links.jsonl
	ended   int64         // copies that intervals.jsonl has as ended, less the copies whose final lines were read
	ends    []int         // the same of each link, by links.jsonl
}

// A recent is a copy whose end is not in all files.
type recent struct {
	results.Transfer
	all, each bool // it is not in intervals.jsonl, not in links.jsonl
}

// readLeft reads the state of the challenge c from its run directory.
func readLeft(run *results.Run, c *challenge.Challenge) (*left, error) {
	n := len(c.Links)
	l := &left{stages: map[int]bool{}, final: map[int64]bool{}, next: make([]int64, n), started: make([]int, n), ends: make([]int, n),
		each: make([]time.Time, n)}
	if err := l.readLinks(run, c); err != nil {
		return nil, err
	}
	for _, read := range []func(*results.Run) error{l.readIntervals, l.readEvents, l.readSamples} {
		if err := read(run); err != nil {
			return nil, err
		}
	}
	if err := l.readTransfers(run, c); err != nil {
		return nil, err
	}
	ending, err := run.Ending()
	if err == nil && ending != nil && l.held >= c.Duration() {
		err = fmt.Errorf("%s: %w", run.Dir, ErrOver)
	}
	return l, err // a process that was killed after the profile has not ended all copies
}

func (l *left) readIntervals(run *results.Run) error {
	for iv, err := range run.Intervals() {
		if err != nil {
			return err
		}
		took := time.Duration(iv.Seconds * float64(time.Second))
		l.all = iv.Start.Add(took)
		l.begun += iv.Begun
		l.ended += iv.Done + iv.Errors()
		if iv.Phase == measure.Measured {
			l.held += took
		}
	}
	l.last = l.all
	return nil
}

func (l *left) readLinks(run *results.Run, c *challenge.Challenge) error {
	index := map[[2]string]int{}
	for i := range c.Links {
		index[[2]string{c.Links[i].From, c.Links[i].To}] = i
	}
	for v, err := range run.Links() {
		if err != nil {
			return err
		}
		if i, ok := index[[2]string{v.Source, v.Dest}]; ok {
			l.started[i] += v.Started
			l.ends[i] += v.Done + v.Failed
			l.each[i] = v.Start.Add(time.Duration(v.Seconds * float64(time.Second)))
		}
	}
	return nil
}

func (l *left) readEvents(run *results.Run) error {
	for e, err := range run.Events() {
		if err != nil {
			return err
		}
		if e.Kind == measure.EventStep {
			l.stages[e.Step] = true
			if l.begin.IsZero() {
				l.begin = e.Time
			}
		}
	}
	if l.all.IsZero() {
		l.all, l.last = l.begin, l.begin
	}
	for i := range l.each {
		if l.each[i].IsZero() {
			l.each[i] = l.begin
		}
	}
	return nil
}

func (l *left) readSamples(run *results.Run) error {
	for v, err := range run.Samples() {
		if err != nil {
			return err
		}
		if len(l.stages) > 0 && v.Time.After(l.last) {
			l.last = v.Time
		}
	}
	return nil
}

func (l *left) readTransfers(run *results.Run, c *challenge.Challenge) error {
	for t, err := range run.Transfers() {
		if err != nil {
			return err
		}
		l.final[t.Request] = true
		if link, n := c.CopyOf(t.Request); link >= 0 {
			l.next[link] = max(l.next[link], n+1)
			l.known(link)
			l.addRecent(t, link)
		}
		l.totals.end(t)
		for _, at := range []time.Time{t.Asked, t.End} {
			if at.After(l.last) {
				l.last = at
			}
		}
	}
	return nil
}

// addRecent keeps a copy whose end the process before has not counted: it ended after the last cell, or
// it was reported late, so that it belonged to a later cell. The first copies are those that were counted.
func (l *left) addRecent(t *results.Transfer, link int) {
	r := recent{*t, t.End.After(l.all), t.End.After(l.each[link])}
	if t.Done || t.Class.Failure() {
		if !r.all {
			r.all = l.ended <= 0
			l.ended--
		}
		if !r.each {
			r.each = l.ends[link] <= 0
			l.ends[link]--
		}
	}
	if r.all || r.each {
		l.recent = append(l.recent, r)
	}
}

// known counts a copy that was requested.
func (l *left) known(link int) {
	l.begun--
	l.started[link]--
}

// countBegun counts, in a cell each of all links and of single links, copies that were requested and
// that the process before has not counted.
func (l *left) countBegun(each, all *cell, link, copies int) {
	if n := min(copies, -l.started[link]); n > 0 {
		each.parts[link].started += n
		l.started[link] += n
	}
	if n := min(int64(copies), -l.begun); n > 0 {
		all.parts[0].started += int(n)
		all.sum.Begun += n
		l.begun += n
	}
}

// takeOver has the injector take over the copies of a challenge that is resumed, and has copies that
// had ended removed. The manifest has them: a copy is recorded before it is requested, and its id is
// its seed.
func (s *session) takeOver() error {
	if s.left == nil {
		return nil
	}
	s.next = s.left.next
	made, err := s.manifest.Left()
	if err != nil {
		return err
	}
	now := s.clock.now()
	for _, m := range made {
		link, n := s.c.CopyOf(int64(m.Seed))
		if link < 0 {
			continue
		}
		c := s.copyOf(link, n)
		if s.manifestPath(&c) != m.Path {
			continue // a file at a source, or a folder
		}
		s.next[link] = max(s.next[link], n+1)
		if s.left.final[c.ID] {
			s.remove(&c, now, s.remover != nil) // at a site it may be a foreign file
			continue
		}
		s.left.copies = append(s.left.copies, c)
		s.left.known(link)
	}
	s.left.final = nil // of all copies before: it is no longer needed
	if len(s.left.copies) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(s.Finish, checkTimeout)
	defer cancel()
	if err := s.injector.Resume(ctx, s.left.copies); err != nil {
		return fmt.Errorf("taking over %s: %w", say.Plural(len(s.left.copies), "copy"), err)
	}
	return nil
}

// resume writes the seconds that the process before had not written yet, and that the challenge goes
// on.
func (s *session) resume(now time.Time) error {
	l := s.left
	if err := s.fillGap(); err != nil {
		return err
	}
	stage, _, _ := timeline{s.c, now.Add(-l.held)}.at(now)
	if l.stages[stage] {
		s.notes.stage = stage
		s.watch.SetStep(stage)
	}
	text := fmt.Sprintf("resumed by weir %s: %v of %v were held", s.About.Weir, unit.Duration(l.held.Round(time.Second)),
		unit.Duration(s.c.Duration()))
	if n := len(l.copies); n > 0 {
		text += "; " + say.Plural(n, "copy") + " had been requested and not ended"
	}
	if s.c.Ceiling > 0 {
		text += fmt.Sprintf("; the ceiling is %v", s.c.Ceiling)
	}
	return s.event(measure.Event{Time: now, Kind: measure.EventResume, Text: text}) // no step is held again
}

// fillGap writes the last seconds of the process before, which it had kept open for later reports.
// They count as held. Their bytes are the bytes of the copies that have a final line.
func (s *session) fillGap() error {
	l := s.left
	if l.all.IsZero() || !l.last.After(l.all) && !l.last.After(l.first()) {
		return nil
	}
	g := s.ledgerFrom(l.all.Add(-l.held), l.all)
	g.each.cells, g.each.next = nil, l.first()
	last := l.last.Add(-1) // a cell that begins with the last moment would be empty, and is not written
	g.all.extend(last, g.line)
	g.each.extend(slices.MaxFunc([]time.Time{last, l.first()}, time.Time.Compare), g.line)
	for i := range l.recent {
		r := &l.recent[i]
		t := &r.Transfer
		link, _ := s.c.CopyOf(t.Request)
		progress := s.c.Inject.By == challenge.Direct
		if r.each {
			g.each.past(t, link, l.each[link], progress)
			g.each.at(t.End).parts[link].end(t)
		}
		if r.all {
			g.all.past(t, 0, l.all, progress)
			g.all.at(t.End).parts[0].end(t)
			addEnd(&g.all.at(t.End).sum, t)
		}
		if t.Asked.After(l.all) {
			l.countBegun(g.each.at(t.Asked), g.all.at(t.Asked), link, 1)
		}
	}
	for _, v := range []*series{&g.each, &g.all} {
		v.cut(l.last)
		for _, c := range v.cells {
			share := 0.0
			if _, share, c.over = g.line.at(c.start); c.over {
				share = 0
			}
			c.retarget(s.c.Links, share)
			if v == &g.all && !c.over {
				l.held += c.end.Sub(c.start)
			}
		}
	}
	s.ledger = g
	return s.write(l.last, l.each)
}

// first returns the earliest end of the lines of a link.
func (l *left) first() time.Time { return slices.MinFunc(l.each, time.Time.Compare) }

// past adds the part of a copy after a moment, evenly over its time. Without reports of its progress, none
// of its bytes were counted before.
func (s *series) past(t *results.Transfer, part int, from time.Time, progress bool) {
	begin := t.Begin
	if begin.IsZero() {
		begin = t.Asked
	}
	bytes := t.Moved
	if begin.IsZero() || !t.End.After(from) {
		if !progress {
			s.at(from).parts[part].moved += bytes
		}
		return
	}
	if begin.Before(from) {
		if progress {
			bytes = int64(float64(bytes) * float64(t.End.Sub(from)) / float64(t.End.Sub(begin)))
		}
		begin = from
	}
	s.spread(part, begin, t.End, bytes)
	asked := t.Asked
	if asked.IsZero() {
		asked = begin
	}
	s.overlaps(asked, t.End, func(c *cell, seconds float64) { c.parts[part].flight += seconds })
}

// retarget sets the targets of a cell.
func (c *cell) retarget(links []challenge.Link, share float64) {
	for i := range links {
		part := &c.parts[min(i, len(c.parts)-1)]
		part.target += share * bytesPerSecond(links[i].Rate) * c.seconds()
	}
}
