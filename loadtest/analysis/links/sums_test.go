package links

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"weir/internal/cause"
	"weir/internal/unit"
	"weir/loadtest/challenge"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/storage"
)

// pair returns the sums of a challenge of one link with a target of 1 MB/s.
func pair() *Sums {
	m := newModel(2, [][2]int{{0, 1}}, 1e6)
	return New(&m.plan)
}

func second(at, seconds float64) *results.LinkInterval {
	return &results.LinkInterval{Start: modelStart.Add(time.Duration(at * 1e9)), Seconds: seconds, Stage: 1, Source: "A", Dest: "B",
		Target: 1e6, Moved: int64(1e6 * seconds), Flight: 2, Allowed: 2, Reason: challenge.Paced}
}

// Bytes are spread over the minutes that a line touches; no byte is lost or counted twice.
func TestSpread(t *testing.T) {
	t.Parallel()
	s, random, at, moved := pair(), rand.New(rand.NewPCG(1, 2)), 0.0, int64(0)
	for range 400 {
		l := second(at, 0.5+20*random.Float64())
		s.Link(l)
		at, moved = at+l.Seconds, moved+l.Moved
	}
	c, series := s.Result()
	l := &c.Links[0]
	if math.Abs(l.Achieved*at-float64(moved)) > 1e-5*float64(moved) || math.Abs(l.Ratio-1) > 1e-5 || l.Below != 0 || l.Within != 1 ||
		len(series[0].Points) != int(at/60)+1 || math.Abs(c.Seconds-at) > 1 {
		t.Errorf("%v bytes, %v of %v s: %+v", moved, c.Seconds, at, l)
	}
	sum := 0.0
	for _, p := range series[0].Points {
		sum += p.Achieved * p.Seconds
	}
	if math.Abs(sum-float64(moved)) > 1e-5*float64(moved) {
		t.Errorf("%v of %v bytes are in the series", sum, moved)
	}
}

// Lines long after the plan, of a challenge that was resumed much later, take a bounded memory.
func TestLongAfterThePlan(t *testing.T) {
	t.Parallel()
	m := newModel(2, [][2]int{{0, 1}}, 1e6)
	for range 99 {
		m.plan.Links = append(m.plan.Links, m.plan.Links[0])
	}
	s := New(&m.plan)
	year := (365 * 24 * time.Hour).Seconds()
	for i := range 60 {
		at := float64(i)
		s.Link(second(at, 1))
		s.Link(second(9*year+at, 1))
	}
	if n := len(s.links[s.index[[2]string{"A", "B"}]].minutes); n > 4*mostMinutes/100+1 {
		t.Errorf("%d minutes of one of 100 links", n)
	}
	if c, _ := s.Result(); c.Seconds == 0 {
		t.Errorf("%+v", c)
	}
}

// Pauses count nowhere, and neither do lines of links that the plan does not have.
func TestPauses(t *testing.T) {
	t.Parallel()
	s := pair()
	for at := range 600 {
		l := second(float64(at), 1)
		if at >= 120 && at < 480 {
			l.Target, l.Moved, l.Reason = 0, 0, challenge.Idle
		}
		s.Link(l)
		other := *l
		other.Dest = "C"
		s.Link(&other)
	}
	c, _ := s.Result()
	if l := &c.Links[0]; c.Seconds != 240 || l.Minutes != 4 || l.Ratio != 1 || l.Cause != nil || !c.Interrupted {
		t.Errorf("%v s, %+v", c.Seconds, l)
	}
}

// FTS reports whole seconds: a copy that began less than one before its request began at once. More is
// a difference of the clocks.
func TestWholeSeconds(t *testing.T) {
	t.Parallel()
	for early, ahead := range map[time.Duration]bool{900 * time.Millisecond: false, 1500 * time.Millisecond: true} {
		s := pair()
		s.plan.Inject.By = challenge.FTS
		for at := range 60 {
			s.Link(second(float64(at), 1))
			asked := modelStart.Add(time.Duration(at) * time.Second)
			s.Transfer(&results.Transfer{File: "f", Source: "A", Dest: "B", Size: 1e6, Moved: 1e6, Asked: asked, Begin: asked.Add(-early),
				End: asked.Add(2 * time.Second), Last: true, Done: true})
		}
		c, _ := s.Result()
		if q := c.Links[0].Queue; (c.Clock != nil) != ahead || !ahead && (q == nil || q.Count != 60 || q.Max != 0) {
			t.Errorf("%v early: queue %+v, clock %v", early, q, c.Clock)
		}
	}
}

