package queue

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"weir/internal/say"
	"weir/transfer"
	"weir/transfer/catalog/store"
)

// A Change is the effect of a report, or of a lease that ended.
type Change struct {
	Item    int64
	Epoch   int64
	Request int64           // 0: the file does not exist
	State   transfer.State  // of the file, after the change
	Stale   bool            // the report was of an old epoch or a duplicate: stored, and nothing changed
	Ended   transfer.Status // of the request, if this was the last of its files; else ""
}

// Report stores attempts and applies their outcomes, in one transaction. Outcomes that do not
// belong to the file's latest lease are stored as late attempts and change nothing, so a report may
// be repeated.
//
// from is the site whose agent reports. Its outcomes are accepted only for leases that it holds. ""
// is the coordinator, which may report all.
func (q *Queue) Report(ctx context.Context, from string, outcomes []transfer.Outcome) (changes []Change, err error) {
	if len(outcomes) == 0 {
		return nil, nil
	}
	items := idsOf(outcomes, func(o transfer.Outcome) int64 { return o.Item })
	err = q.editFiles(ctx, items, func(e *edit, _ []*file) error {
		active, err := leases(e.tx, items)
		if err != nil {
			return err
		}
		var current, late []transfer.Outcome
		changes = make([]Change, 0, len(outcomes))
		ended := map[int64]bool{}
		for _, o := range outcomes {
			o = tidy(o)
			c := Change{Item: o.Item, Epoch: o.Epoch}
			f, l := e.files[o.Item], active[o.Item]
			isLatest := l != nil && l.epoch == o.Epoch
			switch {
			case f == nil, isLatest && !mayReport(from, l.mode, l.source, l.dest):
				c.Stale = true
			case isLatest && !ended[o.Item]:
				c.Request, ended[o.Item] = f.request, true
				current = append(current, o)
			default:
				c.Request, c.Stale = f.request, true
				late = append(late, o)
			}
			changes = append(changes, c)
		}
		if err := e.applyOutcomes(current, active); err != nil {
			return err
		}
		e.complete(changes)
		return e.addLate(from, late)
	})
	return changes, err
}

// mayReport reports whether the agent of a site, or the coordinator, makes a copy.
func mayReport(from string, m transfer.Mode, source, dest string) bool {
	return from == "" || from == m.Mover(source, dest)
}

// shownMode returns the mode of an attempt. A lease does not record whether the endpoints can copy
// from each other.
func shownMode(m transfer.Mode, o transfer.Outcome) transfer.Mode {
	if m == transfer.Third && o.Streamed {
		return transfer.Streamed
	}
	return m
}

// tidy makes an outcome from an agent fit for the database and for display.
func tidy(o transfer.Outcome) transfer.Outcome {
	o.Reason, o.Adler, o.Fault = text(o.Reason, 2000), text(o.Adler, 100), transfer.ErrorClass(text(string(o.Fault), 100))
	o.After, o.Size, o.Moved, o.Resumed = max(o.After, 0), max(o.Size, 0), max(o.Moved, 0), max(o.Resumed, 0)
	if math.IsNaN(o.CPU) || math.IsInf(o.CPU, 0) {
		o.CPU = 0
	}
	return o
}

// text returns a text in one line, of at most n bytes.
func text(s string, n int) string {
	s = say.Plain(strings.ToValidUTF8(s, "?"))
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n-3], "") + "..."
	}
	return s
}

// complete fills in the changes after everything is written.
func (e *edit) complete(changes []Change) {
	e.after = append(e.after, func() {
		reported := map[int64]bool{} // requests whose end is in a change
		for i, c := range slices.Backward(changes) {
			f := e.files[c.Item]
			if f == nil {
				continue
			}
			changes[i].State = f.state.shown()
			r := e.requests[f.request]
			if !c.Stale && r.Status.Ended() && !reported[r.ID] {
				changes[i].Ended, reported[r.ID] = r.Status, true
			}
		}
	})
}

