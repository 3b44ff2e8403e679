package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/engine"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
)

// gather ends the step when the clients of all workers have left it.
func (k *controller) gather() {
	any := false
	for _, w := range k.present() {
		if w.in && !w.gone {
			return
		}
		any = any || w.gone
	}
	if !any {
		return
	}
	k.broadcast(order{Over: k.number})
	for _, w := range k.workers {
		w.gone = false
	}
}

// next requests the next step from the step source when it is due. The step source may take its
// time: reports of workers are handled in the meantime.
func (k *controller) next(ctx context.Context) error {
	if k.options.JobPerClient {
		return k.nextJobs(ctx)
	}
	if k.answers != nil || k.leaving || k.ended || !k.due() {
		return nil
	}
	if err := k.reportResume(false); err != nil {
		return err
	}
	if k.kept != nil {
		return k.begin(ctx, engine.Answer{Step: *k.kept})
	}
	if k.cool {
		if err := k.sum.over(); err != nil { // the step source may read it
			return err
		}
	}
	k.answers = engine.Ask(ctx, k.Steps)
	return nil
}

// due reports whether the next step may begin: all workers that hold a step have requested it. A
// worker that is out of touch is only waited for if clients rest in the meantime; if they do not,
// its clients leave by themselves.
func (k *controller) due() bool {
	ready, coming := 0, 0
	for _, w := range k.present() {
		switch {
		case w.absent && k.silent(w) < k.options.patience/3:
			return false
		case w.ready:
			ready++
		case w.in && (k.cool || k.options.closed || k.silent(w) < k.silenceLimit()):
			return false
		case !w.in:
			coming++
		}
	}
	if k.started || ready == 0 {
		return ready > 0
	}
	if k.options.closed {
		return coming == 0
	}
	return ready >= k.options.Want || k.clock().Sub(k.began) > k.options.Wait || coming == 0 && k.options.Coming != nil &&
		k.options.Coming() == 0
}

// begin sends the step that the step source has returned.
func (k *controller) begin(ctx context.Context, a engine.Answer) error {
	switch {
	case k.leaving:
		return nil
	case errors.Is(a.Err, io.EOF):
		k.ended = true
		k.broadcast(order{End: true})
		return nil
	case a.Err != nil:
		return a.Err
	}
	if k.options.JobPerClient {
		return k.beginJobs(ctx, a.Step)
	}
	if k.skip {
		k.skip = false
		return nil // it is held
	}
	mine := k.asking()
	if k.kept = nil; len(mine) == 0 {
		k.kept = &a.Step // the workers that requested it were lost
		return nil
	}
	step, first := a.Step, !k.started
	k.started = true
	if k.loaded.IsZero() {
		k.loaded = k.clock()
	}
	k.cool, k.number = step.Cooldown > 0 || step.Jobs > 0, step.Number
	step.Begin = k.clock().Add(k.notice(len(mine)))
	shares := distribute(step.Clients, cmp.Or(step.Place, step.Number)-1, mine, k.Plan)
	total := 0
	for _, n := range shares {
		total += n
	}
	more := k.numbers
	for i, w := range mine {
		part := step
		if part.Clients = shares[i]; part.Clients < total {
			part.Rate *= unit.Rate(part.Clients) / unit.Rate(total)
		}
		k.give(w, part)
	}
	var noted error
	if k.numbers > more {
		noted = k.journal.note(journalEntry{Numbers: k.numbers})
	}
	return errors.Join(noted, k.fewer(step, total, len(mine), first), k.announce(step, len(mine)), k.crowded())
}

// give makes a worker begin its part of a step.
func (k *controller) give(w *remote, part scenario.Step) {
	_ = w.say(order{Step: &part, Numbers: k.allot(w, part.Clients)})
	if !w.held {
		w.latest = part.Begin.Add(-2 * time.Second) // it has no reports of the time before
	}
	w.step, w.clients, w.ready, w.gone, w.in, w.held = part.Number, part.Clients, false, false, true, true
	k.show(w)
}

// asking returns the workers that wait for the next step and are in touch.
func (k *controller) asking() []*remote {
	var all []*remote
	for _, w := range k.present() {
		if w.ready && (w.connected() || k.silent(w) < k.silenceLimit()) {
			all = append(all, w)
		}
	}
	return all
}

