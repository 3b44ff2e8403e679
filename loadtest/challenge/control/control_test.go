package control_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"weir/internal/require"
	"weir/loadtest/challenge"
	"weir/loadtest/challenge/control"
	"weir/loadtest/challenge/inject/simulated"
)

// steps is a profile of stages of ten minutes.
func steps(at float64) float64 {
	shares := []float64{0.1, 0.25, 0.5, 1, 0.5, 0.1, 0, 1}
	return rate * shares[min(int(at/600), len(shares)-1)]
}

// Nothing limits: each mean of a minute is within 3% of the target, for copies that begin after 0.1 s
// to 60 s and move for 0.2 s to 60 s. After each change the mean of any minute is at most 10% above
// the target, or the bytes that were in flight already.
func TestTargetIsHeld(t *testing.T) {
	for _, latency := range []float64{0.1, 1, 5, 20, 60} {
		for _, moving := range []float64{0.2, 2, 10, 60} {
			for _, random := range []bool{false, true} {
				t.Run(fmt.Sprintf("latency %v moving %v random %v", latency, moving, random), func(t *testing.T) {
					t.Parallel()
					m := one(simulated.Link{PerCopy: file / moving}, time.Duration(latency*1e9))
					if latency > 1 {
						m.Spread = 0.3 / latency
					}
					size := int64(file)
					if random {
						size /= 4 // at most half of the others
					}
					r := newRig(t, m, control.Options{Delay: m.Latency}, size)
					if random {
						r.size = func(r *rand.Rand, _ int) int64 { return r.Int64N(2 * size) }
					}
					r.target = func(_ int, at float64) float64 { return steps(at) }
					r.run(t, 4800)
					for stage := range 8 {
						checkStage(t, r, stage, latency+moving)
					}
				})
			}
		}
	}
}

// checkStage compares a stage of ten minutes with the target; copies take some seconds.
func checkStage(t *testing.T, r *rig, stage int, copies float64) {
	t.Helper()
	from, to := 600*stage, 600*(stage+1)
	if r.owed[0][from] == 0 {
		if late := sum(r.moved[0][from+150 : to]); late > 0 || sum(r.moved[0][from:to]) > r.left[0][from] {
			t.Errorf("pause: %v bytes, %v of them late; %v were in flight", sum(r.moved[0][from:to]), late, r.left[0][from])
		}
		return
	}
	if low, high := r.worst(0, from+300, to, 60); low < 0.97 || high > 1.03 {
		t.Errorf("stage %d: means of a minute are %.3f to %.3f of the target", stage, low, high)
	}
	most := 1.1
	if copies > 15 {
		most = max(1.15, 1.05*r.left[0][from]/sum(r.owed[0][from:from+60]))
	}
	if _, high := r.worst(0, from, to, 60); high > most {
		t.Errorf("stage %d: a minute after the change has %.3f of the target, at most %.3f expected", stage, high, most)
	}
	if first := r.ratio(0, from, from+60); copies <= 5 && (first < 0.96 || first > 1.04) { // one file at its beginning and its end
		t.Errorf("stage %d: the first minute has %.3f of the target", stage, first)
	}
}

// The latency need not be known in advance.
func TestLatencyIsMeasured(t *testing.T) {
	for _, latency := range []float64{5, 20} {
		m := one(simulated.Link{PerCopy: file}, time.Duration(latency*1e9))
		m.Spread = 1 / latency
		r := newRig(t, m, control.Options{}, file)
		r.run(t, 1200)
		if low, high := r.worst(0, 600, 1200, 60); low < 0.97 || high > 1.03 {
			t.Errorf("latency %v: means of a minute are %.3f to %.3f of the target", latency, low, high)
		}
	}
}