// applyOutcomes applies the outcomes of active leases.
func (e *edit) applyOutcomes(outcomes []transfer.Outcome, active map[int64]*lease) error {
	var unsuccessful, all []*file
	for _, o := range outcomes {
		all = append(all, e.files[o.Item])
		if o.Fault != "" || o.Size != e.files[o.Item].size {
			unsuccessful = append(unsuccessful, e.files[o.Item])
		}
	}
	replicas, err := readReplicas(e.tx, unsuccessful)
	if err == nil {
		err = e.fillChecksums(all)
	}
	if err != nil {
		return err
	}
	var again, lost []*file
	for _, o := range outcomes {
		f, l := e.files[o.Item], active[o.Item]
		r := e.requests[f.request]
		f.source, f.mode, f.adler = l.source, l.mode, cmp.Or(f.adler, e.checksums[f.in].Adler)
		if o, err = e.blameSource(f, l, o); err != nil {
			return err
		}
		o = e.breakCircuit(l.source, o)
		without := *f
		without.sourceFailures, without.again = f.sourceFailures.add(l.source, 0, true), true
		others := len(r.sources(&without, replicas[f.replicaKey()])) > 0
		if o.Begin.IsZero() {
			o.Begin = l.began
		}
		if o.End.IsZero() {
			o.End = e.now
		}
		*f, o = applyOutcome(*f, o, r.termsOf(l), others, e.now, e.q.random())
		e.over = append(e.over, f.id)
		e.attempts = append(e.attempts, transfer.Attempt{Item: f.id, Source: l.source, Dest: l.dest, Mode: shownMode(l.mode, o), Outcome: o})
		r.Count.Attempts++
		e.learn(f, l, o)
		if (f.state == done || f.state == skipped) && r.Archive > 0 {
			e.archive(r, f)
		}
		switch f.state {
		case ready:
			again = append(again, f)
		case failed:
			lost = append(lost, f)
		}
	}
	if err := e.route(again); err != nil {
		return err
	}
	return e.explain(lost, replicas)
}

// blameSource blames a source that has sent the same wrong bytes twice: bytes that are corrupted in
// transit differ each time.
func (e *edit) blameSource(f *file, l *lease, o transfer.Outcome) (transfer.Outcome, error) {
	if o.Fault != transfer.Checksum || o.Adler == "" || o.Adler == f.adler {
		return o, nil
	}
	var before int64
	err := e.tx.Row("SELECT COUNT(*) FROM attempt WHERE item = ? AND source = ? AND fault = ? AND adler = ?",
		f.id, l.source, string(transfer.Checksum), adler(o.Adler)).Scan(&before)
	if err == nil && before > 0 {
		o.Fault = transfer.SourceBad
		o.Reason += ", as it had the last time: the copy at " + l.source + " is corrupt"
	}
	return o, err
}

// learn stores the results of an attempt about replicas and the destination.
func (e *edit) learn(f *file, l *lease, o transfer.Outcome) {
	e.after = append(e.after, func() { e.q.rates.add(f.request, o.Moved-l.moved, e.now) })
	if f.in < 0 { // it is not in the catalog
		e.learnFull(l, o)
		return
	}
	switch o.Fault {
	case "":
		by := "request " + number(f.request)
		p := store.Placement{File: f.in, Site: l.dest}
		if l.source == l.dest { // a check: the path of the checked file
			p.Path = l.path
		}
		if o.Verified {
			p.Verified, p.By = e.now, by
			if e.was[f.id].adler == "" && o.Adler != "" && e.checksums[f.in].Adler == "" { // the catalog does not have it
				e.checksums[f.in] = store.Checksum{File: f.in, Adler: o.Adler, By: by}
			}
		}
		e.placed = append(e.placed, p)
		if f.again && o.Verified && !o.Existed { // a replica that was marked bad is good
			e.placed = append(e.placed, store.Placement{File: f.in, Site: l.source, Path: l.path, Verified: e.now, By: by})
		}
	case transfer.SourceBad:
		e.bad = append(e.bad, store.BadReplica{File: f.in, Site: l.source, Why: o.Reason})
	}
	e.learnFull(l, o)
}

// learnFull records whether the destination is full.
func (e *edit) learnFull(l *lease, o transfer.Outcome) {
	switch o.Fault {
	case "":
		e.full[l.dest] = ""
	case transfer.DestFull:
		e.full[l.dest] = o.Reason
	}
}

// explain gives failed files a reason that contains the last failure of each of their sources.
func (e *edit) explain(lost []*file, replicas map[int64][]replica) error {
	if len(lost) == 0 {
		return nil
	}
	past, err := attemptsOf(e.tx, "item {{in}} AND late = 0 ORDER BY item, epoch", idsOf(lost, func(f *file) int64 { return f.id }))
	if err != nil {
		return err
	}
	reasons := map[int64]map[string]string{} // the last of each source
	for _, a := range append(past, e.attempts...) {
		if reasons[a.Item] == nil {
			reasons[a.Item] = map[string]string{}
		}
		reasons[a.Item][a.Source] = a.Reason
	}
	for _, f := range lost {
		r := e.requests[f.request]
		switch f.fault {
		case transfer.Occupied, transfer.DestFull, transfer.Unverified, transfer.Permanent:
		default:
			f.reason = failureReason(f, reasons[f.id], r, replicas[f.replicaKey()])
		}
		e.event(r, f.id, f.name+" failed: "+f.reason)
	}
	return nil
}

