package analysis

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/limits"
	"weir/loadtest/analysis/shape"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/analysis/transfers"
	"weir/loadtest/analysis/validity"
)

// conclude fills in the headline and the verdict, with the facts of the two texts.
func (f *conclusion) conclude() {
	headline, facts := f.headline()
	lines := f.lines()
	f.Headline, f.Facts = headline, append(facts, lines...)
	f.Verdict = strings.Join(append([]string{headline}, fact.Texts(lines)...), "\n")
}

// lines returns the facts below the headline.
func (f *conclusion) lines() []fact.Fact {
	best := f.best()
	if best < 0 {
		return nil
	}
	s := f.c.Steps[best]
	return slices.Concat(f.same(), f.afterOptimum(), f.wayDown(), f.highest(), f.cpu(s), f.kneeFacts(), f.fittedPeak(), f.jobs(s),
		limits.LimitClause(f.c, f.Bottleneck))
}

// same reports the other loads with the same yield, or that no other load has this yield. It
// returns no facts if the headline already contains them.
func (f *conclusion) same() []fact.Fact {
	o, s := f.Optimum, f.c.Steps[f.best()]
	if f.c.OneLoad() {
		return nil
	}
	if len(o.Equals) == 1 {
		return f.alone(s)
	}
	low, high := f.c.Numbered(o.Equals[0]), f.c.Numbered(o.Equals[len(o.Equals)-1])
	from, to := f.c.At(low), f.c.At(high)
	_, lower, _ := f.c.Yield(s)
	switch exact := lower != nil; { // then the noise is known
	case f.gaps() && exact:
		return []fact.Fact{fact.New("verdict.same.some", "load", to)}
	case f.gaps():
		return []fact.Fact{fact.New("verdict.similar.some", "load", to)}
	case f.c.LoadOf(high) == f.c.LoadOf(s) && exact:
		return []fact.Fact{fact.New("verdict.same.below", "load", from)}
	case f.c.LoadOf(high) == f.c.LoadOf(s):
		return []fact.Fact{fact.New("verdict.similar.below", "load", from)}
	case f.c.LoadOf(low) < f.c.LoadOf(s) && exact:
		return []fact.Fact{fact.New("verdict.same.around", "from", from, "to", to)}
	case f.c.LoadOf(low) < f.c.LoadOf(s):
		return []fact.Fact{fact.New("verdict.similar.around", "from", from, "to", to)}
	case exact:
		return []fact.Fact{fact.New("verdict.same.above", "load", to)}
	}
	return []fact.Fact{fact.New("verdict.similar.above", "load", to)}
}

// alone reports that no other load has the yield of s.
func (f *conclusion) alone(s *steps.Working) []fact.Fact {
	loads := f.c.Loads()
	switch x := f.c.LoadOf(s); {
	case x == f.c.LoadOf(f.c.Steps[f.c.Heaviest()]):
		return nil
	case x == f.c.LoadOf(f.c.Steps[f.c.Lightest()]) && f.failsBeyond():
		return nil
	case x == f.c.LoadOf(f.c.Steps[f.c.Lightest()]):
		return []fact.Fact{fact.New("verdict.less.above", "loads", loads)}
	case f.failsBeyond(): // the yield of heavier loads is not compared
		return []fact.Fact{fact.New("verdict.less.below", "loads", loads)}
	}
	return []fact.Fact{fact.New("verdict.less", "loads", loads)}
}

// gaps reports whether the range of the equal loads contains a load that is not equal.
func (f *conclusion) gaps() bool {
	equal := map[float64]bool{}
	low, high := 0.0, 0.0
	for i, step := range f.Optimum.Equals {
		x := f.c.LoadOf(f.c.Numbered(step))
		if equal[x] = true; i == 0 {
			low = x
		}
		high = x
	}
	return slices.ContainsFunc(f.c.Steps, func(s *steps.Working) bool {
		x := f.c.LoadOf(s)
		return x > low && x < high && !equal[x]
	})
}

