package schedule

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/transfer"
)

// A link whose copies get 10 MB/s each, and 200 MB/s in all, needs 20 at once: the limit approaches
// that number, from below and from above, and stays there.
func TestLimitsConverge(t *testing.T) {
	for _, start := range []int{2, 8, 60} {
		w := newWorld(Rules{Start: start}, 100e6, 1000, map[string]*pipe{"A": {all: 200e6, each: 10e6}})
		w.run(10*time.Minute, "A")
		var limits []int
		for range 20 {
			w.run(10*time.Second, "A")
			limits = append(limits, w.limit("A").Limit)
		}
		l := w.limit("A")
		t.Logf("from %d: %v; %s", start, limits, l.Why)
		low, high := 64, 0
		for _, n := range limits {
			low, high = min(low, n), max(high, n)
		}
		if low < 12 || start < 60 && high > 40 || l.Rate < 130e6 {
			t.Errorf("from %d: limits %d to %d, %.3g MB/s: %s", start, low, high, l.Rate/1e6, l.Why)
		}
	}
}

// A site whose disks thrash with more than a few readers gets no more copies.
func TestLimitsGoDownWhereMoreIsLess(t *testing.T) {
	thrash := func(n int) float64 { return min(1, math.Pow(6/float64(n), 2)) }
	w := newWorld(Rules{Start: 12}, 100e6, 1000, map[string]*pipe{"A": {all: 100e6, each: 50e6, slow: thrash}})
	w.run(10*time.Minute, "A")
	if l := w.limit("A"); l.Limit > 9 || l.Rate < 70e6 {
		t.Errorf("%d at once, %.3g MB/s: %s", l.Limit, l.Rate/1e6, l.Why)
	}
}

// A site that drops copies when there are more than ten gets fewer copies.
func TestLimitsGoDownWithFailures(t *testing.T) {
	drops := func(n int) float64 {
		if n > 10 {
			return 0.5
		}
		return 0
	}
	w := newWorld(Rules{Start: 40}, 20e6, 1000, map[string]*pipe{"A": {all: 1e9, each: 10e6, fail: drops}})
	w.run(30*time.Second, "A")
	if l := w.limit("A"); !strings.Contains(l.Why, "failed") && !strings.Contains(l.Why, "at once") {
		t.Errorf("a reason that is none: %q", l.Why)
	}
	w.run(10*time.Minute, "A")
	good, bad := w.good["A"], w.bad["A"]
	w.run(10*time.Minute, "A")
	good, bad = w.good["A"]-good, w.bad["A"]-bad
	if share := float64(bad) / float64(good+bad); share > 0.1 {
		t.Errorf("%.3g of the copies still fail, limit %+v", share, w.limit("A"))
	}
}

// The faster source gets the files, the slower source a few probes and the files that it can send
// meanwhile; if it becomes the faster source, this is noticed.
func TestTheFasterSourceIsFound(t *testing.T) {
	pipes := map[string]*pipe{"A": {all: 100e6, each: 100e6}, "B": {all: 5e6, each: 5e6}}
	w := newWorld(Rules{}, 10e6, 1000, pipes)
	w.run(5*time.Minute, "A", "B")
	if a, b := w.good["A"], w.good["B"]; a < 8*b || b == 0 {
		t.Errorf("%d files from the fast source, %d from the slow one", a, b)
	}
	pipes["A"].all, pipes["B"].all = 5e6, 100e6
	pipes["A"].each, pipes["B"].each = 5e6, 100e6
	w.run(5*time.Minute, "A", "B")
	a, b := w.good["A"], w.good["B"]
	w.run(5*time.Minute, "A", "B")
	if a, b = w.good["A"]-a, w.good["B"]-b; b < 8*a {
		t.Errorf("after the change %d files from the slow source, %d from the fast one", a, b)
	}
	if w.probes == 0 {
		t.Error("there were no probes")
	}
}

// A source that fails is avoided, probed now and then, and used again when it has recovered.
func TestBadSourcesAreAvoidedAndTriedAgain(t *testing.T) {
	broken := func(int) float64 { return 1 }
	pipes := map[string]*pipe{"A": {all: 100e6, each: 20e6, fail: broken}, "B": {all: 50e6, each: 20e6}}
	w := newWorld(Rules{Start: 4}, 20e6, 1000, pipes)
	w.run(2*time.Minute, "A", "B")
	bad, good := w.bad["A"], w.good["B"]
	w.run(10*time.Minute, "A", "B")
	bad, good = w.bad["A"]-bad, w.good["B"]-good
	if bad == 0 || float64(bad) > 0.15*float64(good) {
		t.Errorf("%d failures of the broken source beside %d good copies", bad, good)
	}
	c := w.net.Choose(File{Bytes: w.size, Dest: "D", Sources: []string{"A", "B"}}, w.now)
	if r := c.Ranks[len(c.Ranks)-1]; r.Source != "A" || r.Penalty <= 0 {
		t.Errorf("the broken source: %+v", c.Ranks)
	}
	pipes["A"].fail = nil
	w.run(15*time.Minute, "A", "B")
	before := w.good["A"]
	w.run(5*time.Minute, "A", "B")
	if again := w.good["A"] - before; again < 200 {
		t.Errorf("only %d copies from the source that is well again", again)
	}
}

