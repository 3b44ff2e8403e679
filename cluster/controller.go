package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"weir/engine"
	"weir/measure"
)

// A Peer is a worker as the controller sees it: a pair of streams.
type Peer struct {
	Name string
	In   io.Reader      // reports
	Out  io.WriteCloser // orders; closing it ends the worker
	// Reach returns the address:port where this worker reaches a server,
	// host:port. nil: at the server's own address.
	Reach func(ctx context.Context, server string) (string, error)
	// Site is where the worker is, if the sites of a run are told apart: its
	// intervals say what jobs did there. "": they are not.
	Site string
}

// Control drives the run c with workers, each with its share of the plan (the
// one of that place), and returns when all have ended. manifest is the
// run directory whose manifest the workers write, "" for none. Of c it uses
// Plan, Files, Folder, Scratch, Pilot, Sink and Finish. A worker that is lost is an
// event, and the run goes on with the others as long as there are any.
func Control(ctx context.Context, c engine.Config, peers []Peer, manifest string) error {
	if c.Pilot == nil {
		c.Pilot = engine.Alone(c.Plan)
	}
	k := &controller{Config: c, sum: newSum(c.Sink), heard: make(chan heard), alive: map[int]bool{}, gone: map[int]bool{}, latest: map[int]time.Time{}}
	for i, p := range peers {
		w := &remote{Peer: p, enc: json.NewEncoder(p.Out)}
		k.workers = append(k.workers, w)
		b := begin{Plan: c.Plan.Share(i, len(peers)), Files: c.Files, Folder: c.Folder, Scratch: c.Scratch, Manifest: manifest, Ask: p.Reach != nil}
		if err := w.say(order{Begin: &b}); err != nil {
			return fmt.Errorf("worker %s: %w", p.Name, err)
		}
		k.alive[i] = true
	}
	var wg sync.WaitGroup
	asking, deaf := context.WithCancel(ctx)
	defer deaf()
	for i := range k.workers {
		wg.Go(func() { k.listen(asking, i) })
	}
	err := k.steer(ctx)
	deaf()
	for _, w := range k.workers {
		_ = w.Out.Close() // a worker that is still there ends now
	}
	go func() { wg.Wait(); close(k.heard) }()
	for range k.heard { // what comes too late is not part of the run
	}
	if err != nil {
		k.outcome = fmt.Sprintf("broken off: %v", err)
	}
	end := measure.Event{Time: time.Now().UTC(), Kind: "end", Text: k.outcome}
	return errors.Join(err, k.sum.flush(), c.Sink.Event(end))
}

type controller struct {
	engine.Config
	workers []*remote
	sum     *sum
	heard   chan heard
	alive   map[int]bool
	latest  map[int]time.Time    // start of the last interval of each worker
	ready   int                  // workers that have asked for the next step
	gone    map[int]bool         // workers whose clients have done their tasks and left the step
	step    int                  // its number
	answers <-chan engine.Answer // of the pilot; nil unless it is being asked
	cool    bool                 // the step that ended last stands apart from the next
	leaving bool
	ended   bool   // no more steps
	outcome string // why the steps ended
}

type remote struct {
	Peer
	mu  sync.Mutex
	enc *json.Encoder
}

func (w *remote) say(o order) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.enc.Encode(o)
}

// answer says where the worker reaches a server.
func (w *remote) answer(ctx context.Context, server string) {
	at := way{Server: server}
	var err error
	if at.At, err = w.Reach(ctx, server); err != nil {
		at.Error = err.Error()
	}
	_ = w.say(order{Way: &at}) // a lost worker is noticed where it is heard
}

// heard is one report of one worker; err tells that it is lost.
type heard struct {
	worker int
	report report
	err    error
}

// listen hears worker i until it has ended. Where it reaches servers is
// answered beside: that may take a while, and steps wait for nobody's answer.
func (k *controller) listen(ctx context.Context, i int) {
	w := k.workers[i]
	dec := json.NewDecoder(w.In)
	var answers sync.WaitGroup
	defer answers.Wait()
	for {
		var r report
		err := dec.Decode(&r)
		if r.Ask != "" && w.Reach != nil {
			answers.Go(func() { w.answer(ctx, r.Ask) })
			continue
		}
		k.heard <- heard{i, r, err}
		if err != nil {
			return
		}
	}
}