// failsBeyond reports whether too many operations fail at the heaviest load, if it is beyond the
// optimum.
func (f *conclusion) failsBeyond() bool {
	last, equals := f.c.Steps[f.c.Heaviest()], f.Optimum.Equals
	return last.Unwell() > shape.FewErrors(f.c.Points()) && f.c.LoadOf(last) > f.c.LoadOf(f.c.Numbered(equals[len(equals)-1]))
}

// afterOptimum reports the yield of loads heavier than the optimum, and whether there is a maximum.
func (f *conclusion) afterOptimum() []fact.Fact {
	o, last := f.Optimum, f.c.Steps[f.c.Heaviest()]
	high := f.c.Numbered(o.Equals[len(o.Equals)-1])
	end, top, noun, unit := f.c.Mean(last), f.c.Mean(high), f.c.Noun(), f.c.Unit()
	switch {
	case f.c.OneLoad():
		return []fact.Fact{fact.New("verdict.one.load")}
	case f.failsBeyond() && last.LostJobs() > last.ErrorRatio:
		return []fact.Fact{fact.New("verdict.beyond.fails.jobs", "load", f.c.At(high), "last", f.c.At(last), "noun", noun, "yield", end,
			"unit", unit, "share", last.Unwell())}
	case f.failsBeyond():
		return []fact.Fact{fact.New("verdict.beyond.fails", "load", f.c.At(high), "last", f.c.At(last), "noun", noun, "yield", end,
			"unit", unit, "share", last.Unwell())}
	case o.Inside && end < top:
		return []fact.Fact{fact.New("verdict.beyond.falls", "load", f.c.At(high), "noun", noun, "yield", end, "unit", unit, "last", f.c.At(last))}
	case last.LinkFull():
		return []fact.Fact{fact.New("verdict.beyond.link", "loads", f.c.Loads())}
	case len(o.Equals) == 1 && o.Low != nil:
		return []fact.Fact{fact.New("verdict.beyond.grows", "noun", noun)}
	}
	return []fact.Fact{fact.New("verdict.beyond.unknown", "load", f.c.At(last))}
}

// wayDown reports that loads give another result on the way down; it returns no facts if they give
// the same.
func (f *conclusion) wayDown() []fact.Fact {
	h := f.returned()
	if h == nil {
		return nil
	}
	up, down := f.c.Numbered(h.Up), f.c.Numbered(h.Down)
	return []fact.Fact{fact.New("verdict.down", "noun", f.c.Noun(), "down", f.c.Mean(down), "up", f.c.Mean(up), "unit", f.c.Unit(),
		"load", f.c.At(down))}
}

// highest reports the step with the highest mean, if it is not the step of the optimum.
func (f *conclusion) highest() []fact.Fact {
	highest := f.c.Numbered(f.Optimum.Step)
	for _, step := range f.Optimum.Equals {
		if s := f.c.Numbered(step); f.c.Mean(s) > f.c.Mean(highest) {
			highest = s
		}
	}
	if highest.Step == f.Optimum.Step {
		return nil
	}
	mean, low, high := f.c.Yield(highest)
	return []fact.Fact{fact.New("verdict.highest", "yield", mean, "low", low, "high", high, "unit", f.c.Unit(), "load", f.c.At(highest))}
}

// kneeFacts reports the knee.
func (f *conclusion) kneeFacts() []fact.Fact {
	k := f.Knee
	if k == nil {
		return nil
	}
	load, each := f.c.Count(k.Clients), strings.TrimSuffix(f.c.Loads(), "s")
	switch {
	case f.c.Open():
		return []fact.Fact{fact.New("verdict.knee", "load", f.c.At(f.c.Numbered(k.Step)), "each", each)}
	case k.ClientsLow != nil && k.ClientsHigh != nil && *k.ClientsHigh-*k.ClientsLow >= 1:
		return []fact.Fact{fact.New("verdict.knee.interval", "load", load, "low", math.Floor(*k.ClientsLow), "high", math.Ceil(*k.ClientsHigh),
			"each", each)}
	}
	return []fact.Fact{fact.New("verdict.knee", "load", load, "each", each)}
}