// Ramps up and down, and a pause.
func TestRamps(t *testing.T) {
	for _, moving := range []float64{0.5, 5} {
		r := newRig(t, one(simulated.Link{PerCopy: file / moving}, time.Second), control.Options{Delay: time.Second}, file)
		r.target = func(_ int, at float64) float64 {
			switch {
			case at < 600:
				return rate * (0.1 + 0.9*at/600)
			case at >= 1200 && at < 1320:
				return 0
			case at >= 1800:
				return rate * max(0.1, 1-(at-1800)/600)
			}
			return rate
		}
		r.run(t, 2700)
		for _, part := range [][2]int{{60, 1200}, {1330, 2700}} {
			if low, high := r.worst(0, part[0], part[1], 60); low < 0.97 || high > 1.03 {
				t.Errorf("moving %v, seconds %v: means of a minute are %.3f to %.3f of the target", moving, part, low, high)
			}
		}
	}
}

// While the line is limited, the link has the rate of the line, and the number of its copies does not
// grow without bound. After the limit is gone, no minute has more than 10% above the target.
func TestNoWindUp(t *testing.T) {
	for _, moving := range []float64{0.2, 3, 20} {
		for _, share := range []float64{0.75, 0.5, 0.2} {
			t.Run(fmt.Sprintf("moving %v share %v", moving, share), func(t *testing.T) {
				t.Parallel()
				m := one(simulated.Link{PerCopy: file / moving}, time.Second)
				m.Changes = []simulated.Change{
					{At: 300 * time.Second, Part: simulated.OfLink, Capacity: share * rate}, {At: 1500 * time.Second, Part: simulated.OfLink},
				}
				r := newRig(t, m, control.Options{Delay: time.Second}, file)
				r.run(t, 2400)
				require.Near(t, "rate while limited", r.ratio(0, 360, 1500)/share, 1, 0.02)
				if _, high := r.worst(0, 1500, 2400, 60); high > 1.1 {
					t.Errorf("after the limit a minute has %.3f of the target", high)
				}
				if low, high := r.worst(0, 1560, 2400, 60); low < 0.97 || high > 1.03 {
					t.Errorf("a minute after the limit: means of a minute are %.3f to %.3f of the target", low, high)
				}
				free, limited := sum(r.flight[0][200:300])/100, sum(r.flight[0][1400:1500])/100
				if limited > 2*free/share {
					t.Errorf("%.0f copies in flight without a limit, %.0f with it", free, limited)
				}
				if r.reasons[0][challenge.Saturated] < 1000 {
					t.Errorf("reasons %v", r.reasons[0])
				}
			})
		}
	}
}

// Copies become slow: the link gets more of them, until it has its target rate again.
func TestMoreCopies(t *testing.T) {
	m := one(simulated.Link{PerCopy: file / 3}, time.Second)
	m.Changes = []simulated.Change{{At: 300 * time.Second, Part: simulated.PerCopy, Capacity: file / 15}}
	r := newRig(t, m, control.Options{Delay: time.Second}, file)
	r.run(t, 1200)
	if low, high := r.worst(0, 480, 1200, 60); low < 0.97 || high > 1.05 {
		t.Errorf("means of a minute are %.3f to %.3f of the target", low, high)
	}
	if _, high := r.worst(0, 300, 1200, 60); high > 1.1 || r.reasons[0][challenge.Raised] == 0 {
		t.Errorf("a minute has %.3f of the target; reasons %v", high, r.reasons[0])
	}
}

// fairness is Jain's index: 1 if all are equal, 1/n if one has all.
func fairness(x []float64) float64 {
	squares := 0.0
	for _, v := range x {
		squares += v * v
	}
	return sum(x) * sum(x) / (float64(len(x)) * squares)
}

