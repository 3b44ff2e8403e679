package links

import (
	"cmp"
	"math"
	"slices"

	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/measure"
)

// Result returns the findings and the links against time, in the same order.
func (s *Sums) Result() (*Challenge, []Series) {
	s.settle()
	j := newJudge(s)
	c := &Challenge{Minute: s.minute.Seconds(), Planned: planned(s), Control: s.controlFigures(), Links: []Link{}, Sites: s.siteFigures()}
	if s.clock < 0 {
		c.Clock = new(-s.clock.Seconds())
	}
	end := s.ending.Ending()
	c.Interrupted = len(s.resumes) > 0 || end == nil || end.Outcome != measure.Complete
	series, all, total := make([]Series, len(s.links)), make([]Link, len(s.links)), newTally()
	widening := s.persistence()
	for i := range s.links {
		spells, causes := j.spells(i)
		all[i] = s.linkFigure(&s.links[i], spells, widening)
		series[i] = s.series(&s.links[i], causes)
		for _, e := range spells {
			total.add(&e.Episode, e.minutes(c.Minute), true)
		}
	}
	c.Links = all
	s.total(c, total, widening)
	s.level(c)
	sorted := make([]Series, 0, len(all))
	for f := range basics.Each(c.Links) {
		sorted = append(sorted, series[s.index[[2]string{f.Source, f.Dest}]])
	}
	c.Headline = c.facts()
	return c, sorted
}

// planned returns the time of the profile with a target above 0.
func planned(s *Sums) (seconds float64) {
	before := 0.0
	for _, stage := range s.plan.Profile {
		if at := float64(stage.At); at > 0 || stage.Ramp && before > 0 {
			seconds += float64(stage.For) / 1e9
		}
		before = float64(stage.At)
	}
	return seconds
}

// linkFigure returns the figures of a link.
func (s *Sums) linkFigure(l *linkSum, spells []*spell, rho float64) Link {
	f := Link{Source: l.plan.From, Dest: l.plan.To, Files: l.files, Bytes: l.bytes, Failed: l.failed, Expired: l.expired,
		Retries: l.retried, SciTag: l.plan.SciTag, Labeled: l.label, Failures: []Failure{}, Episodes: []Episode{},
		Queue: l.queue.figure(), Transfer: l.transfer.figure(), Verify: l.verify.figure(), Whole: l.whole.figure()}
	var seconds, wanted, moved, flight, waiting, within float64
	for m := range basics.Each(l.minutes) {
		seconds, wanted, moved = seconds+float64(m.seconds), wanted+m.wanted, moved+m.moved
		flight, waiting = flight+float64(m.flight), waiting+float64(m.queued)
		if !m.judged(s.minute.Seconds()) {
			continue
		}
		f.Minutes++
		if m.below() {
			f.Below++
		}
		if r := m.ratio(); r >= leastRatio && r <= mostRatio {
			within++
		}
	}
	f.Target, f.Achieved, f.Ratio = stats.Ratio(wanted, seconds), stats.Ratio(moved, seconds), stats.Ratio(moved, wanted)
	f.Flight, f.Queued, f.Within = stats.Ratio(flight, seconds), stats.Ratio(waiting, seconds), stats.Ratio(within, float64(f.Minutes))
	f.Low, f.High = interval(l.residuals(), f.Achieved, rho)
	for k, n := range l.failures {
		k.Copies = n
		f.Failures = append(f.Failures, k)
	}
	slices.SortFunc(f.Failures, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(b.Copies, a.Copies), cmp.Compare(a.Class, b.Class), cmp.Compare(a.End, b.End))
	})
	sum := newTally()
	for _, e := range spells {
		sum.add(&e.Episode, e.minutes(s.minute.Seconds()), false)
		if len(f.Episodes) < mostEpisodes {
			f.Episodes = append(f.Episodes, e.Episode)
		}
	}
	if f.Causes = sum.result(); len(f.Causes) > 0 {
		f.Cause = new(f.Causes[0].Cause)
	}
	return f
}

// residuals returns the rate of each part of a minute less the rate that the link had in the mean of
// the same stage, as a share of the target: changes of the target are no scatter. Parts that were
// not measured have no weight.
func (l *linkSum) residuals() []stats.Point {
	wanted, moved := map[int32]float64{}, map[int32]float64{}
	for m := range basics.Each(l.minutes) {
		wanted[m.stage] += m.wanted
		moved[m.stage] += m.moved
	}
	var all []stats.Point
	for m := range basics.Each(l.minutes) {
		mean := stats.Ratio(moved[m.stage], wanted[m.stage]) * stats.Ratio(m.wanted, float64(m.seconds))
		for _, p := range m.part {
			rate := stats.Ratio(float64(p.moved), float64(p.seconds)) - mean
			if p.seconds == 0 {
				rate = 0
			}
			all = append(all, stats.Point{Value: rate, Weight: float64(p.seconds)})
		}
	}
	return all
}

// Batches of the intervals: at most 20, each of half a minute or more.
const (
	mostBatches = 20
	leastBatch  = 30
)

func batches(residuals []stats.Point) []stats.Point {
	measured := slices.DeleteFunc(residuals, func(p stats.Point) bool { return p.Weight == 0 })
	return stats.Batch(measured, mostBatches, leastBatch)
}

// persistence returns the correlation of neighboring batches of all links together.
func (s *Sums) persistence() float64 {
	var all [][]float64
	for l := range basics.Each(s.links) {
		var x []float64
		for _, p := range batches(l.residuals()) {
			x = append(x, p.Value)
		}
		all = append(all, x)
	}
	return stats.Persistence(all)
}

