package control_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"weir/internal/require"
	"weir/loadtest/challenge"
	"weir/loadtest/challenge/control"
	"weir/loadtest/challenge/inject"
	"weir/loadtest/challenge/inject/simulated"
)

const (
	tick = 100 * time.Millisecond
	rate = 1e8         // bytes/s, the target of most tests
	file = rate * 0.12 // bytes: 1/50 of a minute at a tenth of the rate
)

// A rig has a controller carry out a challenge on a model.
type rig struct {
	model   *simulated.Simulated
	control *control.Controller
	target  func(link int, at float64) float64 // bytes/s
	size    func(r *rand.Rand, link int) int64
	random  *rand.Rand
	at      time.Duration
	last    []simulated.Counts
	seen    []control.Seen
	copies  []inject.Copy
	id      int64
	moved   [][]float64 // bytes of each link, each second
	owed    [][]float64 // target bytes
	left    [][]float64 // bytes in flight at the beginning of each second
	flight  [][]float64 // copies in flight, mean of each second
	reasons []map[challenge.Reason]int
	starts  []int
	brief   bool    // keep no values of seconds
	wrong   float64 // share of the copies whose verification fails
	lost    []int   // of each link, number of these
}

// newRig returns a rig; the links of the controller have the limits of the model's links.
func newRig(t testing.TB, m simulated.Options, o control.Options, size int64) *rig {
	t.Helper()
	model, err := simulated.New(m)
	require.NoError(t, err)
	n := len(m.Links)
	if o.Links == nil {
		for _, l := range m.Links {
			o.Links = append(o.Links, control.Limit{Source: l.From, Dest: l.To, InFlight: 5000, FileBytes: size})
		}
	}
	if o.Sites == nil {
		o.Sites = make([]int, len(m.Sites))
	}
	r := &rig{
		model: model, control: control.New(o), random: rand.New(rand.NewPCG(5, 6)), last: make([]simulated.Counts, n),
		seen: make([]control.Seen, n), moved: make([][]float64, n), owed: make([][]float64, n), flight: make([][]float64, n),
		left:    make([][]float64, n),
		reasons: make([]map[challenge.Reason]int, n), starts: make([]int, n), lost: make([]int, n),
		target: func(int, float64) float64 { return rate },
		size:   func(*rand.Rand, int) int64 { return size },
	}
	for i := range r.reasons {
		r.reasons[i] = map[challenge.Reason]int{}
	}
	return r
}

// run carries out seconds of the model's time.
func (r *rig) run(t testing.TB, seconds int) {
	t.Helper()
	for range seconds * int(time.Second/tick) {
		r.tick(t)
	}
}

// tick carries out the time between two decisions.
func (r *rig) tick(t testing.TB) {
	second := int(r.at / time.Second)
	for i := range r.seen {
		now, last := r.model.Counts(i), r.last[i]
		r.last[i] = now
		r.seen[i] = control.Seen{
			Target: r.target(i, r.at.Seconds()), Moved: now.Moved - last.Moved, InFlight: now.InFlight, Queued: now.Queued, Left: now.Left,
			Done: now.Done - last.Done, Failed: now.Failed - last.Failed,
		}
		if n := int(r.wrong*float64(now.Done)) - r.lost[i]; n > 0 {
			s := &r.seen[i]
			s.Done, s.Failed, s.Wrong, r.lost[i] = s.Done-n, s.Failed+n, int64(n)*r.size(r.random, i), r.lost[i]+n
		}
		if !r.brief {
			r.record(i, second, &now)
		}
	}
	decisions := r.control.Decide(r.at, r.seen)
	r.copies = r.copies[:0]
	for i, d := range decisions {
		r.reasons[i][d.Reason]++
		r.starts[i] += d.Start
		if d.Start > 0 && r.seen[i].InFlight+d.Start > d.Allowed || d.Reason == "" {
			t.Fatalf("at %v link %d with %d in flight: %+v", r.at, i, r.seen[i].InFlight, d)
		}
		for range d.Start {
			r.id++
			r.copies = append(r.copies, inject.Copy{ID: r.id, Link: i, Source: inject.File{Size: r.size(r.random, i)}})
		}
	}
	if len(r.copies) > 0 {
		require.NoError(t, r.model.Start(t.Context(), r.copies))
	}
	r.model.Step(tick)
	r.at += tick
}

// record keeps the values of the time before a decision.
func (r *rig) record(i, second int, now *simulated.Counts) {
	if second == len(r.owed[i]) {
		r.left[i] = append(r.left[i], float64(now.Left))
		r.owed[i], r.flight[i], r.moved[i] = append(r.owed[i], 0), append(r.flight[i], 0), append(r.moved[i], 0)
	}
	r.owed[i][second] += r.seen[i].Target * tick.Seconds()
	r.flight[i][second] += float64(now.InFlight) * tick.Seconds()
	if r.at > 0 {
		r.moved[i][int((r.at-tick)/time.Second)] += float64(r.seen[i].Moved)
	}
}

// ratio returns moved over target bytes of a link in some seconds.
func (r *rig) ratio(link, from, to int) float64 {
	return sum(r.moved[link][from:to]) / sum(r.owed[link][from:to])
}

// worst returns the lowest and highest ratio of any window of a length in some seconds.
func (r *rig) worst(link, from, to, length int) (low, high float64) {
	low, high = math.Inf(1), 0
	for i := from; i+length <= to; i++ {
		x := r.ratio(link, i, i+length)
		low, high = min(low, x), max(high, x)
	}
	return low, high
}

func sum(x []float64) (s float64) {
	for _, v := range x {
		s += v
	}
	return s
}

// one returns a model of a link.
func one(l simulated.Link, latency time.Duration) simulated.Options {
	l.From, l.To = 0, 1
	return simulated.Options{
		Sites: []simulated.Site{{Name: "a"}, {Name: "b"}}, Links: []simulated.Link{l}, Latency: latency, Spread: 0.3, Seed: 3,
	}
}