// As many small files are handed out as the mover copies in two seconds, and as many large files as
// may run at once.
func TestSmallFilesWaitAtTheMover(t *testing.T) {
	for size, want := range map[int64][2]int{64 << 10: {200, 640}, 1 << 30: {10, 10}} {
		n := New(Rules{}, 1)
		now := time.Unix(1e9, 0)
		for range 20 {
			n.Learn(transfer.Attempt{Source: "A", Dest: "D", Outcome: transfer.Outcome{
				Begin: now.Add(-time.Duration(float64(size) / 10e6 * 1e9)), End: now, Moved: size,
			}})
		}
		count := 0
		for n.Choose(File{Bytes: size, Dest: "D", Sources: []string{"A"}}, now).Source != "" {
			n.Began("A", "D", size, now)
			count++
		}
		if count < want[0] || count > want[1] {
			t.Errorf("%d files of %d bytes at once", count, size)
		}
	}
}

// Waiting for a full source that is much faster is preferred; sites have limits of their own.
func TestWaitingIsWorthIt(t *testing.T) {
	now := time.Unix(1e9, 0)
	n := New(fixedTo(2), 1)
	for range 10 {
		for from, d := range map[string]time.Duration{"fast": time.Second, "slow": 10 * time.Minute} {
			n.Learn(transfer.Attempt{Source: from, Dest: "D", Outcome: transfer.Outcome{Begin: now.Add(-d), End: now, Moved: 1e9}})
		}
	}
	n.Began("fast", "D", 1e9, now)
	n.Began("fast", "D", 1e9, now)
	n.rules.Ahead = time.Nanosecond
	f := File{Bytes: 1e9, Dest: "D", Sources: []string{"slow", "fast"}}
	c := n.Choose(f, now)
	if c.Source != "" || c.Wait != "fast" || !strings.Contains(c.Why, "is full: 2 copies at once") {
		t.Errorf("%+v", c)
	}
	n.Left("fast", "D", 1e9, now)
	if c := n.Choose(f, now); c.Source != "fast" && !c.Probe || !strings.Contains(c.Why, "fast would take 1 s") {
		t.Errorf("%+v", c)
	}
	f.Max = map[string]int{"D": 1}
	if c := n.Choose(f, now); c.Source != "" || !strings.Contains(c.Why, "site D has the 1 copy at once") {
		t.Errorf("%+v", c)
	}
	if c := n.Choose(File{Dest: "D"}, now); c.Source != "" || c.Why == "" {
		t.Errorf("no sources: %+v", c)
	}
}

// Kept state is restored; the same seed and history lead to the same choices.
func TestKeepingANetwork(t *testing.T) {
	pipes := map[string]*pipe{"A": {all: 100e6, each: 10e6}, "B": {all: 50e6, each: 10e6}}
	a, b := newWorld(Rules{}, 10e6, 100, pipes), newWorld(Rules{}, 10e6, 100, pipes)
	a.run(time.Minute, "A", "B")
	b.run(time.Minute, "A", "B")
	if !reflect.DeepEqual(a.good, b.good) || !reflect.DeepEqual(a.net.Links(), b.net.Links()) {
		t.Error("the same history was decided in two ways")
	}
	text, err := json.Marshal(a.net.Keep())
	require.NoError(t, err)
	var kept []Kept
	require.NoError(t, json.Unmarshal(text, &kept))
	again := New(Rules{Max: 5}, 1)
	again.Load(kept, a.now)
	for i, l := range again.Links() {
		if l.Limit > 5 || l.Active != 0 || l.Success != kept[i].Success || l.Rate != kept[i].Rate {
			t.Errorf("%+v of %+v", l, kept[i])
		}
	}
	fixed := New(fixedTo(3), 1)
	fixed.Load(kept, a.now)
	if l := fixed.Links()[0]; l.Limit != 3 {
		t.Errorf("%+v", l)
	}
}

// The rate of a link is the current rate: it rises as soon as a copy has begun, and is 0 a second
// after the last copy has ended.
func TestSpeedIsOfNow(t *testing.T) {
	n := New(Rules{}, 1)
	now := time.Unix(1e9, 0)
	speed := func() float64 { return n.Links()[0].Rate }
	n.Began("A", "B", 20e6, now)
	for _, bytes := range []int64{14e6, 6e6} {
		n.Moved("A", "B", bytes, now)
		now = now.Add(time.Second)
		n.Tick(now)
		if got := speed(); got < 6e6 || got > 14e6 {
			t.Errorf("%.0f B/s", got)
		}
	}
	n.Left("A", "B", 20e6, now)
	now = now.Add(time.Second)
	n.Tick(now)
	if got := speed(); got != 0 {
		t.Errorf("%.0f B/s, and nothing is copied", got)
	}
}

// fixedTo returns rules with exactly n copies at once on each link.
func fixedTo(n int) Rules { return Rules{Min: n, Max: n, Start: n} }

// The state of a site's links is forgotten with the site.
func TestForget(t *testing.T) {
	n, now := New(Rules{}, 1), time.Now()
	for _, w := range [][2]string{{"A", "B"}, {"B", "C"}, {"C", "A"}} {
		n.Began(w[0], w[1], 1, now)
		n.Left(w[0], w[1], 1, now)
	}
	n.Forget("B")
	if kept := n.Keep(); len(kept) != 1 || kept[0].Source != "C" {
		t.Errorf("%+v", kept)
	}
}