// failureReason joins the failures of all sources of a file.
func failureReason(f *file, reasons map[string]string, r *request, all []replica) string {
	var parts []string
	counts := f.sourceFailures.counts()
	for _, s := range f.sourceFailures.steps() {
		part := s.site + ": " + reasons[s.site]
		if s.failures > 1 {
			part += " (" + say.Times(int64(s.failures)) + ")"
		}
		parts = append(parts, part)
	}
	for _, one := range all {
		if _, asked := counts[one.site]; !asked && one.bad != "" && r.admits(one.site) {
			parts = append(parts, one.site+" was not asked: "+one.bad)
		}
	}
	if len(parts) == 0 {
		return f.reason
	}
	return strings.Join(parts, "; ")
}

// addLate stores outcomes that came after their lease had ended, each once.
func (e *edit) addLate(from string, outcomes []transfer.Outcome) error {
	if len(outcomes) == 0 {
		return nil
	}
	known, err := attemptsOf(e.tx, "item {{in}}", idsOf(outcomes, func(o transfer.Outcome) int64 { return o.Item }))
	known = append(known, e.attempts...)
	for _, o := range outcomes {
		i := slices.IndexFunc(known, func(a transfer.Attempt) bool { return a.Item == o.Item && a.Epoch == o.Epoch && !a.Late })
		if i < 0 || known[i].Fault == o.Fault && known[i].Moved == o.Moved && known[i].End.Equal(o.End) {
			continue // never leased, or the same report again
		}
		if first := known[i]; mayReport(from, first.Mode, first.Source, first.Dest) {
			first.Late, first.Outcome = true, o
			e.attempts = append(e.attempts, first)
		}
	}
	return err
}

// brokenAfter is the number of consecutive bad files at a source after which the source is
// suspected instead of the files: its storage may not be mounted.
const brokenAfter = 20

// brokenPause is the time that a file waits before it is requested from such a source again.
const brokenPause = time.Minute

// A circuitBreaker counts, for each source, the bad files since its last good file, as far as this
// process has handled them.
type circuitBreaker struct {
	mu  sync.Mutex
	bad map[string]int
}

func (b *circuitBreaker) count(source string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bad[source]
}

// A badRun is the result of one edit for a source: the number of consecutive bad files, and whether
// a good file preceded them.
type badRun struct {
	n     int
	since bool
}

// add adds the results of an edit. Edits may end in any order.
func (b *circuitBreaker) add(seen map[string]badRun) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bad == nil {
		b.bad = map[string]int{}
	}
	for site, run := range seen {
		if run.since {
			b.bad[site] = 0
		}
		if b.bad[site] += run.n; b.bad[site] == 0 {
			delete(b.bad, site)
		}
	}
}

// BrokenSources returns the sources with too many consecutive bad files, and the reasons. Their
// replicas are not marked as bad any more.
func (q *Queue) BrokenSources() map[string]string {
	q.breaker.mu.Lock()
	defer q.breaker.mu.Unlock()
	all := map[string]string{}
	for site, n := range q.breaker.bad {
		if n > brokenAfter {
			all[site] = brokenReason(n)
		}
	}
	return all
}

func brokenReason(n int) string {
	return "the last " + say.Plural(n, "file") + " that were asked for were missing or bad there, one after the other: is its storage mounted?"
}

// breakCircuit counts the result of a source. A bad file of a broken source is tried again later,
// and its replica is not marked as bad.
func (e *edit) breakCircuit(source string, o transfer.Outcome) transfer.Outcome {
	if o.Fault != "" && o.Fault != transfer.SourceBad {
		return o
	}
	if e.badRuns == nil {
		e.badRuns = map[string]badRun{}
		e.after = append(e.after, func() { e.q.breaker.add(e.badRuns) })
	}
	if o.Fault == "" {
		e.badRuns[source] = badRun{since: true}
		return o
	}
	run := e.badRuns[source]
	run.n++
	e.badRuns[source] = run
	n := run.n
	if !run.since {
		n += e.q.breaker.count(source)
	}
	if n > brokenAfter {
		o.Fault, o.After = transfer.Throttled, brokenPause
		o.Reason += "; it is tried again, as " + brokenReason(n)
	}
	return o
}
