package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"weir/internal/say"
	"weir/internal/screen"
	"weir/internal/unit"
	"weir/internal/wire"
	"weir/transfer"
)

// lookEvery is how often a command that waits asks how far a request is.
const lookEvery = 400 * time.Millisecond

// waiting is a command that waits for the end of a request.
type waiting struct {
	*desk
	id   int64
	json bool
	file string // for the manifest; "": none

	mu   sync.Mutex
	last transfer.Request
	here int64   // bytes at the destination, those of files that are not whole among them
	past []point // of the last seconds
	away bool
}

// wait shows how far the request is until it ends, then its manifest. The error
// is an exit with its code unless every file is there.
func (w *waiting) wait(ctx context.Context, s streams, signals signalSource) error {
	ended := signals.listen()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case by := <-ended:
			cancel(interruption{by})
		case <-ctx.Done():
		}
	}()
	r, err := w.follow(ctx, s)
	if errors.Is(context.Cause(ctx), errFinishing) {
		s.tell("\nweir: no longer waiting: request %d goes on. Wait again with: weir transfer show %d --wait; ask why it takes so long with: weir transfer explain %d; end it with: weir transfer cancel %d\n", w.id, w.id, w.id, w.id)
		return afterSignal(ctx, nil)
	}
	if err != nil {
		return err
	}
	if err := w.result(ctx, s, r); err != nil {
		return err
	}
	if r.Status != transfer.Completed {
		return exit{code: exitMissed}
	}
	return nil
}

// follow asks how far the request is until it has ended. A coordinator that is
// away is waited for.
func (w *waiting) follow(ctx context.Context, s streams) (transfer.Request, error) {
	to := screen.New(s.err)
	moves := !s.quiet && to.Moves()
	if moves {
		look := lookOf(to)
		defer to.Animate(func(columns int) []string { return w.rows(columns, look) })()
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		r, err := w.Request(ctx, w.id)
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		if err := w.note(r, err, s); err != nil {
			return r, err
		}
		if err == nil && r.Status.Ended() {
			return r, nil
		}
		if err == nil && moves {
			w.measure(ctx, &r)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return r, ctx.Err()
		}
	}
}

// A point is how many bytes were there at a time.
type point struct {
	at   time.Time
	here int64
}

// What the speed that is shown is taken over, and of how many files that move at a
// time the bytes are asked for.
const (
	speedOver  = 5 * time.Second
	mostMoving = 200
)

// measure finds out how many bytes are at the destination now.
func (w *waiting) measure(ctx context.Context, r *transfer.Request) {
	here := r.Count.DoneBytes
	if r.Count.Leased > 0 {
		items, _ := w.Items(ctx, w.id, transfer.Leased, 0, mostMoving) // what is not told counts when it is there
		for _, i := range items {
			here += i.Moved
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.here = min(max(here, w.here), r.Count.Bytes)
	w.past = append(w.past, point{now, w.here})
	for len(w.past) > 2 && now.Sub(w.past[0].at) > speedOver {
		w.past = w.past[1:]
	}
}

// speed is in bytes per second, over the last few. w is locked.
func (w *waiting) speed() float64 {
	if len(w.past) < 2 {
		return 0
	}
	first, last := w.past[0], w.past[len(w.past)-1]
	return float64(last.here-first.here) / last.at.Sub(first.at).Seconds()
}

// note keeps what was heard. Its error ends the waiting.
func (w *waiting) note(r transfer.Request, err error, s streams) error {
	if status := wire.Status(err); errors.Is(err, wire.ErrPin) || status >= 400 && status < 500 && status != http.StatusTooManyRequests {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if away := err != nil; away != w.away {
		w.away = away
		if away {
			s.say("weir: the coordinator does not answer: still waiting (%v)\n", line(err.Error()))
		} else {
			s.say("weir: the coordinator answers again\n")
		}
	}
	if err != nil {
		return nil
	}
	if w.last.Status != r.Status && w.last.ID != 0 && !r.Status.Ended() {
		s.say("request %d is %s: %s, %s\n", r.ID, r.Status, say.Plural(int(r.Count.Files), "file"), unit.Bytes(float64(r.Count.Bytes)))
	}
	w.last = r
	return nil
}

// rows are how far the request is.
func (w *waiting) rows(columns int, look screen.Look) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	r, c := &w.last, &w.last.Count
	if r.ID == 0 {
		return nil
	}
	p := screen.Progress{
		Where: fmt.Sprintf("request %d: %s", r.ID, r.Status), Share: screen.Unknown, Left: screen.Unknown, Now: time.Now(),
	}
	if c.Bytes > 0 {
		p.Share = float64(w.here) / float64(c.Bytes)
	} else if c.Files > 0 {
		p.Share = float64(c.Done+c.Skipped) / float64(c.Files)
	}
	if speed := w.speed(); speed > 0 {
		p.Left = time.Duration(float64(c.Bytes-w.here) / speed * float64(time.Second))
	}
	text := fmt.Sprintf(" %d of %s, %s of %s, %s/s; %d moving, %d waiting", c.Done+c.Skipped, say.Plural(int(c.Files), "file"),
		unit.Bytes(float64(w.here)), unit.Bytes(float64(c.Bytes)), unit.Bytes(w.speed()), c.Leased, c.Queued)
	for _, n := range []struct {
		of   int64
		what string
	}{{c.NoSource, "without a source"}, {c.Failed, "failed"}, {c.Cancelled, "cancelled"}} {
		if n.of > 0 {
			text += fmt.Sprintf(", %d %s", n.of, n.what)
		}
	}
	if w.away {
		text += " (the coordinator does not answer)"
	}
	return []string{p.Row(columns, look), text[:min(len(text), columns)]}
}

// result tells what the request came to, and writes its manifest where it was
// asked for. However many files it has, a screenful of them is in memory.
func (w *waiting) result(ctx context.Context, s streams, r transfer.Request) (err error) {
	var short shortlist
	anew := func() func(transfer.Item) error {
		short = shortlist{}
		return short.add
	}
	var m transfer.Manifest
	switch {
	case w.file != "":
		if m, err = w.keepManifest(ctx, w.file, w.id, anew); err != nil {
			err = fmt.Errorf("--manifest: %w", err)
		}
	case !w.json:
		m, err = again(ctx, true, func() (transfer.Manifest, error) { return w.EachItem(ctx, w.id, anew()) })
	}
	if err == nil && w.json {
		return w.printManifest(ctx, s.out, w.id, true)
	}
	if err == nil {
		err = short.tell(s.out, w.id)
	}
	if err != nil {
		return err
	}
	m.Request = r
	return tellSum(s.out, &m)
}
