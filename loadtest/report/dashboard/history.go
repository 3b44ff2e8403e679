package dashboard

import (
	"math/rand/v2"
	"slices"
	"time"

	"weir/loadtest/measure"
	"weir/loadtest/scenario"
	"weir/monitor"
	"weir/storage"
)

// Columns of the rows, before those of kinds and classes.
const (
	colSeconds = iota
	colStep
	colPhase
	colClients
	colMoved // bytes per second
	colDone  // operations per second
	colFailed
	colP50
	colP90
	colP99
	colFixed // how many these are
)

func colNames() []string {
	return []string{"seconds", "step", "phase", "clients", "throughput", "operations", "errors", "p50", "p90", "p99"}
}

// phases are numbers in a column.
func phases() []string {
	return []string{measure.Ramp, measure.Warmup, measure.Measured, measure.GracefulStop}
}

// A history is what was read of a run: the clients' seconds, each host's and
// each data server's, and what happened. It is guarded by its owner.
type history struct {
	epoch  uint32 // another one: what a page has is of no use any more
	seq    int64  // grows with each change
	data   int64  // seq of the last line that was read
	start  time.Time
	rows   *track
	rowSeq []int64        // of each row's last change
	names  []string       // of the columns beyond the fixed ones
	column map[string]int // of kinds and classes
	open   []*opened      // the newest rows, the newest first
	merged int            // how often neighbors were put together

	planned map[int]scenario.Step // by number
	steps   []*stepTally
	summed  *stepTally
	stepSum measure.Histogram // of the hold of summed, the step that was read last

	stores map[string]*store
	hosts  map[string]*host
	sides  *track

	workers workersOf
	events  []event
	errors  map[storage.Class]*errorTally
}

// openRows is how many rows at the end are exact when more lines of them come.
const openRows = 4

// An opened row may still get lines.
type opened struct {
	start   time.Time
	step    int
	phase   string
	row     int
	seconds float64
	clients float64
	running float64 // jobs, mean
	done    [storage.Kinds]int64
	sum     measure.Sum // its histograms apart from Latency are empty

	populations map[string]tasks // by name; nil: all clients do the same
}

// tasks are what a population did.
type tasks struct{ moved, done int64 }

// mostPopulations bounds the columns that a damaged run can cost.
const mostPopulations = 64

func newHistory() *history {
	return &history{epoch: rand.Uint32(), planned: map[int]scenario.Step{}, rows: newTrack(colFixed), column: map[string]int{},
		stores: map[string]*store{},
		hosts:  map[string]*host{}, sides: newTrack(sideColumns), workers: workersOf{}, errors: map[storage.Class]*errorTally{}}
}

// turn makes all that pages have worthless.
func (h *history) turn() { h.epoch++ }

func (h *history) since(t time.Time) float64 { return t.Sub(h.start).Seconds() }

// line notes that a line was read.
func (h *history) line() {
	h.seq++
	h.data = h.seq
}

// interval adds one line of intervals.jsonl.
func (h *history) interval(iv *measure.Interval) {
	if h.start.IsZero() {
		h.start = iv.Start
	}
	h.line()
	o := h.opened(iv)
	o.add(iv)
	h.write(o)
	h.store(iv)
	h.tally(iv)
	if len(h.rows.at) > mostRows {
		h.halve()
	}
}

// opened returns the row that iv belongs to.
func (h *history) opened(iv *measure.Interval) *opened {
	for _, o := range h.open {
		if o.start.Equal(iv.Start) && o.step == iv.Step && o.phase == iv.Phase {
			return o
		}
	}
	at := h.since(iv.Start)
	i, _ := slices.BinarySearch(h.rows.at, at)
	for i < len(h.rows.at) && h.rows.at[i] <= at {
		i++ // behind all of the same moment
	}
	o := &opened{}
	if len(h.open) >= openRows { // the oldest one's memory is used again
		o = h.open[len(h.open)-1]
		h.open = h.open[:len(h.open)-1]
		o.sum.Reset()
		*o = opened{sum: o.sum}
	}
	o.start, o.step, o.phase, o.row = iv.Start, iv.Step, iv.Phase, i
	if i < len(h.rows.at) { // the clock was set back
		h.turn()
		for _, other := range h.open {
			if other.row >= i {
				other.row++
			}
		}
	}
	h.rows.insert(i, at)
	for c := colFixed; c < len(h.rows.cols); c++ {
		h.rows.cols[c][i] = 0
	}
	h.rowSeq = slices.Insert(h.rowSeq, i, h.seq)
	h.open = slices.Insert(h.open, 0, o)
	return o
}