func (k *controller) steer(ctx context.Context) error {
	finish := k.Finish
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	asking, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		if k.answers != nil {
			<-k.answers
		}
	}()
	for len(k.alive) > 0 {
		var err error
		select {
		case h := <-k.heard:
			err = k.hear(asking, h)
		case a := <-k.answers:
			k.answers = nil
			err = k.begin(a)
		case <-finish:
			finish = nil
			k.leaving = true
			cancel() // the pilot need not think any more
			k.tell(order{Leave: true})
		case now := <-tick.C:
			err = k.sum.before(now.Add(-grace))
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
	if !k.ended && !k.leaving {
		return errors.New("all workers were lost")
	}
	return nil
}

func (k *controller) tell(o order) {
	for i := range k.alive {
		_ = k.workers[i].say(o) // a lost worker is noticed where it is heard
	}
}

func (k *controller) hear(ctx context.Context, h heard) error {
	switch {
	case h.err != nil:
		return k.lost(ctx, h.worker, h.err)
	case h.report.Interval != nil:
		k.latest[h.worker] = h.report.Interval.Start
		if site := k.workers[h.worker].Site; site != "" {
			h.report.Interval.At(site)
		}
		k.sum.add(h.report.Interval)
		return k.sum.before(k.told())
	case h.report.Event != nil && h.report.Event.Kind == "end":
		k.outcome = h.report.Event.Text // all workers end for the same reason
		return nil
	case h.report.Event != nil:
		return k.Sink.Event(*h.report.Event)
	case h.report.Done:
		delete(k.alive, h.worker)
		if h.report.Error != "" {
			return fmt.Errorf("worker %s: %s", k.workers[h.worker].Name, h.report.Error)
		}
		k.ended = k.ended || len(k.alive) == 0
		return nil
	case h.report.Gone > 0:
		k.gone[h.worker] = true
		k.over()
		return nil
	case h.report.Ready:
		k.ready++
		return k.next(ctx)
	}
	return nil
}

// told returns the time up to which all workers that are there have told what
// they saw.
func (k *controller) told() time.Time {
	least := time.Now()
	for i := range k.alive {
		if t := k.latest[i]; t.Before(least) {
			least = t
		}
	}
	return least
}

func (k *controller) lost(ctx context.Context, i int, err error) error {
	if !k.alive[i] {
		return nil // it had said that it was done
	}
	delete(k.alive, i)
	e := k.Sink.Event(measure.Event{
		Time: time.Now().UTC(), Kind: "warning",
		Text: fmt.Sprintf("worker %s was lost: %v; its clients are missing from here on", k.workers[i].Name, err),
	})
	delete(k.gone, i)
	k.over()
	return errors.Join(e, k.next(ctx))
}

// over ends the step when the clients of all workers have left it.
func (k *controller) over() {
	if len(k.gone) > 0 && len(k.gone) == len(k.alive) {
		k.tell(order{Over: k.step})
		clear(k.gone)
	}
}

// notice is how long before a step begins the workers are told.
const notice = 50 * time.Millisecond

// next asks the pilot for the next step when all workers have asked for it. The
// pilot may take its time: what workers tell meanwhile is heard.
func (k *controller) next(ctx context.Context) error {
	if k.answers != nil || k.ready < len(k.alive) || len(k.alive) == 0 {
		return nil
	}
	k.ready = 0
	if k.cool {
		if err := k.sum.over(); err != nil { // the pilot may want to read it
			return err
		}
	}
	k.answers = engine.Ask(ctx, k.Pilot)
	return nil
}

// begin sends the step that the pilot named.
func (k *controller) begin(a engine.Answer) error {
	step, err := a.Step, a.Err
	switch {
	case k.leaving:
		return nil
	case errors.Is(err, io.EOF):
		k.ended = true
		k.tell(order{End: true})
		return nil
	case err != nil:
		return err
	}
	k.cool, k.step = step.Cool > 0 || step.Jobs > 0, step.Number
	clear(k.gone)
	step.Begin = time.Now().Add(notice)
	whole := *k.Plan
	whole.Steps = append(whole.Steps[:0:0], step)
	for i := range k.alive {
		part := whole.Share(i, len(k.workers)).Steps[0]
		_ = k.workers[i].say(order{Step: &part}) // as in tell
	}
	return k.Sink.Event(measure.Event{
		Time: time.Now().UTC(), Kind: "step", Step: step.Number,
		Text:    fmt.Sprintf("step %d: %d clients in %d processes", step.Number, step.Clients, len(k.alive)),
		Clients: step.Clients, Rate: float64(step.Rate), Hold: time.Duration(step.Hold).Seconds(),
	})
}
