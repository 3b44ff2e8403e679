package compare

import (
	"math"
	"slices"

	"weir/internal/stats"
)

// pair compares b with a: one test of one number per run, over the judged loads, decides; the steps
// show at which loads the runs differ.
func pair(a, b *Group, metrics []Metric, loads, judged []load) Pair {
	p := Pair{A: a.Name, B: b.Name, RunsA: len(a.Runs), RunsB: len(b.Runs), Load: loadName([]Group{*a, *b}), Steps: []StepShift{},
		PerRun: []Shift{}}
	first := &metrics[0]
	paired := blocks(a, b)
	one := func(m *Metric) sampler {
		return func(r *Run) (float64, bool) { return number(r, m, judged) }
	}
	s := sample(a, b, paired, one(first))
	p.Blocks = len(s.differences)
	p.Blocked = wanders(s.levels)
	p.Overall = s.shift(first, p.Blocked, means())
	p.Result = p.Overall.Result
	p.spread(first, &s)
	for _, l := range loads {
		p.Steps = append(p.Steps, StepShift{Clients: l.clients, Rate: l.rate, Again: l.again, Metrics: []Shift{}})
	}
	for i := range metrics {
		m := &metrics[i]
		if m.PerRun() {
			if s := sample(a, b, paired, one(m)); s.enough() {
				p.PerRun = append(p.PerRun, s.shift(m, p.Blocked, ranks()))
			}
			continue
		}
		for k, l := range loads {
			s := sample(a, b, paired, func(r *Run) (float64, bool) { return stepNumber(r.at(l), m) })
			if s.enough() {
				shift := s.shift(m, p.Blocked, ranks())
				within(&shift, a, b, m, l)
				p.Steps[k].Metrics = append(p.Steps[k].Metrics, shift)
			}
		}
	}
	p.correct()
	return p
}

// A sampler returns one scaled number of a run.
type sampler func(*Run) (float64, bool)

// samples are the numbers of the two groups and, for the blocks with a run of each group, the
// differences, the levels and the times.
type samples struct {
	a, b, differences, levels []float64
	times, gaps               []float64 // seconds: middle of the block, from its run of A to that of B
}

func sample(a, b *Group, paired [][2]*Run, of sampler) samples {
	all := func(runs []*Run) (numbers []float64) {
		for _, r := range runs {
			if v, ok := of(r); ok {
				numbers = append(numbers, v)
			}
		}
		return numbers
	}
	s := samples{a: all(a.Runs), b: all(b.Runs)}
	for _, both := range paired {
		x, okA := of(both[0])
		y, okB := of(both[1])
		if okA && okB {
			s.differences, s.levels = append(s.differences, y-x), append(s.levels, (x+y)/2)
			from, gap := both[0].Start.Sub(paired[0][0].Start).Seconds(), both[1].Start.Sub(both[0].Start).Seconds()
			s.times, s.gaps = append(s.times, from+gap/2), append(s.gaps, gap)
		}
	}
	return s
}

func (s *samples) enough() bool { return len(s.a) > 0 && len(s.b) > 0 }

// A method tests a shift, either of two groups or within blocks.
type method struct {
	groups func(a, b []float64) (stats.Test, bool)
	blocks func(d []float64) (stats.Test, bool)
	center func(x []float64) float64 // the value that represents a group
}

// means returns the method for one number per run, ranks the method for each of many figures.
func means() method { return method{stats.Cautious, stats.Signs, stats.Mean} }
func ranks() method { return method{stats.MannWhitney, stats.SignedRank, median} }

func median(x []float64) float64 { return stats.Quantile(x, 0.5) }

