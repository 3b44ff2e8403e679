package queue

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"weir/internal/db"
	"weir/internal/say"
	"weir/transfer"
	"weir/transfer/catalog/store"
)

// A Change is what a report, or a lease that ended, did.
type Change struct {
	Item    int64
	Epoch   int64
	Request int64           // 0: there is no such file
	State   transfer.State  // of the file, now
	Stale   bool            // the report was of an old epoch or came twice: kept, and nothing changed
	Ended   transfer.Status // of the request, if this was the last of its files; else ""
}

// Report writes attempts down and does what follows from them, in one
// transaction. Outcomes that the file's latest lease has not are kept as late
// attempts and change nothing; so a report may be repeated.
//
// from is the site whose agent reports: of copies that another one has made, or the
// coordinator, it is not heard. "" is the coordinator, which is heard of all.
func (q *Queue) Report(ctx context.Context, from string, outcomes []transfer.Outcome) (changes []Change, err error) {
	if len(outcomes) == 0 {
		return nil, nil
	}
	err = q.edit(ctx, func(e *edit) error {
		changes, err = e.report(from, outcomes)
		return err
	})
	return changes, err
}

func (e *edit) report(from string, outcomes []transfer.Outcome) ([]Change, error) {
	var items []int64
	outcomes = slices.Clone(outcomes)
	for i, o := range outcomes {
		items = append(items, o.Item)
		outcomes[i] = tidy(o)
	}
	if err := e.lockOf(items); err != nil {
		return nil, err
	}
	if _, err := e.loadItems(items); err != nil {
		return nil, err
	}
	held, err := leases(e.tx, items)
	if err != nil {
		return nil, err
	}
	var current, stale []transfer.Outcome
	changes := make([]Change, 0, len(outcomes))
	ended := map[int64]bool{}
	for _, o := range outcomes {
		c := Change{Item: o.Item, Epoch: o.Epoch}
		f := e.files[o.Item]
		l := held[o.Item]
		switch {
		case f == nil || l != nil && l.epoch == o.Epoch && !speaksFor(from, l.mode, l.source, l.dest):
			c.Stale = true
		case l != nil && l.epoch == o.Epoch && !ended[o.Item]:
			c.Request, ended[o.Item] = f.request, true
			current = append(current, o)
		default:
			c.Request, c.Stale = f.request, true
			stale = append(stale, o)
		}
		changes = append(changes, c)
	}
	if err := e.settle(current, held); err != nil {
		return nil, err
	}
	if err := e.late(from, stale); err != nil {
		return nil, err
	}
	e.tell(changes)
	return changes, nil
}

// speaksFor tells whether a reporter is who made a copy.
func speaksFor(from string, m transfer.Mode, source, dest string) bool {
	return from == "" || from == m.Mover(source, dest)
}

// tidy makes what comes from elsewhere fit for a database and for people.
func tidy(o transfer.Outcome) transfer.Outcome {
	o.Reason, o.Adler, o.Fault = text(o.Reason, 2000), text(o.Adler, 100), transfer.ErrorClass(text(string(o.Fault), 100))
	o.After, o.Size, o.Moved, o.Resumed = max(o.After, 0), max(o.Size, 0), max(o.Moved, 0), max(o.Resumed, 0)
	if math.IsNaN(o.CPU) || math.IsInf(o.CPU, 0) {
		o.CPU = 0
	}
	return o
}

// text is a text in one line, of at most n bytes.
func text(s string, n int) string {
	s = say.Plain(strings.ToValidUTF8(s, "?"))
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n-3], "") + "..."
	}
	return s
}

// tell completes changes when all is written.
func (e *edit) tell(changes []Change) {
	e.after = append(e.after, func() {
		told := map[int64]bool{}
		for i, c := range slices.Backward(changes) {
			f := e.files[c.Item]
			if f == nil {
				continue
			}
			changes[i].State = f.state.shown()
			r := e.requests[f.request]
			if !c.Stale && r.Status.Ended() && !told[r.ID] {
				changes[i].Ended = r.Status
				told[r.ID] = true
			}
		}
	})
}