// fittedPeak reports the maximum of the model.
func (f *conclusion) fittedPeak() []fact.Fact {
	p := f.Optimum.Peak
	if p == nil {
		return nil
	}
	return []fact.Fact{fact.New("verdict.fitted", "model", f.Fits.Best, "clients", p.Value, "loads", f.c.Load(), "low", math.Floor(*p.Low),
		"high", math.Ceil(*p.High))}
}

// cpu reports the CPU usage of both sides in the step of the optimum.
func (f *conclusion) cpu(s *steps.Working) (all []fact.Fact) {
	load := f.c.At(s)
	switch {
	case s.ServerCPU != nil && s.ServerByHost:
		all = append(all, fact.New("verdict.cpu.host", "load", load, "share", *s.ServerCPU))
	case s.ServerCPU != nil:
		all = append(all, fact.New("verdict.cpu.server", "load", load, "share", *s.ServerCPU))
	case s.ServerCores != nil && s.ServerByHost:
		all = append(all, fact.New("verdict.cpu.host.cores", "load", load, "cores", *s.ServerCores))
	case s.ServerCores != nil:
		all = append(all, fact.New("verdict.cpu.server.cores", "load", load, "cores", *s.ServerCores))
	}
	if s.ClientCPU == nil {
		return all
	}
	// on a machine that both sides share: no process is charged with the network work of the kernel
	for _, h := range s.Hosts {
		if h.ServerCores != nil && h.ClientCores != nil && h.CPU != nil {
			return append(all, fact.New("verdict.cpu.clients.busy", "load", load, "share", *s.ClientCPU, "busy", *h.CPU))
		}
	}
	return append(all, fact.New("verdict.cpu.clients", "load", load, "share", *s.ClientCPU))
}

// jobs reports the efficiency and the time of the jobs of the best step, and jobs that were not completed.
func (f *conclusion) jobs(s *steps.Working) (all []fact.Fact) {
	if s.Jobs == nil {
		return nil
	}
	if e := s.CPUEfficiency; e != nil {
		all = append(all, fact.New("verdict.jobs.efficiency", "load", f.c.At(s), "share", *e, "low", s.CPUEfficiencyLow,
			"high", s.CPUEfficiencyHigh, "throughput", *s.ClusterThroughput))
	}
	switch t, estimated, ok := s.MeanJob(); {
	case ok && estimated:
		all = append(all, fact.New("verdict.jobs.estimate", "load", f.c.At(s), "time", t))
	case ok:
		all = append(all, fact.New("verdict.jobs.time", "load", f.c.At(s), "time", t))
	}
	if lost, ok := validity.LostJobs(f.c); ok {
		all = append(all, fact.New("verdict.jobs.lost", "jobs", lost))
	}
	return all
}

// rungs is the number of different loads from which the cases make a curve.
const rungs = 4

// concludeTransfers fills in the headline and the verdict of a record of transfers: the files that
// arrived, and the verdict of the curve if the cases make a curve.
func (f *Findings) concludeTransfers() {
	arrived := f.Transfers.Facts()
	f.Headline = fact.Sentences(arrived)
	loads := map[int]bool{}
	for s := range basics.Each(f.Curve) {
		loads[s.Clients] = true
	}
	if len(loads) >= rungs && len(loads) == len(f.Curve) {
		f.Verdict, f.Facts = f.Headline+"\n"+f.Verdict, append(arrived, f.Facts...)
		return
	}
	best := slices.MaxFunc(f.Transfers.Cases, func(a, b transfers.TransferCase) int { return cmp.Compare(a.Throughput, b.Throughput) })
	f.Verdict, f.Facts = f.Headline, arrived
	if best.Throughput <= 0 {
		return
	}
	speed := fact.New("verdict.transfers.throughput", "throughput", best.Throughput)
	if len(f.Transfers.Cases) > 1 {
		speed = fact.New("verdict.transfers.fastest", "case", best.Case, "throughput", best.Throughput)
	}
	f.Verdict, f.Facts = f.Headline+"\n"+speed.Text, append(arrived, speed)
}