// shift tests b against a. A test that could not find any difference with so few runs is left out.
func (s *samples) shift(m *Metric, blocked bool, by method) Shift {
	out := Shift{Metric: m.Name, Kind: Ratio, RunsA: len(s.a), RunsB: len(s.b), Result: TooFew}
	if m.Plain {
		out.Kind = Difference
	}
	if !s.enough() {
		return out
	}
	out.A, out.B = m.unscale(by.center(s.a)), m.unscale(by.center(s.b))
	test, ok := by.groups(s.a, s.b)
	if blocked && len(s.differences) >= fewestBlocks {
		test, ok = by.blocks(s.level())
		out.RunsA, out.RunsB = len(s.differences), len(s.differences)
	}
	if !ok {
		return out
	}
	out.Value = m.unscale(test.Shift)
	if slices.Min(s.a) == slices.Max(s.b) && slices.Max(s.a) == slices.Min(s.b) {
		out.Result = Equal
	}
	if test.Range == nil {
		return out
	}
	out.Low, out.High, out.P = new(m.unscale(test.Range.Low)), new(m.unscale(test.Range.High)), new(test.P)
	if out.Result != Equal {
		out.Result = NotShown
	}
	return out
}

// decide fills in the result from p, whether corrected or not.
func (s *Shift) decide(m *Metric, p float64) {
	if s.Result == Equal {
		return
	}
	if p > 0.05 {
		if *s.P <= 0.05 {
			s.Result = Alone
		}
		return
	}
	up := s.Value > 1
	if s.Kind == Difference {
		up = s.Value > 0
	}
	switch {
	case m.Better == Neither:
		s.Result = Different
	case up == (m.Better == Higher):
		s.Result = Better
	default:
		s.Result = Worse
	}
}

// looks returns the number of shifts that were tested in addition to the overall shift, and whether
// with so few runs no single shift among so many could be significant.
func (p *Pair) looks() (n int, hopeless bool) {
	least := 1.0
	for _, s := range p.shifts() {
		if s.Adjusted == nil {
			continue
		}
		n++
		if p.Blocked {
			least = min(least, math.Ldexp(2, -s.RunsA))
		} else {
			least = min(least, 2/arrangements(s.RunsA, s.RunsB))
		}
	}
	return n, n > 0 && float64(n)*least > 0.05
}

// shifts returns the shifts of all steps and of metrics of runs.
func (p *Pair) shifts() (all []*Shift) {
	for _, s := range p.Steps {
		for k := range s.Metrics {
			all = append(all, &s.Metrics[k])
		}
	}
	for i := range p.PerRun {
		all = append(all, &p.PerRun[i])
	}
	return all
}

// correct corrects the p of all steps and metrics of runs by Holm's method, and decides. Metrics
// with the same value in all runs do not count as tests.
func (p *Pair) correct() {
	tested := func(s **Shift) *float64 {
		if (*s).Result == Equal {
			return nil
		}
		return (*s).P
	}
	holm(p.shifts(), tested, func(s **Shift, v float64) {
		(*s).Adjusted = &v
		(*s).decide(MetricOf((*s).Metric), v)
	})
}

// within fills in the intervals of single runs: the interval of the mean of this one run, which does
// not extend to other runs.
func within(s *Shift, a, b *Group, m *Metric, l load) {
	if m.ends == nil || len(a.Runs) > 1 || len(b.Runs) > 1 {
		return
	}
	s.ALow, s.AHigh = m.ends(a.Runs[0].at(l))
	s.BLow, s.BHigh = m.ends(b.Runs[0].at(l))
}

// spread fills in the standard deviation between runs, and the least difference that this number of
// runs would have shown in nine of ten cases.
func (p *Pair) spread(m *Metric, s *samples) {
	degrees := len(s.a) + len(s.b) - 2
	each := 1/float64(len(s.a)) + 1/float64(len(s.b))
	deviation := math.Sqrt((stats.Squares(s.a) + stats.Squares(s.b)) / float64(degrees))
	if p.Blocked {
		degrees, each = len(s.differences)-1, 2/float64(len(s.differences))
		deviation = stats.Deviation(s.level()) / math.Sqrt2
	}
	if len(s.a) < 2 || len(s.b) < 2 || degrees < 1 || p.Overall.P == nil || m.Plain {
		return
	}
	const z90 = 1.2816 // nine of ten cases
	finds := math.Expm1((stats.Student(float64(degrees)) + z90) * deviation * math.Sqrt(each))
	if stats.Finite(finds) {
		p.Scatter, p.Finds = new(math.Expm1(deviation)), &finds
	}
}