// settle does what follows from the outcomes of leases.
func (e *edit) settle(outcomes []transfer.Outcome, held map[int64]*lease) error {
	var files, all []*file
	for _, o := range outcomes {
		all = append(all, e.files[o.Item])
		if o.Fault != "" || o.Size != e.files[o.Item].size {
			files = append(files, e.files[o.Item])
		}
	}
	replicas, err := e.replicas(files)
	if err == nil {
		err = e.informed(all)
	}
	if err != nil {
		return err
	}
	var again, lost []*file
	for _, o := range outcomes {
		f, l := e.files[o.Item], held[o.Item]
		r := e.requests[f.request]
		f.source, f.mode, f.adler = l.source, l.mode, cmp.Or(f.adler, e.learned[f.in].Adler)
		if o, err = e.spoiledThere(f, l, o); err != nil {
			return err
		}
		o = e.doubted(l.source, o)
		without := *f
		without.sourceFailures, without.again = f.sourceFailures.add(l.source, 0, true), true
		others := len(r.sources(&without, replicas[f.in])) > 0
		if o.Begin.IsZero() {
			o.Begin = l.began
		}
		if o.End.IsZero() {
			o.End = e.now
		}
		*f, o = applyOutcome(*f, o, r.terms(), others, e.now, e.random())
		e.over = append(e.over, f.id)
		e.attempts = append(e.attempts, transfer.Attempt{Item: f.id, Source: l.source, Dest: l.dest, Mode: l.mode, Outcome: o})
		r.Count.Attempts++
		e.learn(f, l, o)
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
	return e.blame(lost, replicas)
}

// spoiledThere blames a source from which the same wrong bytes have come twice: what is
// spoiled on the way is spoiled another way each time.
func (e *edit) spoiledThere(f *file, l *lease, o transfer.Outcome) (transfer.Outcome, error) {
	if o.Fault != transfer.Checksum || o.Adler == "" || o.Adler == f.adler {
		return o, nil
	}
	var before int64
	err := e.tx.Row("SELECT COUNT(*) FROM attempt WHERE item = ? AND source = ? AND fault = ? AND adler = ?", f.id, l.source, string(transfer.Checksum), adler(o.Adler)).Scan(&before)
	if err == nil && before > 0 {
		o.Fault = transfer.SourceBad
		o.Reason += ", as it had the last time: the copy at " + l.source + " is spoiled"
	}
	return o, err
}

// learn is what an attempt tells of more than its file.
func (e *edit) learn(f *file, l *lease, o transfer.Outcome) {
	e.after = append(e.after, func() { e.paces.add(f.request, o.Moved-l.moved, e.now) })
	switch o.Fault {
	case "":
		by := "request " + number(f.request)
		p := store.Placement{File: f.in, Site: l.dest}
		if l.source == l.dest { // a check: it lies where it was looked at
			p.Path = l.path
		}
		if o.Verified {
			p.Verified, p.By = e.now, by
			e.know(f, o.Adler, by)
		}
		e.placed = append(e.placed, p)
		if f.again && o.Verified && !o.Existed { // what was asked once more has proved to be good
			e.placed = append(e.placed, store.Placement{File: f.in, Site: l.source, Path: l.path, Verified: e.now, By: by})
		}
		e.full[l.dest] = ""
	case transfer.SourceBad:
		e.spoiled = append(e.spoiled, store.Spoiled{File: f.in, Site: l.source, Why: o.Reason})
	case transfer.DestFull:
		e.full[l.dest] = o.Reason
	}
}

// know has the catalog keep a checksum that it did not have.
func (e *edit) know(f *file, adler, by string) {
	if e.was[f.id].adler == "" && adler != "" && e.learned[f.in].Adler == "" {
		e.learned[f.in] = store.Learned{File: f.in, Adler: adler, By: by}
	}
}

// blame says of files that failed what each of their sources did wrong.
func (e *edit) blame(lost []*file, replicas map[int64][]replica) error {
	var items []int64
	for _, f := range lost {
		items = append(items, f.id)
	}
	if len(items) == 0 {
		return nil
	}
	past, err := db.All(e.tx, scanAttempt, "SELECT "+attemptColumns+" FROM attempt WHERE item {{in}} AND late = 0 ORDER BY item, epoch", items)
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
			f.reason = blamed(f, reasons[f.id], r, replicas[f.in])
		}
		e.event(r, f.id, f.name+" failed: "+f.reason)
	}
	return nil
}

// blamed is what all sources of a file did wrong.
func blamed(f *file, reasons map[string]string, r *request, all []replica) string {
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

// late keeps outcomes that came after their lease was given up, but for those
// that came twice.
func (e *edit) late(from string, outcomes []transfer.Outcome) error {
	var items []int64
	for _, o := range outcomes {
		items = append(items, o.Item)
	}
	if len(items) == 0 {
		return nil
	}
	known, err := db.All(e.tx, scanAttempt, "SELECT "+attemptColumns+" FROM attempt WHERE item {{in}}", items)
	if err != nil {
		return err
	}
	known = append(known, e.attempts...)
	for _, o := range outcomes {
		i := slices.IndexFunc(known, func(a transfer.Attempt) bool { return a.Item == o.Item && a.Epoch == o.Epoch && !a.Late })
		if i < 0 || known[i].Fault == o.Fault && known[i].Moved == o.Moved && known[i].End.Equal(o.End) {
			continue // never leased, or the same once more
		}
		first := known[i]
		if !speaksFor(from, first.Mode, first.Source, first.Dest) {
			continue
		}
		e.attempts = append(e.attempts, transfer.Attempt{Item: o.Item, Source: first.Source, Dest: first.Dest, Mode: first.Mode, Late: true, Outcome: o})
	}
	return nil
}
