package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"weir/measure"
)

// come takes in a worker.
func (k *controller) come(w *remote) {
	w.there = true
	k.hears(w)
	defer k.assignMonitor(w)
	k.workers = append(k.workers, w)
	k.show(w)
}

func (k *controller) handle(ctx context.Context, h workerInput) error {
	if h.comes {
		if h.worker.there { // since before we were killed
			k.hears(h.worker)
			return errors.Join(k.back(h.worker, h.hello), k.compare(h.worker, h.hello.Version))
		}
		k.come(h.worker)
		return errors.Join(k.back(h.worker, h.hello), k.greet(h.worker), k.compare(h.worker, h.hello.Version))
	}
	if h.err != nil {
		return k.lost(h.worker, h.err)
	}
	if !h.worker.there {
		return nil // was given up
	}
	k.hears(h.worker)
	for i := range h.reports {
		if err := k.report(h.worker, &h.reports[i]); err != nil {
			return err
		}
	}
	return k.proceed(ctx)
}

// report takes one report of a worker.
func (k *controller) report(w *remote, r *report) error {
	if v := r.Interval; v != nil {
		return k.interval(w, v, r.No)
	}
	defer w.written(r.No)
	switch {
	case r.Event != nil && r.Event.Kind == measure.EventEnd:
		if end := r.Event.Ending(); !k.leaving && k.ending.Outcome == "" && end.Outcome != measure.BrokenOff {
			k.ending = end // all workers end for the same reason, but for one that is lost
		}
	case r.Event != nil && k.events[happenedOf(r.Event)]: // written before we were killed
	case r.Event != nil:
		return k.Sink.Event(*r.Event)
	case r.Done && r.Error != "" && k.options.closed:
		w.there = false
		return fmt.Errorf("worker %s: %s", w.name, r.Error)
	case r.Done && r.Error != "":
		k.failed++
		return k.lost(w, errors.New(r.Error))
	case r.Done:
		return k.left(w)
	case r.Scratch != nil:
		return k.staged(w, r.Scratch)
	case r.Sample != nil:
		return k.sample(r.Sample)
	case r.Gone > 0 && r.Gone == w.step:
		w.gone = true
		k.gather()
	case r.Ready && r.After == w.step:
		cmp.Or(k.jobs, k.before).leaves(w)
		w.ready, w.in = true, false
		k.show(w)
	}
	return nil
}

// interval takes what a worker saw in a second or less.
func (k *controller) interval(w *remote, v *measure.Interval, no int64) error {
	if v.Step < 1 || k.options.JobPerClient && idle(v) {
		w.written(no) // it ends before it was given a step, or only waits to be told that it may leave
		return nil
	}
	if v.Start.Unix() != w.latest.Unix() {
		w.seconds++
	}
	w.latest = later(w.latest, v.Start)
	if w.jobs != "" {
		v.At(w.jobs)
	}
	fate := k.sum.add(v, claim{w, no})
	if fate != wasWritten {
		k.stop.Saw(v)
	}
	if fate != tooLate || w.late {
		return nil
	}
	w.late = true
	return k.warn(fmt.Sprintf("worker %s reported a second after it had been written: its operations count in a later one", w.name))
}

// left notes that a worker is done.
func (k *controller) left(w *remote) error {
	w.there, w.in = false, false
	k.show(w)
	k.assignMonitor(w)
	k.shareQuota(w)
	k.ended = k.ended || k.options.closed && len(k.present()) == 0
	k.alone = k.clock()
	err := k.journal.note(journalEntry{identity: identity{Session: w.session}, Gone: true})
	if left := k.gone(w, measure.Left); left != nil {
		err = errors.Join(err, k.event(measure.Event{Kind: measure.EventWorker, Text: fmt.Sprintf("worker %s has done its work", w.name),
			Worker: left}))
	}
	return err
}

// told returns the time up to which all connected workers have reported.
func (k *controller) told() time.Time {
	least := k.clock()
	for _, w := range k.workers {
		if w.there && w.held && w.latest.Before(least) {
			least = w.latest
		}
	}
	return least
}

// lost goes on without a worker.
func (k *controller) lost(w *remote, err error) error {
	if !w.there {
		return nil // it had said that it was done
	}
	w.there, w.in = false, false
	w.why = err.Error()
	w.hangUp()
	k.show(w)
	k.assignMonitor(w)
	k.shareQuota(w)
	k.alone = k.clock()
	k.said = fmt.Sprintf("worker %s: %v", w.name, err)
	text := fmt.Sprintf("worker %s was lost: %v", w.name, err)
	if w.held {
		text += "; its clients are missing from here on"
		if !k.options.closed && !k.options.JobPerClient {
			text += " until the next step, when others have them"
		}
	}
	k.gather()
	gone := k.gone(w, measure.Lost)
	if gone != nil && !w.latest.IsZero() {
		gone.Silent = max(0, (k.clock().Sub(w.latest) - time.Second).Seconds())
	}
	told := k.event(measure.Event{Kind: measure.EventWarning, Text: text, Worker: gone})
	return errors.Join(k.journal.note(journalEntry{identity: identity{Session: w.session}, Gone: true}), told)
}

// gone is what a worker did that is there no more; nil if it is a process of this machine.
func (k *controller) gone(w *remote, state string) *measure.Worker {
	if k.options.closed {
		return nil
	}
	return &measure.Worker{Name: w.name, State: state, Host: w.about.Host, Job: w.about.Job, Clients: w.clients, Seconds: w.seconds}
}