// Three links share a trunk that carries half of their targets.
func TestSharedTrunk(t *testing.T) {
	for _, moving := range []float64{0.2, 3} {
		for _, begin := range []time.Duration{0, 600 * time.Second} {
			m := simulated.Options{
				Sites: make([]simulated.Site, 6), Latency: time.Second, Spread: 0.3, Trunks: []simulated.Trunk{{Links: []int{0, 1, 2}}},
				Changes: []simulated.Change{{At: begin, Part: simulated.OfTrunk, Capacity: 1.5 * rate}},
			}
			for i := range 3 {
				m.Links = append(m.Links, simulated.Link{From: 2 * i, To: 2*i + 1, PerCopy: file / moving})
			}
			r := newRig(t, m, control.Options{Delay: time.Second}, file)
			r.run(t, 3600)
			var rates []float64
			for i := range 3 {
				rates = append(rates, r.ratio(i, 900, 3600))
				if low, _ := r.worst(i, 900, 3600, 60); low < 0.8*0.5 {
					t.Errorf("link %d has %.2f of its target in a minute", i, low)
				}
			}
			if f := fairness(rates); f < 0.98 || sum(rates) < 0.95*1.5 {
				t.Errorf("moving %v: fairness %.3f, rates %v", moving, f, rates)
			}
		}
	}
}

// A site takes 2 copies at once. The slow copies of one of its links do not keep the others from their
// targets; if all of them need more than there is, each has a share of the slots.
func TestSlotsOfASite(t *testing.T) {
	for _, share := range []float64{0.2, 1} {
		m := simulated.Options{Sites: make([]simulated.Site, 5)}
		for i := range 4 {
			m.Links = append(m.Links, simulated.Link{From: 0, To: i + 1, PerCopy: file})
		}
		m.Links[3].PerCopy = file / 60
		m.Sites[0].Slots = 2
		r := newRig(t, m, control.Options{Delay: time.Second, Sites: []int{2, 0, 0, 0, 0}}, file)
		r.target = func(int, float64) float64 { return share * file } // a copy takes 1 s, or 60 s
		r.run(t, 2400)
		slots := make([]float64, 4)
		for i := range slots {
			slots[i] = sum(r.flight[i][600:]) / 1800
			if got := r.ratio(i, 600, 2400); share < 1 && i < 3 && got < 0.97 {
				t.Errorf("link %d has %.2f of its target beside a slow link", i, got)
			}
		}
		if n := sum(slots); n > 2 || share < 1 && slots[3] < 0.95 || share == 1 && (n < 1.7 || slices.Min(slots) < 0.35) {
			t.Errorf("share %v: slots %.2f", share, slots)
		}
		if r.reasons[3][challenge.Copies] < 10000 {
			t.Errorf("reasons of the slow link: %v", r.reasons[3])
		}
	}
}

// The service begins 2 copies in a second, of more than 8 that the target needs.
func TestQueueOfTheService(t *testing.T) {
	m := one(simulated.Link{PerCopy: rate}, time.Second)
	m.Starts = 2
	r := newRig(t, m, control.Options{Delay: time.Second}, file)
	r.run(t, 2400)
	require.Near(t, "rate", r.ratio(0, 60, 2400), 2*file/rate, 0.01)
	if most, late := slices.Max(r.flight[0]), slices.Max(r.flight[0][600:]); most > 80 || late > 25 || r.reasons[0][challenge.Queued] < 15000 {
		t.Errorf("%v copies in flight, later %v; reasons %v", most, late, r.reasons[0])
	}
}

// A tenth of the copies fails: the link has its target rate.
func TestFailures(t *testing.T) {
	m := one(simulated.Link{PerCopy: rate}, time.Second)
	m.Sites[0].Failure = 0.1
	r := newRig(t, m, control.Options{Delay: time.Second}, file)
	r.run(t, 1800)
	if low, high := r.worst(0, 60, 1800, 60); low < 0.97 || high > 1.03 {
		t.Errorf("means of a minute are %.3f to %.3f of the target", low, high)
	}
}

// Copies whose verification fails are made up for, but with them the link moves no more than a tenth above
// the target, and the error of its files.
func TestWrongCopies(t *testing.T) {
	for wrong, least := range map[float64]float64{0.05: 0.98, 0.3: 0.74} {
		r := newRig(t, one(simulated.Link{PerCopy: file}, time.Second), control.Options{Delay: time.Second}, file)
		r.wrong = wrong
		r.run(t, 1200)
		low, high := r.worst(0, 300, 1200, 60)
		arrived := r.ratio(0, 300, 1200) * (1 - wrong)
		t.Logf("%v wrong: %v to %v of the target, %v arrived", wrong, low, high, arrived)
		if high > 1.12 || arrived < least {
			t.Errorf("%v wrong: at most %v of the target were moved, %v arrived", wrong, high, arrived)
		}
	}
}

