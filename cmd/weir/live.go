package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"weir/internal/redact"
	"weir/internal/say"
	"weir/internal/screen"
	"weir/internal/unit"
	"weir/measure"
	"weir/monitor"
	"weir/run"
	"weir/run/search"
	"weir/scenario"
)

// A live shows a run while it goes on: a line for each step that has ended
// and, on a terminal, below them rows that move: the last second, throughput
// second by second, and how far the run is. It takes what the run directory
// takes.
type live struct {
	screen *screen.Screen
	said   *screen.Queue // lines that stay
	look   screen.Look

	mu      sync.Mutex
	course  course
	step    measure.Window   // hold phase of the current step
	failed  measure.Failures // of the current step, in all phases
	second  measure.Window   // the last whole second
	next    measure.Window   // the second that is being told
	busy    busy
	history []float64      // throughput of the last seconds
	last    measure.Window // the second after them
	loaded  bool           // there is load, or there was
	making  preparation    // what is made or removed; zero while there is load
	head    string         // of the table, as it was written last
	told    time.Time      // when the last line was written
	known   string         // what a search knows so far
	still   func()         // ends the rows that move
	stream  *stream
	secrets *redact.Values // that no line may show; nil: none are known
	dir     string         // of the run
	wrong   int            // workers that were told of
	workers func() string  // who is there, and who is not; nil: the clients are on this machine
}

// Where nothing moves, the step that runs is shown this often.
const plainEvery = 30 * time.Second

// mostHistory is how many seconds are kept to be drawn.
const mostHistory = 300

// newLive shows a run of p until finish ends, which ends the load early, and
// stop is called.
func newLive(finish context.Context, out io.Writer, p *scenario.Plan, of run.Series) *live {
	s := screen.New(out)
	return &live{
		screen: s, said: screen.NewQueue(s), look: lookOf(s), course: course{plan: p, total: p.Time(), begun: time.Now(), of: of, finish: finish},
		still: func() {},
	}
}

// Interval implements measure.Sink.
func (l *live) Interval(v *measure.Interval) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.course.interval(v)
	if l.step.Step != 0 && v.Step != l.step.Step {
		l.endStep()
	}
	if !v.Start.Equal(l.next.At) && l.next.Seconds > 0 {
		l.second, l.next = l.next, measure.Window{}
		l.plain()
	}
	l.busy.interval(v)
	l.failed.Add(v)
	l.next.Add(v)
	l.remember(v)
	if v.Phase == measure.Hold {
		l.step.Add(v)
	}
	return nil
}

// remember keeps the throughput of whole seconds of the wall clock: where a
// phase ends, intervals are shorter.
func (l *live) remember(v *measure.Interval) {
	second := v.Start.Truncate(time.Second)
	if !second.Equal(l.last.At) && !l.last.At.IsZero() {
		l.history = append(l.history[max(len(l.history)-mostHistory, 0):], float64(l.last.Moved))
		l.last.Moved = 0
	}
	l.last.At = second
	l.last.Moved += v.Moved
}

// Event implements measure.Sink.
func (l *live) Event(e measure.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Text = l.secrets.Text(e.Text)
	l.streams(e)
	switch {
	case e.Kind == measure.EventStep:
		l.course.begin(&e)
		l.remote(&e)
	case e.Worker != nil && !l.tellsOf(e.Worker): // it is counted
	case e.Kind == measure.EventEnd && e.Ending().Outcome == measure.Complete:
	case e.Kind == measure.EventError:
		tell(l.said, "  ", "%s, %v: %s", e.Time.Local().Format("15:04:05"), e.Class, e.Text)
	default:
		tell(l.said, "  ", "%s %s", e.Time.Local().Format("15:04:05"), e.Text)
	}
	return nil
}

// mostTold is of how many workers that are held, failed or were lost a line is told.
const mostTold = 10

// tellsOf tells whether what became of a worker is worth a line: of hundreds the
// first ones are.
func (l *live) tellsOf(w *measure.Worker) bool {
	switch w.State {
	case measure.Came, measure.Left, measure.Absent:
		return false
	}
	l.wrong++
	if l.wrong == mostTold+1 {
		tell(l.said, "  ", "more workers are in trouble: they are counted, and the report has them all")
	}
	return l.wrong <= mostTold
}

