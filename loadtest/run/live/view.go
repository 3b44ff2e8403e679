// Package live shows a run on a terminal while it goes on: a line for each step
// that has ended and, below these, rows that move. It also streams the same facts
// as lines of JSON.
package live

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"weir/internal/redact"
	"weir/internal/say"
	"weir/internal/screen"
	"weir/internal/unit"
	"weir/loadtest/measure"
	"weir/loadtest/run"
	"weir/loadtest/run/search"
	"weir/loadtest/scenario"
	"weir/monitor"
)

// Options configure a View.
type Options struct {
	Out     io.Writer       // where people read
	Plan    *scenario.Plan  // the part that is still to be done
	Series  run.Series      // the runs of the same campaign
	Finish  context.Context // ends when the load is to end early
	Dir     string          // run directory
	Stream  *Stream         // nil: no stream
	Secrets *redact.Values  // removed from all lines; nil: no secrets are known
}

// A View shows a run. It implements run.View and receives the same records as the run directory.
type View struct {
	Options
	terminal

	// guarded by mu
	position position
	step     measure.Window   // measured part of the current step
	failures measure.Failures // of the current step, in all phases
	second   measure.Window   // the last whole second
	next     measure.Window   // the second under way
	cpu      cpuUsage
	history  []float64      // throughput of the last seconds
	last     measure.Window // the second after them
	header   string         // the table header that was written last
	best     string         // the optimum of a search so far
	troubled int            // workers that were held, failed or lost
	errors   errorLines
	workers  func() string // nil: the clients are on this machine
}

const (
	maxHistory  = 300 // seconds of throughput that are kept
	maxTroubled = 10  // workers whose trouble is written; others are counted
)

// New returns a View of the run. Its caller calls Start and Stop.
func New(o Options) *View {
	return &View{
		Options: o, terminal: newTerminal(o.Out),
		position: position{plan: o.Plan, total: o.Plan.Time(), begun: time.Now(), series: o.Series, finish: o.Finish},
	}
}

// Start shows the plan of the run.
func (v *View) Start(processes int) {
	if !v.screen.Moves() {
		v.written = time.Now()
	}
	p := v.Plan
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
	total := unit.Duration(v.position.total.Round(time.Second))
	screen.Paragraph(v.lines, "", "%s: %s, %s%s, %s %v", p.Name, p.Public().Target, steps, how, about, total)
	screen.Paragraph(v.lines, "", "measuring into %s; Ctrl-C finishes early and still reports", v.Dir)
	v.Stream.Write(Line{Event: "start", Run: v.Dir, Start: &Start{
		Name: p.Name, Target: p.Public().Target, Steps: len(p.Steps), Planned: v.position.total.Seconds(), Processes: processes,
	}})
	v.stopMoving = v.screen.Animate(v.rows)
}

// Load records that the load begins.
func (v *View) Load() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.task, v.loading = screen.Task{}, true
	v.position.begun, v.written = time.Now(), time.Now()
}

// End writes the line of the last step, or records that a preparation is over.
func (v *View) End() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.step.Step != 0 {
		v.endStep()
	}
	for _, text := range v.errors.repeated() {
		screen.Paragraph(v.lines, "  ", "%s", text)
	}
	v.task = screen.Task{}
}

// Advance shows the progress of a preparation or of the clean-up.
func (v *View) Advance(what string, done, total int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.task.Advance(what, done, total)
	if v.due() {
		v.print(" %s\n", v.preparation(v.written).Where)
	}
}

// Waiting writes a line about the event that the run waits for before its load.
func (v *View) Waiting(what string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	screen.Paragraph(v.lines, "  ", "%s %s", time.Now().Format(time.TimeOnly), what)
}

// Workers shows the workers on other machines.
func (v *View) Workers(summary func() string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.workers = summary
}

// Search shows the optimum by the steps so far.
func (v *View) Search(e measure.Event, o *search.Optimum) {
	v.Stream.event(v.Dir, e)
	text := ""
	if o != nil {
		text = "so far: the optimum is " + say.Plural(o.Clients, "client")
		if o.Low < o.High {
			text += fmt.Sprintf("; %d to %d the same within noise", o.Low, o.High)
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.best = text
}

// Sample implements monitor.Sink.
func (v *View) Sample(s *monitor.Sample) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.cpu.sample(s)
	return nil
}

// Interval implements measure.Sink.
func (v *View) Interval(i *measure.Interval) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.position.interval(i)
	if v.step.Step != 0 && i.Step != v.step.Step {
		v.endStep()
	}
	if !i.Start.Equal(v.next.At) && v.next.Seconds > 0 {
		v.second, v.next = v.next, measure.Window{}
		v.plainLine()
	}
	v.cpu.interval(i)
	v.failures.Add(i)
	v.errors.add(i)
	v.next.Add(i)
	v.remember(i)
	if i.Phase == measure.Measured {
		v.step.Add(i)
	}
	return nil
}

