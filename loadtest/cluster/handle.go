package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"weir/loadtest/measure"
)

// admit adds a worker.
func (k *controller) admit(w *remote) {
	w.there = true
	k.heard(w)
	defer k.assignMonitor(w)
	k.workers = append(k.workers, w)
	k.show(w)
	switch { // a lost worker may return as another worker, after the last orders to all
	case k.leaving:
		_ = w.say(order{Leave: true})
	case k.ended:
		_ = w.say(order{End: true})
	}
}

func (k *controller) handle(ctx context.Context, h workerInput) error {
	if h.registers {
		if h.worker.there { // since before this controller was restarted
			k.heard(h.worker)
			return errors.Join(k.restore(h.worker, h.registration), k.checkVersion(h.worker, h.registration.Version))
		}
		k.admit(h.worker)
		return errors.Join(k.restore(h.worker, h.registration), k.announceWorker(h.worker), k.checkVersion(h.worker, h.registration.Version))
	}
	if h.err != nil {
		return k.dropWorker(h.worker, h.err)
	}
	if !h.worker.there {
		return nil // it was given up
	}
	k.heard(h.worker)
	for i := range h.reports {
		if err := k.report(h.worker, &h.reports[i]); err != nil {
			return err
		}
	}
	return k.proceed(ctx)
}

// report handles one report of a worker.
func (k *controller) report(w *remote, r *report) error {
	if v := r.Interval; v != nil {
		return k.interval(w, v, r.No)
	}
	defer w.written(r.No)
	switch {
	case r.Event != nil && r.Event.Kind == measure.EventEnd:
		if end := r.Event.Ending(); !k.leaving && k.ending.Outcome == "" && end.Outcome != measure.BrokenOff {
			k.ending = end // all workers except lost workers end for the same reason
		}
	case r.Event != nil && k.events[eventKeyOf(r.Event)]: // written before the restart
	case r.Event != nil && r.Event.Kind == measure.EventWarning:
		if k.warned[r.Event.Text] == k.number+1 { // another worker gave this warning
			return nil
		}
		k.warned[r.Event.Text] = k.number + 1
		return k.Sink.Event(*r.Event)
	case r.Event != nil:
		return k.Sink.Event(*r.Event)
	case r.Done && r.Error != "" && k.options.closed:
		w.there = false
		return fmt.Errorf("worker %s: %s", w.name, r.Error)
	case r.Done && r.Error != "":
		k.failed++
		return k.dropWorker(w, errors.New(r.Error))
	case r.Done:
		return k.workerDone(w)
	case r.Scratch != nil:
		return k.staged(w, r.Scratch)
	case r.Sample != nil:
		return k.sample(r.Sample)
	case r.Gone > 0 && r.Gone == w.step:
		w.gone = true
		k.gather()
	case r.Ready && r.After == w.step:
		cmp.Or(k.jobs, k.before).jobEnded(w)
		w.ready, w.in = true, false
		k.show(w)
	}
	return nil
}

// interval records a worker's measurements of a second or less.
func (k *controller) interval(w *remote, v *measure.Interval, no int64) error {
	if v.Step < 1 || k.options.JobPerClient && idle(v) {
		w.written(no) // it ended before its first step, or waits for permission to leave
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

// workerDone records that a worker is done.
func (k *controller) workerDone(w *remote) error {
	w.there, w.in = false, false
	k.show(w)
	k.assignMonitor(w)
	k.shareQuota(w)
	k.ended = k.ended || k.options.closed && len(k.present()) == 0
	k.emptySince = k.clock()
	err := k.journal.note(journalEntry{identity: identity{Session: w.session}, Gone: true})
	if left := k.workerSummary(w, measure.Left); left != nil {
		err = errors.Join(err, k.event(measure.Event{Kind: measure.EventWorker, Text: fmt.Sprintf("worker %s finished", w.name),
			Worker: left}))
	}
	return err
}

// reportedUntil returns the time up to which all connected workers have reported.
func (k *controller) reportedUntil() time.Time {
	least := k.clock()
	for _, w := range k.workers {
		if w.there && w.held && w.latest.Before(least) {
			least = w.latest
		}
	}
	return least
}

// dropWorker continues the run without a worker.
func (k *controller) dropWorker(w *remote, err error) error {
	if !w.there {
		return nil // it had reported that it was done
	}
	w.there, w.in = false, false
	w.why = err.Error()
	w.disconnect()
	k.show(w)
	k.assignMonitor(w)
	k.shareQuota(w)
	k.emptySince = k.clock()
	k.lastError = fmt.Sprintf("worker %s: %v", w.name, err)
	text := fmt.Sprintf("worker %s was lost: %v", w.name, err)
	if w.held {
		text += "; its clients are missing from here on"
		if !k.options.closed && !k.options.JobPerClient {
			text += " until the next step, when other workers have them"
		}
	}
	k.gather()
	gone := k.workerSummary(w, measure.Lost)
	if gone != nil && !w.latest.IsZero() {
		gone.Silent = max(0, (k.clock().Sub(w.latest) - time.Second).Seconds())
	}
	warned := k.event(measure.Event{Kind: measure.EventWarning, Text: text, Worker: gone})
	return errors.Join(k.journal.note(journalEntry{identity: identity{Session: w.session}, Gone: true}), warned)
}

// workerSummary returns the outcome of a worker that is no longer connected; nil if it is a process
// of this machine.
func (k *controller) workerSummary(w *remote, state string) *measure.Worker {
	if k.options.closed {
		return nil
	}
	return &measure.Worker{Name: w.name, State: state, Host: w.about.Host, Job: w.about.Job, Clients: w.clients, Seconds: w.seconds}
}