// Bytes of complete copies that fail their verification are not achieved: the site accepted them and
// does not have them. Bytes of copies that broke off were moved.
func TestWrongCopies(t *testing.T) {
	t.Parallel()
	s := pair()
	for at := range 600 {
		s.Link(second(float64(at), 1))
	}
	for at := range 600 {
		begin := modelStart.Add(time.Duration(at) * time.Second)
		copied := results.Transfer{File: "f", Source: "A", Dest: "B", Size: 1e6, Moved: 1e6, Asked: begin, Begin: begin,
			LastByte: begin.Add(time.Second), End: begin.Add(1100 * time.Millisecond), Last: true, Class: storage.Checksummed, Site: "B"}
		switch {
		case at < 300:
		case at%2 == 0:
			copied.Done, copied.Class, copied.Site = true, 0, ""
		default:
			copied.Size = 2e6
		}
		s.Transfer(&copied)
	}
	c, series := s.Result()
	l := &c.Links[0]
	if math.Abs(l.Ratio-0.5) > 0.01 || l.Failed != 450 || l.Cause == nil || l.Cause.Site != "B" {
		t.Errorf("%+v", l)
	}
	for _, p := range series[0].Points {
		if p.Achieved < 0 || p.Achieved > 1e6*1.001 {
			t.Errorf("%v bytes/s", p.Achieved)
		}
	}
}

// Without lines, the findings have no result and no impossible numbers.
func TestEmpty(t *testing.T) {
	t.Parallel()
	s := pair()
	s.Transfer(&results.Transfer{Source: "A", Dest: "B", End: modelStart, Done: true})
	c, _ := s.Result()
	if c.Seconds != 0 || c.Headline[0].Code != "challenge.nothing" || c.Links[0].Cause != nil || c.Total.Ratio != 0 {
		t.Errorf("%+v", c)
	}
}

// A gap before a resume is an interruption; another gap is weir's.
func TestGaps(t *testing.T) {
	t.Parallel()
	for _, resumed := range []bool{true, false} {
		s := pair()
		if resumed {
			s.Event(&measure.Event{Kind: measure.EventResume, Time: modelStart.Add(290 * time.Second)})
		}
		s.Event(&measure.Event{Kind: measure.EventEnd, Outcome: measure.Complete, Time: modelStart.Add(600 * time.Second)})
		for at := range 600 {
			if at < 200 || at >= 300 {
				s.Link(second(float64(at), 1))
			}
		}
		c, _ := s.Result()
		if want := map[bool]float64{true: 0, false: 100}[resumed]; math.Abs(c.Control.Gap-want) > 1e-6 || c.Interrupted != resumed ||
			(c.Control.Missing > 0.1) == resumed || c.Seconds != 500 {
			t.Errorf("resumed %v: %+v, interrupted %v, %v s", resumed, c.Control, c.Interrupted, c.Seconds)
		}
	}
}

// Phases of copies are counted as far as the clocks agree; copies count in any case.
func TestPhases(t *testing.T) {
	t.Parallel()
	s := pair()
	s.plan.Links[0].SciTag = 129
	s.Link(second(0, 1))
	at := func(x float64) time.Time { return modelStart.Add(time.Duration(x * 1e9)) }
	copied := &results.Transfer{Source: "A", Dest: "B", Size: 100, Done: true, Label: true, Last: true,
		Asked: at(1), Begin: at(2), LastByte: at(6), End: at(9)}
	s.Transfer(copied)
	early := *copied
	early.Begin = at(0.5)
	s.Transfer(&early)
	failed := &results.Transfer{Source: "A", Dest: "B", Asked: at(1), End: at(3), Class: storage.Denied, Expired: true, Last: true, Site: "A"}
	s.Transfer(failed)
	s.Transfer(failed)
	s.Transfer(&results.Transfer{Source: "A", Dest: "B", Asked: at(1), End: at(3), Class: storage.Canceled})
	s.Transfer(&results.Transfer{Source: "A", Dest: "B", Asked: at(1), End: at(3), Class: storage.Timeout, Site: "Z"})
	c, _ := s.Result()
	l := &c.Links[0]
	near := func(p *Phase, want float64) bool {
		return p != nil && p.Count == 1 && math.Abs(p.P50-want) < 0.011*want && p.Max == want
	}
	if !near(l.Queue, 1) || !near(l.Transfer, 4) || !near(l.Verify, 3) || l.Whole.Count != 2 || c.Clock == nil || *c.Clock != 0.5 {
		t.Errorf("%+v %+v %+v %+v %v", l.Queue, l.Transfer, l.Verify, l.Whole, c.Clock)
	}
	want := []Failure{{storage.Denied, EndSource, 2}, {storage.Timeout, EndUnknown, 1}}
	if l.Files != 2 || l.Bytes != 200 || l.Failed != 3 || l.Expired != 2 || l.Labeled != 2 || l.Retries != 1 || len(l.Failures) != 2 ||
		l.Failures[0] != want[0] || l.Failures[1] != want[1] {
		t.Errorf("%+v", l)
	}
	if text := c.Text(); l.SciTag != 129 || !strings.Contains(text, "2 of the 5 copies on links with a flow label carried it") {
		t.Errorf("label %d: %s", l.SciTag, text)
	}
}