// A site is away for ten minutes: few copies are tried meanwhile, the last of them at most a minute
// before the link goes on; nothing is made up for.
func TestOutage(t *testing.T) {
	m := one(simulated.Link{PerCopy: rate}, time.Second)
	m.Sites[1].Outages = []simulated.Outage{{From: 300 * time.Second, To: 900 * time.Second}}
	r := newRig(t, m, control.Options{Delay: time.Second}, file)
	r.run(t, 1800)
	if n := r.last[0].Failed; n < 10 || n > 60 {
		t.Errorf("%d copies failed", n)
	}
	if low, high := r.worst(0, 975, 1800, 60); low < 0.97 || high > 1.1 {
		t.Errorf("after the outage means of a minute are %.3f to %.3f of the target", low, high)
	}
	if r.reasons[0][challenge.Failing] < 5000 {
		t.Errorf("reasons %v", r.reasons[0])
	}
}

// The ceiling is below the sum of the targets: no 5 s have 2% more than it, at the beginning, while a
// trunk limits all links, and after that. The links share it in proportion to their targets.
func TestCeiling(t *testing.T) {
	const ceiling = 6 * rate
	for _, moving := range []float64{0.2, 1, 5, 20} {
		m := simulated.Options{Sites: make([]simulated.Site, 24), Latency: time.Second, Spread: 0.3, Trunks: make([]simulated.Trunk, 1)}
		for i := range 12 {
			m.Links = append(m.Links, simulated.Link{From: 2 * i, To: 2*i + 1, PerCopy: file / moving})
			m.Trunks[0].Links = append(m.Trunks[0].Links, i)
		}
		m.Changes = []simulated.Change{
			{At: 600 * time.Second, Part: simulated.OfTrunk, Capacity: ceiling / 3}, {At: 900 * time.Second, Part: simulated.OfTrunk},
		}
		r := newRig(t, m, control.Options{Delay: time.Second, Ceiling: ceiling}, file)
		r.target = func(i int, _ float64) float64 { return rate * float64(i+1) / 6 } // 13 together
		r.run(t, 1500)
		shares, all := make([]float64, 12), 0.0
		for i := range shares {
			shares[i] = r.ratio(i, 60, 600)
			all += sum(r.moved[i][60:600]) / 540 / ceiling
		}
		most := 0.0
		for at := range 1495 {
			five := 0.0
			for i := range shares {
				five += sum(r.moved[i][at : at+5])
			}
			most = max(most, five/5/ceiling)
		}
		if f := fairness(shares); f < 0.999 || all < 0.9 || most > 1.02 {
			t.Errorf("moving %v: fairness %.4f, %.3f of the ceiling, up to %.3f in 5 s", moving, f, all, most)
		}
		if n := r.reasons[5][challenge.Ceiling]; n < 4000 {
			t.Errorf("reasons %v", r.reasons[5])
		}
	}
}

// A ceiling that is far above the targets is the reason for no decision: not the first, not while a
// line limits a link, and not while all copies fail.
func TestCeilingAboveTargets(t *testing.T) {
	for name, m := range map[string]simulated.Options{
		"free":    one(simulated.Link{PerCopy: file / 5}, time.Second),
		"limited": one(simulated.Link{PerCopy: file / 5, Capacity: rate / 3}, time.Second),
		"failing": one(simulated.Link{PerCopy: file / 5}, time.Second),
	} {
		if name == "failing" {
			m.Sites[1].Failure = 1
		}
		r := newRig(t, m, control.Options{Delay: time.Second, Ceiling: 16 * rate}, file)
		r.run(t, 60)
		if n := r.reasons[0][challenge.Ceiling]; n > 0 {
			t.Errorf("%s: %d of %v", name, n, r.reasons[0])
		}
	}
}

