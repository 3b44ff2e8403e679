package control_test

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"weir/internal/burn"
	"weir/internal/require"
	"weir/internal/tier"
	"weir/loadtest/challenge/control"
	"weir/loadtest/challenge/inject/simulated"
)

// grid returns a challenge of 100 sites and 2,000 links with a number of copies in a second, which take
// 11 s each, and with a ceiling and limits of sites.
func grid(t testing.TB, perSecond float64) *rig {
	const links = 2000
	m := simulated.Options{Sites: make([]simulated.Site, 100), Latency: time.Second, Spread: 0.3, Seed: 1}
	random := rand.New(rand.NewPCG(1, 2))
	for range links {
		from := random.IntN(100)
		m.Links = append(m.Links, simulated.Link{From: from, To: (from + 1 + random.IntN(99)) % 100, PerCopy: file / 10})
	}
	o := control.Options{Delay: time.Second, Sites: make([]int, 100), Ceiling: 2 * perSecond * file}
	for i := range o.Sites {
		o.Sites[i] = int(10 + perSecond)
	}
	r := newRig(t, m, o, file)
	r.target = func(int, float64) float64 { return file * perSecond / links }
	return r
}

// The control of 2,000 links holds, and takes a small part of one core. The CPU time is that of the
// controller alone; a busy machine does not add to it.
func TestScale(t *testing.T) {
	seconds, perSecond := 300, 50.0
	if tier.IsFull() {
		seconds, perSecond = 400, 500 // 200,000 files; 2000 s have a million and take two minutes of CPU time
	}
	r := grid(t, perSecond)
	r.brief = true
	r.run(t, 120)
	moved, owed, done := 0.0, 0.0, 0
	for i := range r.last {
		moved -= float64(r.last[i].Moved)
	}
	r.run(t, seconds-120)
	for i := range r.last {
		moved += float64(r.last[i].Moved)
		owed += r.target(i, 0) * float64(seconds-120)
		done += r.last[i].Done
	}
	require.Near(t, "rate of all links", moved/owed, 1, 0.01)
	if float64(done) < 0.94*perSecond*float64(seconds-20) {
		t.Errorf("%d copies in %d s", done, seconds)
	}
	before, n := burn.Process(), 0
	for ; burn.Process()-before < 200*time.Millisecond; n++ {
		r.control.Decide(r.at+time.Duration(n)*tick, r.seen)
	}
	cost := (burn.Process() - before).Seconds() / float64(n) / tick.Seconds()
	t.Logf("%d copies; the controller takes %.4f s of CPU time in a second, %.1f µs for each decision of 2,000 links", done, cost, cost*1e5)
	if cost > 0.2 {
		t.Errorf("the controller takes %.2f s of CPU time in a second", cost)
	}
}

// A decision allocates nothing, and the state of 2,000 links is small.
func TestMemory(t *testing.T) {
	r := grid(t, 50)
	r.run(t, 60)
	if n := testing.AllocsPerRun(100, func() {
		r.at += tick
		r.control.Decide(r.at, r.seen)
	}); n != 0 {
		t.Errorf("a decision allocates %v times", n)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c := control.New(control.Options{Links: make([]control.Limit, 2000), Sites: make([]int, 100)})
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(c)
	if used := after.TotalAlloc - before.TotalAlloc; used > 5<<20 {
		t.Errorf("a controller of 2,000 links takes %d bytes", used)
	}
}

func BenchmarkDecide(b *testing.B) {
	r := grid(b, 50)
	r.run(b, 60)
	b.ReportAllocs()
	for b.Loop() {
		r.at += tick
		r.control.Decide(r.at, r.seen)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2000, "ns/link")
}