// remote tells on which workers a step is held.
func (l *live) remote(e *measure.Event) {
	if l.workers == nil {
		return
	}
	if l.course.place <= 1 && l.course.plan.Find == nil {
		l.course.begun = time.Now() // workers were waited for
	}
	text := e.Text
	if !l.course.plan.On.JobPerClient { // which come when the step has begun
		text += "; " + l.workers()
	}
	tell(l.said, "  ", "%s %s", e.Time.Local().Format("15:04:05"), text)
}

// Sample takes the hosts' samples.
func (l *live) Sample(s *monitor.Sample) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy.sample(s)
	return nil
}

// End tells the last step, or that a preparation is over.
func (l *live) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.step.Step != 0 {
		l.endStep()
	}
	l.making = preparation{}
}

// Stop removes what moves, and returns when all was told.
func (l *live) Stop() {
	_ = l.said.Close() // a lost terminal is nobody's business
	l.still()
}

func (l *live) endStep() {
	l.stays(func(columns []column) string { return l.row(columns, &l.step) })
	l.stream.tell(streamed{Event: "step", Run: l.dir, Step: stepOf(&l.step, &l.failed, &l.busy)})
	l.step = measure.Window{}
	l.busy.next()
}

// streams tells programs what happened.
func (l *live) streams(e measure.Event) {
	kind := string(e.Kind)
	if e.Kind == measure.EventStep {
		kind = "begin" // a step's end has that name
	}
	l.stream.tell(streamed{Event: kind, Run: l.dir, Time: e.Time, Happened: &e})
}

// plain writes now and then a line that stays where none can move.
func (l *live) plain() {
	if l.screen.Moves() || time.Since(l.told) < plainEvery {
		return
	}
	l.told = time.Now()
	left, share := l.course.left(l.told)
	l.stays(func(columns []column) string {
		text := fmt.Sprintf("%s  %3.0f%%, %s left", l.row(columns, &l.second), 100*share, screen.Clock(left))
		if worse := l.worse(); worse != "" {
			text += "; " + worse
		}
		return text
	})
}

// worse says how many operations failed in the last second, "" unless it was worse
// than the step so far.
func (l *live) worse() string {
	failed, all, worse := l.failed.Worse()
	if !worse {
		return ""
	}
	return fmt.Sprintf("last second: %d of %d operations failed", failed, all)
}

// print writes for people to see. A lost terminal must not end the run, so an
// error is nobody's business.
func (l *live) print(format string, args ...any) { _, _ = fmt.Fprintf(l.said, format, args...) }

// Search tells what a search knows so far, and by an event why its next step comes.
func (l *live) Search(e measure.Event, o *search.Optimum) {
	l.streams(e)
	text := ""
	if o != nil {
		text = "so far: the optimum is " + say.Plural(o.Clients, "client")
		if o.Low < o.High {
			text += fmt.Sprintf("; %d to %d the same within noise", o.Low, o.High)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known = text
}

// Workers has the workers on other machines shown.
func (l *live) Workers(summary func() string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.workers = summary
}

// Load tells that the load begins.
func (l *live) Load() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.making, l.loaded = preparation{}, true
	l.course.begun, l.told = time.Now(), time.Now()
}

// Advance tells how far a preparation is. Where nothing moves a line now and
// then does.
func (l *live) Advance(what string, done, total int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.making.advance(what, done, total)
	if l.screen.Moves() || time.Since(l.told) < plainEvery {
		return
	}
	l.told = time.Now()
	l.print(" %s\n", l.preparing(l.told).Where)
}

// Start tells what the run will be.
func (l *live) Start(processes int) {
	if !l.screen.Moves() {
		l.told = time.Now()
	}
	p := l.course.plan
	how, steps, about := "", say.Plural(len(p.Steps), "step"), "about"
	if processes > 1 {
		how = fmt.Sprintf(" in %d processes", processes)
	}
	if p.Jobs() > 0 {
		about = "at most"
	}
	if f := p.Find; f != nil {
		steps, about = fmt.Sprintf("a search from %d to %d clients", f.Min, f.Max), "at most"
	}
	tell(l.said, "", "%s: %s, %s%s, %s %v", p.Name, p.Public().Target, steps, how, about, unit.Duration(l.course.total.Round(time.Second)))
	tell(l.said, "", "measuring into %s; Ctrl-C finishes early and still reports", l.dir)
	l.stream.tell(streamed{Event: "start", Run: l.dir, Start: &streamedStart{
		Name: p.Name, Target: p.Public().Target, Steps: len(p.Steps), Planned: l.course.total.Seconds(), Processes: processes,
	}})
	l.still = l.screen.Animate(l.draw)
}
