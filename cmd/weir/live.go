package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"weir/internal/say"
	"weir/internal/screen"
	"weir/internal/unit"
	"weir/measure"
	"weir/monitor"
	"weir/scenario"
	"weir/search"
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
	step    tally // hold phase of the current step
	second  tally // the last whole second
	next    tally // the second that is being told
	busy    busy
	history []float64   // throughput of the last seconds
	last    tally       // the second after them
	loaded  bool        // there is load, or there was
	making  preparation // what is made or removed; zero while there is load
	head    string      // of the table, as it was written last
	told    time.Time   // when the last line was written
	known   string      // what a search knows so far
	still   func()      // ends the rows that move
	stream  *stream
	dir     string        // of the run
	wrong   int           // workers that were told of
	workers func() string // who is there, and who is not; nil: the clients are on this machine
}

// Where nothing moves, the step that runs is shown this often.
const plainEvery = 30 * time.Second

// mostHistory is how many seconds are kept to be drawn.
const mostHistory = 300

// newLive shows a run of p until finish ends, which ends the load early, and
// stop is called.
func newLive(finish context.Context, out io.Writer, p *scenario.Plan, of series) *live {
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
	if l.step.step != 0 && v.Step != l.step.step {
		l.endStep()
	}
	if !v.Start.Equal(l.next.at) && l.next.seconds > 0 {
		l.second, l.next = l.next, tally{}
		l.plain()
	}
	l.busy.interval(v)
	l.next.add(v)
	l.remember(v)
	if v.Phase == measure.Hold {
		l.step.add(v)
	}
	return nil
}

// remember keeps the throughput of whole seconds of the wall clock: where a
// phase ends, intervals are shorter.
func (l *live) remember(v *measure.Interval) {
	second := v.Start.Truncate(time.Second)
	if !second.Equal(l.last.at) && !l.last.at.IsZero() {
		l.history = append(l.history[max(len(l.history)-mostHistory, 0):], float64(l.last.moved))
		l.last.moved = 0
	}
	l.last.at = second
	l.last.moved += v.Moved
}

// Event implements measure.Sink.
func (l *live) Event(e measure.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.streams(e)
	switch {
	case e.Kind == "step":
		l.course.begin(&e)
		l.remote(&e)
	case e.Worker != nil && !l.tellsOf(e.Worker): // it is counted
	case e.Kind == "end" && strings.HasPrefix(e.Text, "all"):
	case e.Kind == "error":
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

// end tells the last step, or that a preparation is over.
func (l *live) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.step.step != 0 {
		l.endStep()
	}
	l.making = preparation{}
}

// stop removes what moves, and returns when all was told.
func (l *live) stop() {
	_ = l.said.Close() // a lost terminal is nobody's business
	l.still()
}

func (l *live) endStep() {
	l.stays(func(columns []column) string { return l.row(columns, &l.step) })
	l.stream.tell(streamed{Event: "step", Run: l.dir, Step: stepOf(&l.step, &l.busy)})
	l.step = tally{}
	l.busy.next()
}

// streams tells programs what happened.
func (l *live) streams(e measure.Event) {
	kind := e.Kind
	if kind == "step" {
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
		return fmt.Sprintf("%s  %3.0f%%, %s left", l.row(columns, &l.second), 100*share, screen.Clock(left))
	})
}

// print writes for people to see. A lost terminal must not end the run, so an
// error is nobody's business.
func (l *live) print(format string, args ...any) { _, _ = fmt.Fprintf(l.said, format, args...) }

// knows tells what a search knows so far.
func (l *live) knows(o *search.Optimum) {
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

// crewed has the workers on other machines shown.
func (l *live) crewed(summary func() string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.workers = summary
}

// load tells that the load begins.
func (l *live) load() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.making, l.loaded = preparation{}, true
	l.course.begun, l.told = time.Now(), time.Now()
}

// advance tells how far a preparation is. Where nothing moves a line now and
// then does.
func (l *live) advance(what string, done, total int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.making.advance(what, done, total)
	if l.screen.Moves() || time.Since(l.told) < plainEvery {
		return
	}
	l.told = time.Now()
	l.print(" %s\n", l.preparing(l.told).Where)
}

// start tells what the run will be.
func (l *live) start(dir string, processes int) {
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
	tell(l.said, "", "%s: %s, %s%s, %s %v", p.Name, p.Target, steps, how, about, unit.Duration(l.course.total.Round(time.Second)))
	tell(l.said, "", "measuring into %s; Ctrl-C finishes early and still reports", dir)
	l.stream.tell(streamed{Event: "start", Run: dir, Start: &streamedStart{
		Name: p.Name, Target: p.Target, Steps: len(p.Steps), Planned: l.course.total.Seconds(), Processes: processes,
	}})
	l.still = l.screen.Animate(l.draw)
}
