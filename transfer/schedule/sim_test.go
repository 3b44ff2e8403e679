package schedule

import (
	"math/rand/v2"
	"time"

	"weir/transfer"
)

// A pipe holds the true properties of a connection between two sites.
type pipe struct {
	all  float64                  // bytes per second of all copies
	each float64                  // maximum of one copy
	slow func(active int) float64 // fraction of all that remains with this number of copies; nil: all
	fail func(active int) float64 // probability that a copy fails
	wait float64                  // additional seconds of each copy
}

type copying struct {
	from   string
	begin  time.Time
	left   float64
	wait   float64
	doomed bool
}

// A world is a simulated network: files of one size for one destination.
type world struct {
	net     *Network
	now     time.Time
	rand    *rand.Rand
	pipes   map[string]*pipe
	size    int64
	slots   int // of the mover
	running []*copying
	good    map[string]int
	bad     map[string]int
	probes  int
}

const tick = 100 * time.Millisecond

func newWorld(r Rules, size int64, slots int, pipes map[string]*pipe) *world {
	return &world{
		net: New(r, 1), now: time.Unix(1e9, 0), rand: rand.New(rand.NewPCG(1, 2)),
		pipes: pipes, size: size, slots: slots, good: map[string]int{}, bad: map[string]int{},
	}
}

// run advances the time, with enough files.
func (w *world) run(d time.Duration, sources ...string) {
	for end := w.now.Add(d); w.now.Before(end); w.now = w.now.Add(tick) {
		w.begin(sources)
		w.move()
		w.net.Tick(w.now.Add(tick))
	}
}

func (w *world) begin(sources []string) {
	for {
		c := w.net.Choose(File{Bytes: w.size, Dest: "D", Sources: sources}, w.now)
		if c.Source == "" || len(w.running) > 10000 {
			return
		}
		if c.Probe {
			w.probes++
		}
		p := w.pipes[c.Source]
		doom := p.fail != nil && w.rand.Float64() < p.fail(w.active(c.Source)+1)
		w.running = append(w.running, &copying{from: c.Source, left: float64(w.size), wait: p.wait, doomed: doom})
		w.net.Began(c.Source, "D", w.size, w.now)
	}
}

func (w *world) active(from string) (n int) {
	for _, c := range w.running {
		if c.from == from && !c.begin.IsZero() {
			n++
		}
	}
	return n
}

func (w *world) move() {
	n := map[string]int{}
	for _, c := range w.running {
		if !c.begin.IsZero() {
			n[c.from]++
		}
	}
	for _, c := range w.running { // the mover observes the limit
		if c.begin.IsZero() && n[c.from] < w.limit(c.from).Limit && n["A"]+n["B"] < w.slots {
			n[c.from]++
			c.begin = w.now
		}
	}
	kept := w.running[:0]
	for _, c := range w.running {
		if c.begin.IsZero() || !w.step(c, n[c.from]) {
			kept = append(kept, c)
		}
	}
	w.running = kept
}

// step advances a copy by a tick, and reports whether it has ended.
func (w *world) step(c *copying, active int) bool {
	p := w.pipes[c.from]
	all := p.all
	if p.slow != nil {
		all *= p.slow(active)
	}
	end := w.now.Add(tick)
	d := tick.Seconds()
	if c.wait > 0 {
		used := min(d, c.wait)
		c.wait -= used
		d -= used
	}
	moved := min(c.left, d*min(p.each, all/float64(active))*(0.9+0.2*w.rand.Float64()))
	c.left -= moved
	w.net.Moved(c.from, "D", int64(moved), end)
	if c.left > 0 && !(c.doomed && c.left < float64(w.size)/2) {
		return false
	}
	a := transfer.Attempt{Source: c.from, Dest: "D", Outcome: transfer.Outcome{Begin: c.begin, End: end, Moved: w.size}}
	if c.doomed {
		a.Fault, a.Moved = transfer.Transient, w.size/2
		w.bad[c.from]++
	} else {
		w.good[c.from]++
	}
	w.net.Left(c.from, "D", w.size, end)
	w.net.Learn(a)
	return true
}

func (w *world) limit(from string) transfer.Link {
	for _, l := range w.net.Links() {
		if l.Source == from {
			return l
		}
	}
	return transfer.Link{}
}
