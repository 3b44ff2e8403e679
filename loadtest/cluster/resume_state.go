package cluster

import (
	"fmt"
	"iter"
	"time"

	"weir/loadtest/measure"
	"weir/monitor"
)

// A ResumeState is the record of a killed controller, for the controller that continues its run.
// The workers are expected to reconnect, and their reports of the time without a controller are
// written as well.
type ResumeState struct {
	Intervals iter.Seq2[*measure.Interval, error]
	Events    iter.Seq2[*measure.Event, error]
	Samples   iter.Seq2[*monitor.Sample, error] // may be nil
	// Broken is the number of the step that was broken off, or 0. The first response of the step
	// source is that step, to be held again. If workers still hold it, it continues, and that
	// response is ignored.
	Broken int
	Text   string // text of the event "resume", which Control writes
}

// An eventKey identifies an event.
type eventKey struct {
	at   int64 // ns
	kind measure.EventKind
	text string
}

func eventKeyOf(e *measure.Event) eventKey { return eventKey{e.Time.UnixNano(), e.Kind, e.Text} }

// loadState loads the record of the killed controller.
func (k *controller) loadState(p *ResumeState, begun map[int]int) error {
	k.past, k.before = p, &jobStep{}
	if k.options.JobPerClient {
		k.sum.phase = k.before.phase // until a step begins
	}
	if p == nil {
		return nil
	}
	k.before.begun = begun[p.Broken]
	k.number = p.Broken
	k.loaded = k.began
	k.sum.past, k.sum.extents, k.events = map[slot]bool{}, map[slot]extent{}, map[eventKey]bool{}
	k.sum.written = map[int64]int{}
	for v, err := range p.Intervals {
		if err != nil {
			return err
		}
		at := k.sum.slotOf(v)
		k.sum.past[at] = true
		k.sum.written[at.second] = max(k.sum.written[at.second], at.step)
		if v.Step == p.Broken {
			k.before.replayInterval(v)
		}
		k.sum.extents[at.whole()] = extent{start: v.Start, seconds: v.Seconds}
	}
	for e, err := range p.Events {
		if err != nil {
			return err
		}
		k.events[eventKeyOf(e)] = true
		if e.Step == p.Broken && e.Worker != nil {
			k.before.replayEvent(e)
		}
	}
	return k.loadSamples()
}

// loadSamples determines the time up to which each host was monitored.
func (k *controller) loadSamples() error {
	if k.past.Samples == nil {
		return nil
	}
	k.watched = map[string]time.Time{}
	for s, err := range k.past.Samples {
		if err != nil {
			return err
		}
		k.watched[s.Host] = later(k.watched[s.Host], s.Time)
	}
	return nil
}

// replayInterval applies the record of a second of the step, in order of time.
func (j *jobStep) replayInterval(v *measure.Interval) {
	if j.first.IsZero() {
		j.first = v.Start
	}
	switch {
	case v.Phase == measure.Measured && j.steadyFrom.IsZero():
		j.steadyFrom = v.Start.Add(-time.Second)
	case v.Phase == measure.GracefulStop && j.stopFrom.IsZero():
		j.stopFrom = v.Start
	}
}

// replayEvent applies the record of a worker of the step, in order of time.
func (j *jobStep) replayEvent(e *measure.Event) {
	switch {
	case e.Worker.State == measure.Came:
		j.last, j.ended = e.Time, time.Time{}
	case e.Worker.State == measure.Left && j.ended.IsZero():
		j.ended = e.Time
	}
}

// reportResume writes, once it is known, how an aborted run continues.
func (k *controller) reportResume(holds bool) error {
	if k.past == nil || k.resumed {
		return nil
	}
	k.resumed = true
	k.started = k.started || holds
	e := measure.Event{Time: k.clock().UTC(), Kind: measure.EventResume, Text: k.past.Text}
	switch {
	case k.past.Broken > 0 && holds:
		k.skip = true
		e.Text += fmt.Sprintf("; workers still hold step %d, which goes on", k.past.Broken)
	case k.past.Broken > 0:
		e.Step = k.past.Broken
		e.Text += fmt.Sprintf("; step %d was broken off and is held again", k.past.Broken)
	}
	return k.Sink.Event(e)
}

// restore restores the state of a worker that reconnects, or of a new worker.
func (k *controller) restore(w *remote, h *registration) error {
	employed := w.step
	w.restore(h)
	if h.Scratch != nil {
		if err := k.staged(w, h.Scratch); err != nil {
			return err
		}
	}
	if k.before != nil && employed > 0 && w.step == 0 { // the controller was killed before the worker received it
		k.before.begun--
	}
	if w.absent {
		w.absent, k.started = false, true
	}
	if w.held {
		w.latest = time.Time{} // its next report shows its progress
	}
	if k.past == nil || w.step == 0 || w.step != k.past.Broken {
		return nil
	}
	return k.reportResume(true)
}