// notice is the time from the announcement of a step to its begin.
func (k *controller) notice(workers int) time.Duration {
	if k.options.closed {
		return 50 * time.Millisecond
	}
	return 100*time.Millisecond + time.Duration(workers)*time.Millisecond/4
}

// allot assigns a worker numbers for n clients, in addition to the numbers that it has.
func (k *controller) allot(w *remote, n int) []span {
	more := n - w.numbers
	if more <= 0 {
		return nil
	}
	s := span{k.Plan.First + k.numbers, more}
	k.numbers += more
	w.numbers = n
	return []span{s}
}

// announce reports on a step that begins.
func (k *controller) announce(step scenario.Step, workers int) error {
	where, processes := fmt.Sprintf("in %d processes", workers), workers
	if !k.options.closed {
		where, processes = "on "+say.Plural(workers, "worker"), 0
	}
	return k.event(measure.Event{
		Kind: measure.EventStep, Step: step.Number, Text: fmt.Sprintf("step %d: %d clients %s", step.Number, step.Clients, where),
		Clients: step.Clients, Rate: float64(step.Rate), Duration: time.Duration(step.Duration).Seconds(), Processes: processes,
	})
}

// fewer warns if there are fewer workers, or less room, than there should be.
func (k *controller) fewer(step scenario.Step, clients, workers int, first bool) error {
	var err error
	if first && workers < k.options.Want {
		text := fmt.Sprintf("the run begins with %d of %d workers: the others had not connected after %v", workers, k.options.Want,
			k.options.Wait)
		if k.clock().Sub(k.began) < k.options.Wait {
			text = fmt.Sprintf("the run begins with %d of %d workers: something keeps the others from connecting", workers, k.options.Want)
		}
		if why := k.absent(); why != nil {
			text += ": " + inLine(why)
		}
		err = k.warn(text)
	}
	if sites := k.Plan.Links.Sites(); clients < step.Clients {
		for i := range sites {
			if !slices.ContainsFunc(k.present(), func(w *remote) bool { return w.site == i }) {
				err = errors.Join(err, k.warn(fmt.Sprintf("step %d has %d clients instead of %d: no worker is at the site %s", step.Number, clients,
					step.Clients, sites[i].Name)))
				return err
			}
		}
		err = errors.Join(err, k.warn(fmt.Sprintf("step %d has %d clients instead of %d: the workers that are there may open no more files",
			step.Number, clients, step.Clients)))
	}
	return err
}

func (k *controller) warn(text string) error {
	return k.event(measure.Event{Kind: measure.EventWarning, Text: text})
}

// event writes an event with the current time and, unless it has another step, of the current step.
func (k *controller) event(e measure.Event) error {
	e.Time, e.Step = k.clock().UTC(), cmp.Or(e.Step, k.number)
	return k.Sink.Event(e)
}

// distribute returns the number of clients, of n, for each worker in the step of that place in the
// plan, as evenly as their room allows. The workers of each link's site get that link's part, and
// the workers of a population get its clients. If there is not enough room the sum is less.
func distribute(n, place int, workers []*remote, p *scenario.Plan) []int {
	out := make([]int, len(workers))
	dealt := p.Dealt(n, place)
	if len(dealt) == 1 {
		fill(n, workers, out, func(*remote) bool { return true })
		return out
	}
	for site, mine := range dealt {
		fill(mine, workers, out, func(w *remote) bool { return w.site == site })
	}
	return out
}

// fill distributes n clients to the workers for which meant returns true, in rounds: full workers
// drop out, and the remaining workers share the rest.
func fill(n int, workers []*remote, out []int, meant func(*remote) bool) {
	for n > 0 {
		var open []int
		for i, w := range workers {
			if meant(w) && (w.room <= 0 || out[i] < w.room) {
				open = append(open, i)
			}
		}
		if len(open) == 0 {
			return
		}
		each, more := n/len(open), n%len(open)
		for place, i := range open {
			want := each
			if place < more {
				want++
			}
			if room := workers[i].room; room > 0 {
				want = min(want, room-out[i])
			}
			out[i] += want
			n -= want
		}
	}
}