// A file is as large as the target of two minutes: the error is one file.
func TestLargeFiles(t *testing.T) {
	const size = 120 * rate / 4
	r := newRig(t, one(simulated.Link{PerCopy: rate}, time.Second), control.Options{Delay: time.Second}, size)
	r.target = func(int, float64) float64 { return rate / 4 }
	r.run(t, 3600)
	moved, owed := 0.0, 0.0
	for i, x := range r.moved[0][:3599] {
		moved, owed = moved+x, owed+r.owed[0][i]
		if d := moved - owed; d > 1.1*size || d < -1.1*size {
			t.Fatalf("after %d s the error is %.2f files", i, d/size)
		}
	}
	if slices.Max(r.flight[0]) > 1.01 || r.reasons[0][challenge.LargeFile] < 5000 {
		t.Errorf("up to %v copies in flight; reasons %v", slices.Max(r.flight[0]), r.reasons[0])
	}
}

// A service like Rucio begins copies after 3 s to 57 s, and reports only their ends: the means of ten
// minutes are within 5%.
func TestSlowService(t *testing.T) {
	m := one(simulated.Link{PerCopy: file / 10}, 30*time.Second)
	m.Spread, m.Silent = 0.9, true
	r := newRig(t, m, control.Options{Delay: 30 * time.Second}, file)
	r.run(t, 3600)
	if low, high := r.worst(0, 60, 3600, 600); low < 0.95 || high > 1.05 {
		t.Errorf("means of ten minutes are %.3f to %.3f of the target", low, high)
	}
}

// Links begin one after the other, and have their targets in the first minute nevertheless: with 57
// files in it, the mean is within a file.
func TestFirstMinute(t *testing.T) {
	const links, files, size = 8, 57, 105_263_158
	m := simulated.Options{Latency: 20 * time.Millisecond, Seed: 3}
	for i := range links {
		m.Sites = append(m.Sites, simulated.Site{}, simulated.Site{})
		m.Links = append(m.Links, simulated.Link{From: 2 * i, To: 2*i + 1, PerCopy: 10 * rate})
	}
	r := newRig(t, m, control.Options{Delay: 2 * time.Second}, size)
	r.run(t, 180)
	for i := range links {
		for minute := range 3 {
			if got := r.ratio(i, 60*minute, 60*(minute+1)); got < 1-1.1/files || got > 1+1.1/files {
				t.Errorf("link %d has %.3f of its target in minute %d", i, got, minute)
			}
		}
	}
}

// A site moves 2 copies at once and refuses more, and its two links need 3.6: each has its share, and
// the refused copies are few.
func TestRefusingDoor(t *testing.T) {
	const size = int64(rate)
	for n := range 15 {
		most := 1 + n%3
		m := simulated.Options{Sites: make([]simulated.Site, 4), Latency: 20 * time.Millisecond, Spread: 0.5, Seed: uint64(n)}
		m.Sites[2].Most = most
		for i := range 4 { // those to site 3 show that the sources are well
			m.Links = append(m.Links, simulated.Link{From: i % 2, To: 2 + i/2, PerCopy: rate / 1.8})
		}
		r := newRig(t, m, control.Options{Delay: 2 * time.Second}, size)
		r.target = func(_ int, at float64) float64 { return rate * min(1, 0.5+math.Floor(at/60)) }
		r.run(t, 1200)
		a, b := r.ratio(0, 60, 1200), r.ratio(1, 60, 1200)
		least, all := min(a, b), (a+b)*1.8/float64(most)
		refused := float64(r.last[0].Failed+r.last[1].Failed) / float64(r.last[0].Done+r.last[1].Done)
		if least < 0.4*max(a, b) || all < 0.9 || refused > 2.2 {
			t.Errorf("%d at once: the links have %.2f and %.2f of their targets, %.0f%% of the door; %.2f refused copies for each good one",
				most, a, b, 100*all, refused)
		}
	}
}
