package control_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"weir/loadtest/challenge"
	"weir/loadtest/challenge/control"
	"weir/loadtest/challenge/inject/simulated"
)

// Two controllers with the same inputs decide the same.
func TestSameInputsSameDecisions(t *testing.T) {
	run := func() []int {
		m := simulated.Options{Sites: make([]simulated.Site, 3), Latency: time.Second, Spread: 0.9}
		m.Links = []simulated.Link{{From: 0, To: 1, PerCopy: file}, {From: 1, To: 2, PerCopy: file}, {From: 0, To: 2, Capacity: rate / 3}}
		m.Sites[2].Failure = 0.3
		r := newRig(t, m, control.Options{Delay: time.Second, Sites: []int{5, 0, 8}, Ceiling: 2 * rate}, file)
		r.run(t, 300)
		return r.starts
	}
	if a, b := run(), run(); !slices.Equal(a, b) || slices.Min(a) == 0 {
		t.Errorf("starts %v and %v", a, b)
	}
}

// Whatever is seen, decisions keep the limits: copies of a link and of its sites, no copies without a
// target or above the ceiling, a reason for each link.
func TestLimitsAreKept(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		o := control.Options{Sites: []int{0, 1, 2, 7}, Delay: time.Duration(random.IntN(1e10))}
		o.Ceiling = float64(random.IntN(2)) * rate
		for range 10 {
			from := random.IntN(4)
			l := control.Limit{Source: from, Dest: (from + 1) % 4, InFlight: random.IntN(20), FileBytes: random.Int64N(3 * file)}
			o.Links = append(o.Links, l)
		}
		c, now := control.New(o), time.Duration(random.IntN(1e10))
		seen, wild := make([]control.Seen, 10), random.IntN(2) == 0
		for range 300 {
			now += time.Duration(random.Int64N(1e8)) + time.Duration(random.IntN(100)/99)*time.Hour // suspended at times
			for i := range seen {
				seen[i].Target = float64(random.IntN(3)) * rate
				seen[i].Moved = random.Int64N(file)
				if wild {
					seen[i] = control.Seen{
						Target: math.Pow(10, 15*random.Float64()), Moved: random.Int64N(1e15), InFlight: random.IntN(30), Queued: random.IntN(30),
						Left: random.Int64N(1e15), Done: random.IntN(2), Failed: random.IntN(3),
					}
				}
			}
			decisions := c.Decide(now, seen)
			checkLimits(t, &o, seen, decisions)
			for i, d := range decisions {
				ended := random.IntN(seen[i].InFlight + d.Start + 1)
				seen[i].InFlight += d.Start - ended
				seen[i].Done = random.IntN(ended + 1)
				seen[i].Failed = ended - seen[i].Done
				seen[i].Left = int64(seen[i].InFlight) * file / 2
			}
		}
	}
}

func checkLimits(t *testing.T, o *control.Options, seen []control.Seen, decisions []control.Decision) {
	t.Helper()
	used := make([]int, len(o.Sites))
	started := make([]int, len(o.Sites))
	for i, d := range decisions {
		n := seen[i].InFlight + d.Start
		used[o.Links[i].Source] += n
		used[o.Links[i].Dest] += n
		started[o.Links[i].Source] += d.Start
		started[o.Links[i].Dest] += d.Start
		limit := o.Links[i].InFlight
		if d.Start < 0 || d.Reason == "" || d.Start > 0 && (n > d.Allowed || limit > 0 && n > limit || seen[i].Target == 0) ||
			seen[i].Target == 0 && d.Reason != challenge.Idle {
			t.Fatalf("link %d: %+v after %+v", i, d, seen[i])
		}
	}
	for k, n := range used {
		if started[k] > 0 && o.Sites[k] > 0 && n > o.Sites[k] {
			t.Fatalf("site %d of %d has %d copies, %d of them new", k, o.Sites[k], n, started[k])
		}
	}
}