// remember keeps the throughput of whole seconds of the wall clock: at the end of a phase,
// intervals are shorter.
func (v *View) remember(i *measure.Interval) {
	second := i.Start.Truncate(time.Second)
	if !second.Equal(v.last.At) && !v.last.At.IsZero() {
		v.history = append(v.history[max(len(v.history)-maxHistory, 0):], float64(v.last.Moved))
		v.last.Moved = 0
	}
	v.last.At = second
	v.last.Moved += i.Moved
}

// endStep writes the line of the step that has ended.
func (v *View) endStep() {
	v.tableLine(func(columns []column) string { return v.row(columns, &v.step) })
	if more := v.failures.Count() - v.step.Bad(); more > 0 {
		screen.Paragraph(v.lines, "  ", "%s of step %d failed outside of its measurement time", say.Plural(int(more), "more operation"),
			v.step.Step)
	}
	v.Stream.Write(Line{Event: "step", Run: v.Dir, Step: stepOf(&v.step, &v.failures, &v.cpu)})
	v.step = measure.Window{}
	v.cpu.reset()
}

// plainLine shows the step under way if no row can move.
func (v *View) plainLine() {
	if !v.due() {
		return
	}
	left, share := v.position.left(v.written)
	if idle(&v.second) {
		v.print(" %s, %3.0f%%, %s\n", v.position.progress(v.written).Where, 100*share, screen.Left(left, v.position.open()))
		return
	}
	v.tableLine(func(columns []column) string {
		text := fmt.Sprintf("%s  %3.0f%%, %s", v.row(columns, &v.second), 100*share, screen.Left(left, v.position.open()))
		if worse := v.worse(); worse != "" {
			text += "; " + worse
		}
		return text
	})
}

// worse describes the failures of the last second, "" unless it was worse than
// the step so far.
func (v *View) worse() string {
	failed, all, worse := v.failures.Worse()
	if !worse {
		return ""
	}
	return fmt.Sprintf("last second: %d of %d operations failed", failed, all)
}

// Event implements measure.Sink.
func (v *View) Event(e measure.Event) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	e.Text = v.Secrets.Text(e.Text)
	v.Stream.event(v.Dir, e)
	switch {
	case e.Kind == measure.EventStep:
		v.position.begin(&e)
		v.stepOnWorkers(&e)
	case e.Worker != nil && !v.showsWorker(e.Worker): // it is counted
	case e.Kind == measure.EventEnd && e.Ending().Outcome == measure.Complete:
	case e.Kind == measure.EventError:
		if v.errors.isNew(&e) {
			v.eventLine(&e, fmt.Sprintf(", %v: %s", e.Class, e.Text))
		}
	default:
		v.eventLine(&e, " "+e.Text)
	}
	return nil
}

func (v *View) eventLine(e *measure.Event, text string) {
	screen.Paragraph(v.lines, "  ", "%s%s", e.Time.Local().Format(time.TimeOnly), text)
}

// showsWorker reports whether the state of a worker is worth a line.
func (v *View) showsWorker(w *measure.Worker) bool {
	if slices.Contains([]string{measure.Came, measure.Left, measure.Absent}, w.State) {
		return false
	}
	v.troubled++
	if v.troubled == maxTroubled+1 {
		screen.Paragraph(v.lines, "  ", "more workers were held, failed or lost: they are counted here and listed in the report")
	}
	return v.troubled <= maxTroubled
}

// stepOnWorkers shows the workers that hold a step.
func (v *View) stepOnWorkers(e *measure.Event) {
	if v.workers == nil {
		return
	}
	if v.position.place <= 1 && v.Plan.Find == nil {
		v.position.begun = time.Now() // until now it waited for workers
	}
	text := " " + e.Text
	if !v.Plan.On.JobPerClient { // these workers come after the step has begun
		text += "; " + v.workers()
	}
	v.eventLine(e, text)
}

// print writes a permanent line. Its errors are ignored: the run survives the
// loss of its terminal.
func (v *View) print(format string, args ...any) { _, _ = fmt.Fprintf(v.lines, format, args...) }
