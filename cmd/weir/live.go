package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/measure"
	"weir/monitor"
	"weir/scenario"
	"weir/storage"
)

// A live shows a run while it goes on: a line for each step that has ended
// and, on a terminal, one that moves for the step that runs. It takes what the
// run directory takes.
type live struct {
	out      io.Writer
	terminal bool // lines that move can be shown
	plan     *scenario.Plan
	begin    time.Time
	total    time.Duration // planned

	mu     sync.Mutex
	step   tally // hold phase of the current step
	second tally // the last whole second
	next   tally // the second that is being told
	server busy  // of the current step
	client busy
	shown  bool      // the header is out
	moving bool      // a line without its end is on the terminal
	told   time.Time // when the last line was written
}

// A tally sums intervals.
type tally struct {
	at          time.Time // start of the newest interval
	step        int
	seconds     float64
	clients     float64
	moved       int64
	done, wrong int64
	latency     measure.Histogram
}

// add adds v. Intervals of one moment tell the same span and clients.
func (t *tally) add(v *measure.Interval) {
	if !v.Start.Equal(t.at) || t.seconds == 0 {
		t.seconds += v.Seconds
		t.clients = v.Clients
	}
	t.at, t.step = v.Start, v.Step
	t.moved += v.Moved
	t.done += v.Done
	for class, n := range v.Failed {
		if class != storage.Canceled {
			t.wrong += n
		}
	}
	t.latency.Merge(&v.Latency)
}

// busy is how much one side's processes do: for each host,
// cores times seconds used and there.
type busy map[string][2]float64

// add adds what the processes of a sample did for which mine is true.
func (u busy) add(s *monitor.Sample, mine func(role string) bool) {
	used, any := 0.0, false
	for i := range s.Procs {
		if p := &s.Procs[i]; mine(p.Role) {
			used, any = used+p.User+p.System, true
		}
	}
	if any {
		h := u[s.Host]
		u[s.Host] = [2]float64{h[0] + used, h[1] + s.Seconds*float64(s.Cores)}
	}
}

// String is the share of the busiest host's cores.
func (u busy) String() string {
	most := -1.0
	for _, h := range u {
		if h[1] > 0 {
			most = max(most, h[0]/h[1])
		}
	}
	if most < 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100*most)
}

func newLive(out io.Writer, p *scenario.Plan) *live {
	return &live{out: out, terminal: isTerminal(out), plan: p, begin: time.Now(), total: p.Time(), server: busy{}, client: busy{}}
}

// Interval implements measure.Sink.
func (l *live) Interval(v *measure.Interval) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.step.step != 0 && v.Step != l.step.step {
		l.endStep()
	}
	if !v.Start.Equal(l.next.at) && l.next.seconds > 0 {
		l.second, l.next = l.next, tally{}
		l.show()
	}
	l.next.add(v)
	if v.Phase == measure.Hold {
		l.step.add(v)
	}
	return nil
}

// Event implements measure.Sink.
func (l *live) Event(e measure.Event) error {
	if e.Kind == "step" || e.Kind == "end" && strings.HasPrefix(e.Text, "all") {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clear()
	if e.Kind == "error" {
		l.print("  %s, %v: %s\n", e.Time.Local().Format("15:04:05"), e.Class, line(e.Text))
	} else {
		l.print("  %s %s\n", e.Time.Local().Format("15:04:05"), line(e.Text))
	}
	return nil
}

// Sample takes the hosts' samples.
func (l *live) Sample(s *monitor.Sample) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.server.add(s, func(role string) bool { return role == "server" })
	l.client.add(s, func(role string) bool { return role != "server" })
	return nil
}

// end tells the last step.
func (l *live) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.step.step != 0 {
		l.endStep()
	}
	l.clear()
}

// The table fits into 80 columns; the last two are shares of the machines' CPU.
const liveHeader = " step clients  throughput     rate      p50      p99 errors CPU server client\n"

func (l *live) endStep() {
	l.clear()
	l.header()
	l.print("%s\n", l.line(&l.step))
	l.step, l.server, l.client = tally{}, busy{}, busy{}
}

// line is one line of the table.
func (l *live) line(t *tally) string {
	s := max(t.seconds, 1e-9)
	return fmt.Sprintf("%5d %7.0f %11s %8s %8s %8s %6d %10s %6s",
		t.step, t.clients, unit.Bits(float64(t.moved)/s), perSecond(float64(t.done)/s),
		unit.Seconds(t.latency.Quantile(.5)), unit.Seconds(t.latency.Quantile(.99)), t.wrong,
		l.server, l.client)
}

func perSecond(x float64) string { return fmt.Sprintf("%s/s", unit.Count(x)) }

// Without a terminal, the step that runs is shown this often.
const plainEvery = 30 * time.Second

// show redraws the moving line, or now and then writes one that stays.
func (l *live) show() {
	if !l.terminal && time.Since(l.told) < plainEvery {
		return
	}
	l.clear()
	l.header()
	l.fit(l.line(&l.second) + "  " + l.bar())
	if l.moving = l.terminal; !l.terminal {
		l.print("\n")
	}
	l.told = time.Now()
}

func (l *live) header() {
	if !l.shown {
		l.shown = true
		l.print("%s", liveHeader)
	}
}

// bar is how far the run has come, and how long it will take.
func (l *live) bar() string {
	const width = 12
	gone := time.Since(l.begin)
	share := 0.0
	if l.total > 0 {
		share = min(float64(gone)/float64(l.total), 1)
	}
	full := int(share * width)
	left := max(l.total-gone, 0).Round(time.Second)
	return fmt.Sprintf("[%s%s] %v left", strings.Repeat("#", full), strings.Repeat(".", width-full), left)
}

// clear removes the moving line.
func (l *live) clear() {
	if l.moving {
		l.print("\r\x1b[K")
		l.moving = false
	}
}

// print writes for people to see. A lost terminal must not end the run, so an
// error is nobody's business.
func (l *live) print(format string, args ...any) { _, _ = fmt.Fprintf(l.out, format, args...) }

// fit prints a line that moves, or its beginning: one that wraps could not be
// removed again.
func (l *live) fit(text string) {
	if w := width(l.out); l.terminal && w > 0 && len(text) >= w {
		text = text[:w-1] // all of it is ASCII
	}
	l.print("%s", text)
}

// load tells that the load begins.
func (l *live) load() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clear()
	l.begin, l.told = time.Now(), time.Now()
}

// start tells what the run will be.
func (l *live) start(dir string, processes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.terminal {
		l.told = time.Now()
	}
	how, steps, about := "", say.Plural(len(l.plan.Steps), "step"), "about"
	if processes > 1 {
		how = fmt.Sprintf(" in %d processes", processes)
	}
	if f := l.plan.Find; f != nil {
		steps, about = fmt.Sprintf("a search from %d to %d clients", f.Min, f.Max), "at most"
	}
	l.print("%s: %s, %s%s, %s %v; Ctrl-C finishes early and still reports\n",
		l.plan.Name, l.plan.Target, steps, how, about, l.total.Round(time.Second))
	l.print("measuring into %s\n", dir)
}

// advance tells how far a preparation is, at most twice a second.
func (l *live) advance(what string, done, total int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.told) < time.Second/2 || !l.terminal && time.Since(l.told) < plainEvery {
		return
	}
	l.clear()
	l.told = time.Now()
	if total > 0 {
		l.fit(fmt.Sprintf("  %s: %d of %d", what, done, total))
	} else {
		l.fit(fmt.Sprintf("  %s: %d", what, done))
	}
	if l.moving = l.terminal; !l.terminal {
		l.print("\n")
	}
}