func (o *opened) add(iv *measure.Interval) {
	o.seconds = max(o.seconds, iv.Seconds)
	o.clients = max(o.clients, iv.Clients)
	o.running = max(o.running, iv.Running)
	o.done[iv.Kind] += iv.Done
	o.sum.AddCounts(&iv.Sum)
	o.sum.Latency.Merge(&iv.Latency)
	name := iv.Population
	if p, known := o.populations[name]; name != "" && (known || len(o.populations) < mostPopulations) {
		if o.populations == nil {
			o.populations = map[string]tasks{}
		}
		o.populations[name] = tasks{p.moved + iv.Moved, p.done + iv.Done}
	}
}

// write puts what o has summed up into its row.
func (h *history) write(o *opened) {
	h.rowSeq[o.row] = h.seq
	set := func(column int, x float64) { h.rows.cols[column][o.row] = float32(x) }
	set(colSeconds, o.seconds)
	set(colStep, float64(o.step))
	set(colPhase, float64(slices.Index(phases(), o.phase)))
	set(colClients, o.clients)
	set(colMoved, perSecond(o.sum.Moved, o.seconds))
	done := int64(0)
	for k, n := range o.done {
		if n > 0 {
			done += n
			set(h.named("kind "+storage.Kind(k).String()), perSecond(n, o.seconds))
		}
	}
	for class := range storage.Classes {
		if n := o.sum.BadOf(class); n > 0 && class.Failure() {
			set(h.named("class "+class.String()), perSecond(n, o.seconds))
		}
	}
	set(colDone, perSecond(done, o.seconds))
	set(colFailed, perSecond(o.sum.Errors(), o.seconds))
	if _, jobs := h.column[jobColumn("running")]; jobs || o.running > 0 {
		set(h.named(jobColumn("running")), o.running)
		set(h.named(jobColumn("computing")), o.sum.Working()/max(o.seconds, 1e-9))
		set(h.named(jobColumn("events")), perSecond(o.sum.Events, o.seconds))
		set(h.named(jobColumn("done")), perSecond(o.sum.Ended, o.seconds))
		set(h.named(jobColumn("lost")), perSecond(o.sum.Lost(), o.seconds))
	}
	for name, p := range o.populations {
		h.population(name, "moved ", set, perSecond(p.moved, o.seconds))
		h.population(name, "done ", set, perSecond(p.done, o.seconds))
	}
	if o.sum.Latency.Count() > 0 {
		set(colP50, o.sum.Latency.Quantile(0.5))
		set(colP90, o.sum.Latency.Quantile(0.9))
		set(colP99, o.sum.Latency.Quantile(0.99))
	}
}

// population sets a column of a population, unless there are too many.
func (h *history) population(name, of string, set func(column int, x float64), x float64) {
	if _, known := h.column[of+name]; known || len(h.column) < 2*mostPopulations+colFixed {
		set(h.named(of+name), x)
	}
}

// jobColumn names a column of jobs, which a run without them does not have.
func jobColumn(what string) string { return "job " + what }

// named returns the column of that name, a new one if need be.
func (h *history) named(name string) int {
	c, ok := h.column[name]
	if !ok {
		c = len(h.rows.cols)
		h.column[name] = c
		h.names = append(h.names, name)
		h.rows.widen(0)
		h.turn() // pages learn of columns when they begin
	}
	return c
}

// perSecond is 0 for what is too short to have a rate.
func perSecond(n int64, seconds float64) float64 {
	if seconds < 1e-9 {
		return 0
	}
	return float64(n) / seconds
}

// sample adds one line of hosts.jsonl.
func (h *history) sample(s *monitor.Sample) {
	h.line()
	h.host(s)
}
