package cluster

import (
	"fmt"
	"iter"
	"time"

	"weir/measure"
	"weir/monitor"
)

// A ResumeState is what a controller that was killed has written, for one that goes on in its place. Its workers are
// expected to come back, and their reports of that time are written as well.
type ResumeState struct {
	Intervals iter.Seq2[*measure.Interval, error]
	Events    iter.Seq2[*measure.Event, error]
	Samples   iter.Seq2[*monitor.Sample, error] // nil: none
	// Broken is the number of the step that was broken off, 0 if none was; the step source's first answer is that step, to
	// be held again. If workers still hold it, it goes on, and that answer is passed over.
	Broken int
	Text   string // of the event "resume", which Control writes
}

// happened is what makes two events the same.
type happened struct {
	at   int64 // ns
	kind measure.EventKind
	text string
}

func happenedOf(e *measure.Event) happened { return happened{e.Time.UnixNano(), e.Kind, e.Text} }

// remember takes in what was written before.
func (k *controller) remember(p *ResumeState, begun map[int]int) error {
	k.past, k.before = p, &jobStep{}
	if k.options.JobPerClient {
		k.sum.phase = k.before.phase // until there is a step
	}
	if p == nil {
		return nil
	}
	k.before.begun = begun[p.Broken]
	k.number = p.Broken
	k.loaded = k.began
	k.sum.past, k.sum.extents, k.events = map[slot]bool{}, map[slot]extent{}, map[happened]bool{}
	for v, err := range p.Intervals {
		if err != nil {
			return err
		}
		at := k.sum.slotOf(v)
		k.sum.past[at] = true
		if v.Step == p.Broken {
			k.before.saw(v)
		}
		k.sum.extents[at.whole()] = extent{start: v.Start, seconds: v.Seconds}
	}
	for e, err := range p.Events {
		if err != nil {
			return err
		}
		k.events[happenedOf(e)] = true
		if e.Step == p.Broken && e.Worker != nil {
			k.before.told(e)
		}
	}
	return k.rememberSamples()
}

// rememberSamples finds out up to when each host was watched.
func (k *controller) rememberSamples() error {
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

// saw takes in what was written of a second of the step, in their order.
func (j *jobStep) saw(v *measure.Interval) {
	if j.first.IsZero() {
		j.first = v.Start
	}
	switch {
	case v.Phase == measure.Measured && j.steady.IsZero():
		j.steady = v.Start.Add(-time.Second)
	case v.Phase == measure.GracefulStop && j.waning.IsZero():
		j.waning = v.Start
	}
}

// told adds what was recorded of a worker of the step, in order.
func (j *jobStep) told(e *measure.Event) {
	switch {
	case e.Worker.State == measure.Came:
		j.last, j.ended = e.Time, time.Time{}
	case e.Worker.State == measure.Left && j.ended.IsZero():
		j.ended = e.Time
	}
}

// resume tells, once it is known, how a run goes on that was broken off.
func (k *controller) resume(holds bool) error {
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

// back takes in a worker that was there before, or a new one.
func (k *controller) back(w *remote, h *hello) error {
	employed := w.step
	w.recall(h)
	if h.Scratch != nil {
		if err := k.staged(w, h.Scratch); err != nil {
			return err
		}
	}
	if k.before != nil && employed > 0 && w.step == 0 { // we were killed before it heard of it
		k.before.begun--
	}
	if w.absent {
		w.absent, k.started = false, true
	}
	if w.held {
		w.latest = time.Time{} // what it tells next says how far it is
	}
	if k.past == nil || w.step == 0 || w.step != k.past.Broken {
		return nil
	}
	return k.resume(true)
}
