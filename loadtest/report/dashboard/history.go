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

// Columns of the rows, before the columns of kinds and classes.
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
	colFixed // the number of these columns
)

func colNames() []string {
	return []string{"seconds", "step", "phase", "clients", "throughput", "operations", "errors", "p50", "p90", "p99"}
}

// phases returns the phases; a column contains their indices.
func phases() []string {
	return []string{measure.Ramp, measure.Warmup, measure.Measured, measure.GracefulStop}
}

// A history contains the data that was read of a run: the seconds of the clients, of each host and
// of each data server, and the events. Its owner guards it.
type history struct {
	epoch  uint32 // if it changes, the data that a page has is no longer valid
	seq    int64  // grows with each change
	data   int64  // seq of the last line that was read
	start  time.Time
	rows   *track
	rowSeq []int64        // of each row's last change
	names  []string       // of the columns after the fixed columns
	column map[string]int // of kinds and classes
	open   []*opened      // the newest rows, the newest first
	merged int            // the number of times that neighbors were combined

	planned map[int]scenario.Step // by number
	steps   []*stepTally
	summed  *stepTally
	stepSum measure.Histogram // of the hold of summed, the step that was read last

	stores map[string]*store
	hosts  map[string]*host
	sides  *track

	links   linksOf // of a data challenge
	workers workersOf
	events  []event
	errors  map[storage.Class]*errorTally
}

// openRows is the number of rows at the end that are exact when further lines of them arrive.
const openRows = 4

// An opened row may receive further lines.
type opened struct {
	start   time.Time
	step    int
	phase   string
	row     int
	seconds float64
	clients float64
	running float64 // jobs, mean
	done    [storage.Kinds]int64
	sum     measure.Sum // its histograms other than Latency are empty

	populations map[string]tasks // by name; nil: all clients do the same work
}

// tasks are the bytes and the operations of a population.
type tasks struct{ moved, done int64 }

// mostPopulations bounds the number of columns that a damaged run can create.
const mostPopulations = 64

func newHistory() *history {
	return &history{epoch: rand.Uint32(), planned: map[int]scenario.Step{}, rows: newTrack(colFixed), column: map[string]int{},
		stores: map[string]*store{},
		hosts:  map[string]*host{}, sides: newTrack(sideColumns), links: newLinks(), workers: workersOf{},
		errors: map[storage.Class]*errorTally{}}
}

// turn makes all data of pages invalid.
func (h *history) turn() { h.epoch++ }

func (h *history) since(t time.Time) float64 { return t.Sub(h.start).Seconds() }

// line records that a line was read.
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

// opened returns the row of iv.
func (h *history) opened(iv *measure.Interval) *opened {
	for _, o := range h.open {
		if o.start.Equal(iv.Start) && o.step == iv.Step && o.phase == iv.Phase {
			return o
		}
	}
	at := h.since(iv.Start)
	i, _ := slices.BinarySearch(h.rows.at, at)
	for i < len(h.rows.at) && h.rows.at[i] <= at {
		i++ // after all rows of the same moment
	}
	o := &opened{}
	if len(h.open) >= openRows { // the memory of the oldest row is reused
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

// write stores the sums of o in its row.
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

// population sets a column of a population, unless there are too many columns.
func (h *history) population(name, of string, set func(column int, x float64), x float64) {
	if _, known := h.column[of+name]; known || len(h.column) < 2*mostPopulations+colFixed {
		set(h.named(of+name), x)
	}
}

// jobColumn returns the name of a column of jobs, which exists only in runs with jobs.
func jobColumn(what string) string { return "job " + what }

// named returns the column of that name, and adds it if necessary.
func (h *history) named(name string) int {
	c, ok := h.column[name]
	if !ok {
		c = len(h.rows.cols)
		h.column[name] = c
		h.names = append(h.names, name)
		h.rows.widen(0)
		h.turn() // pages receive the columns when they begin
	}
	return c
}

// perSecond returns a rate, or 0 if the duration is too short for a rate.
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