// Quantiles of durations are within 1.1%.
func TestDurations(t *testing.T) {
	t.Parallel()
	d, random := durations{}, rand.New(rand.NewPCG(3, 4))
	for _, seconds := range []float64{0.002, 0.7, 33, 7200} {
		d = durations{}
		for range 1000 {
			d.add(time.Duration(seconds * (1 + 0.0001*random.Float64()) * 1e9))
		}
		if p := d.figure(); math.Abs(p.P50/seconds-1) > 0.012 || math.Abs(p.P99/seconds-1) > 0.012 || math.Abs(p.Mean/seconds-1) > 0.001 {
			t.Errorf("%v s: %+v", seconds, p)
		}
	}
	d.add(-time.Second)
	d.add(0)
}

// Minutes of long challenges of many links are joined.
func TestMinuteOf(t *testing.T) {
	t.Parallel()
	c := &challenge.Challenge{Links: make([]challenge.Link, 2000), Profile: []challenge.Stage{{For: unit.Duration(30 * time.Minute), At: 1}}}
	if m := minuteOf(c); m != time.Minute {
		t.Error(m)
	}
	c.Profile[0].For = unit.Duration(160 * time.Second)
	if m := minuteOf(c); m != 12*time.Second {
		t.Error(m)
	}
	c.Profile[0].For = unit.Duration(7 * 24 * time.Hour)
	if m := minuteOf(c); m != 64*time.Minute || int(time.Duration(c.Profile[0].For)/m)*len(c.Links) > mostMinutes {
		t.Error(m)
	}
}

// The 95% intervals of rates whose seconds depend on each other contain the true mean in 90% of cases
// or more, also if the target changes.
func TestIntervals(t *testing.T) {
	t.Parallel()
	contained, runs := 0, 200
	for seed := range runs {
		s, random, noise := pair(), rand.New(rand.NewPCG(uint64(seed), 9)), 0.0
		for at := range 1800 {
			l := second(float64(at), 1)
			if at >= 900 {
				l.Target, l.Stage = 2e6, 2
			}
			noise = 0.9*noise + 0.1*random.NormFloat64()
			l.Moved = int64(l.Target * 0.8 * (1 + noise))
			s.Link(l)
		}
		c, _ := s.Result()
		l := &c.Links[0]
		if l.Low == nil {
			t.Fatal("no interval")
		}
		if *l.Low <= 1.2e6 && 1.2e6 <= *l.High {
			contained++
		}
	}
	if share := float64(contained) / float64(runs); share < 0.9 {
		t.Errorf("%v of the intervals contain the mean", share)
	}
}

// Without evidence, the cause is unknown: records without reasons, transfers and hosts.
func TestNoEvidence(t *testing.T) {
	t.Parallel()
	s := pair()
	for at := range 600 {
		l := second(float64(at), 1)
		l.Moved, l.Reason = 5e5, challenge.Raised
		s.Link(l)
	}
	c, _ := s.Result()
	for _, e := range c.Links[0].Episodes {
		if e.From > 60 && (e.Kind != Unknown || e.Certainty != cause.Unknown) {
			t.Errorf("%+v", e)
		}
	}
	if c.Links[0].Below != 10 {
		t.Errorf("%+v", c.Links[0])
	}
}