// interval returns the 95% interval of a mean rate, by batch means of its residuals, nil if there
// are too few.
func interval(residuals []stats.Point, mean, rho float64) (low, high *float64) {
	all := batches(residuals)
	middle, v, ok := stats.BatchInterval(all)
	if !ok {
		return nil, nil
	}
	half := (v.High - middle) * stats.Widening(rho, len(all))
	return new(max(0, mean-half)), new(mean + half)
}

// series returns a link against time.
func (s *Sums) series(l *linkSum, causes map[int]Cause) Series {
	all := Series{Source: l.plan.From, Dest: l.plan.To}
	for i := range l.minutes {
		m := &l.minutes[i]
		if m.seconds == 0 {
			continue
		}
		c, below := causes[i]
		all.Points = append(all.Points, Point{At: (float64(i) + 0.5) * s.minute.Seconds(), Seconds: float64(m.seconds),
			Target: m.mean(float32(m.wanted)), Achieved: m.mean(float32(m.moved)), Flight: m.mean(m.flight), Queued: m.mean(m.queued),
			Failed: int(max(m.failed, m.failures()+m.expired)), Below: below, Kind: c.Kind, Detail: c.Detail})
	}
	return all
}

// siteFigures returns the sums of the links of each site.
func (s *Sums) siteFigures() []Site {
	all := []Site{}
	for i := range s.plan.Sites {
		p := &s.plan.Sites[i]
		in, out := s.counted(i, p)
		all = append(all, Site{Site: p.Name, HostIn: in, HostOut: out,
			In:  s.side(func(l *linkSum) bool { return l.dest == i }, float64(p.In)/8),
			Out: s.side(func(l *linkSum) bool { return l.source == i }, float64(p.Out)/8)})
	}
	return all
}

func (s *Sums) side(member func(*linkSum) bool, capacity float64) Side {
	var f Side
	var moved []float64
	var seconds, longest float64
	for l := range basics.Each(s.links) {
		if !member(l) {
			continue
		}
		f.Links++
		span := 0.0
		var wanted, bytes float64
		for i := range l.minutes {
			m := &l.minutes[i]
			if i == len(moved) {
				moved = append(moved, 0)
			}
			if float64(m.seconds) >= leastSpan*s.minute.Seconds() {
				moved[i] += stats.Ratio(m.moved, float64(m.seconds))
			}
			span, wanted, bytes = span+float64(m.seconds), wanted+m.wanted, bytes+m.moved
		}
		f.Target, f.Mean = f.Target+stats.Ratio(wanted, span), f.Mean+stats.Ratio(bytes, span)
		seconds, longest = seconds+span, max(longest, span)
	}
	for _, x := range moved {
		f.Max = max(f.Max, x)
	}
	f.Max = max(f.Max, 0)
	if capacity > 0 {
		f.Capacity, f.Usage = &capacity, new(stats.Ratio(f.Max, capacity))
	}
	return f
}

// total fills in the sums of all links.
func (s *Sums) total(c *Challenge, causes *tally, rho float64) {
	t := &c.Total
	for f := range basics.Each(c.Links) {
		t.Target, t.Achieved = t.Target+f.Target, t.Achieved+f.Achieved
		t.Files, t.Bytes, t.Failed, t.Expired, t.Labeled = t.Files+f.Files, t.Bytes+f.Bytes, t.Failed+f.Failed, t.Expired+f.Expired,
			t.Labeled+f.Labeled
	}
	var sum []stats.Point
	for l := range basics.Each(s.links) {
		span := 0.0
		for i, p := range l.residuals() {
			if i == len(sum) {
				sum = append(sum, stats.Point{})
			}
			sum[i] = stats.Point{Value: sum[i].Value + p.Value, Weight: max(sum[i].Weight, p.Weight)}
			span += p.Weight
		}
		c.Seconds = max(c.Seconds, span)
	}
	t.Low, t.High = interval(sum, t.Achieved, rho)
	t.Ratio = stats.Ratio(t.Achieved, t.Target)
	t.Starts = stats.Ratio(float64(t.Files+t.Failed), c.Seconds)
	t.Causes = causes.result()
	for _, share := range t.Causes {
		t.Missing += share.Missing
		switch share.Kind {
		case Service:
			t.Service += share.Ratio
		case Injection:
			t.Injection += share.Ratio
		}
	}
}

// sameLevel is the least share of the highest target that counts as the highest.
const sameLevel = 0.98

// level fills in the figures of the highest target that was set: the share of the links' rates, its
// time, and the links that had it.
func (s *Sums) level(c *Challenge) {
	share := func(l *linkSum, m *minute) float64 {
		return stats.Ratio(stats.Ratio(m.wanted, float64(m.seconds)), float64(l.plan.Rate)/8)
	}
	for l := range basics.Each(s.links) {
		for m := range basics.Each(l.minutes) {
			if m.judged(s.minute.Seconds()) {
				c.Level = max(c.Level, share(l, m))
			}
		}
	}
	c.Level = math.Round(100*c.Level) / 100
	for f := range basics.Each(c.Links) {
		l := &s.links[s.index[[2]string{f.Source, f.Dest}]]
		var wanted, moved, seconds float64
		for m := range basics.Each(l.minutes) {
			if m.judged(s.minute.Seconds()) && share(l, m) >= sameLevel*c.Level {
				wanted, moved, seconds = wanted+m.wanted, moved+m.moved, seconds+float64(m.seconds)
			}
		}
		f.Level = stats.Ratio(moved, wanted)
		c.LevelSeconds = max(c.LevelSeconds, seconds)
		if f.Held() {
			c.Total.Held++
			f.Cause = nil
		}
	}
	slices.SortStableFunc(c.Links, func(a, b Link) int { return cmp.Compare(a.Level, b.Level) })
}
