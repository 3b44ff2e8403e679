package analysis

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/limits"
	"weir/loadtest/analysis/shape"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/analysis/transfers"
	"weir/loadtest/analysis/validity"
)

// verdict is the headline, and behind it what else the curve shows, one fact a line.
func (f *conclusion) verdict() string {
	lines := []string{f.Headline}
	if best := f.best(); best >= 0 {
		s := f.c.Steps[best]
		lines = append(lines, f.sameText(), f.beyondText(), f.returnText(), f.highestText(), f.cpuText(s), f.kneeText(), f.peakText())
		lines = append(lines, f.jobClauses(s)...)
		lines = append(lines, limits.LimitClause(f.c, f.Bottleneck))
	}
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return l == "" }), "\n")
}

// sameText says which other loads give the same, or that none does; "" where the headline says all.
func (f *conclusion) sameText() string {
	o, s := f.Optimum, f.c.Steps[f.best()]
	low, high := f.c.Numbered(o.Equals[0]), f.c.Numbered(o.Equals[len(o.Equals)-1])
	things, same := f.c.Loads(), "the same within noise"
	if _, lower, _ := f.c.Yield(s); lower == nil {
		same = "about the same"
	}
	switch {
	case f.c.OneLoad(), len(o.Equals) == 1 && f.c.LoadOf(s) == f.c.LoadOf(f.c.Steps[f.c.Heaviest()]):
		return ""
	case len(o.Equals) == 1 && f.c.LoadOf(s) == f.c.LoadOf(f.c.Steps[f.c.Lightest()]):
		if f.failsBeyond() {
			return ""
		}
		return fmt.Sprintf("More %s give less.", things)
	case len(o.Equals) == 1 && f.failsBeyond(): // what they give is not compared
		return fmt.Sprintf("Fewer %s give less.", things)
	case len(o.Equals) == 1:
		return fmt.Sprintf("Fewer or more %s give less.", things)
	case f.gaps():
		return fmt.Sprintf("Some other loads up to %s give %s.", f.c.At(high), same)
	case f.c.LoadOf(high) == f.c.LoadOf(s):
		return fmt.Sprintf("All loads from %s on up to there give %s.", f.c.At(low), same)
	case f.c.LoadOf(low) < f.c.LoadOf(s):
		return fmt.Sprintf("All loads from %s to %s give %s.", f.c.At(low), f.c.At(high), same)
	}
	return fmt.Sprintf("All loads up to %s give %s.", f.c.At(high), same)
}

// gaps reports whether a load between the equals is none of them.
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

// failsBeyond reports whether too many operations fail at the heaviest load, which is beyond the optimum.
func (f *conclusion) failsBeyond() bool {
	last, equals := f.c.Steps[f.c.Heaviest()], f.Optimum.Equals
	return last.Unwell() > shape.FewErrors(f.c.Points()) && f.c.LoadOf(last) > f.c.LoadOf(f.c.Numbered(equals[len(equals)-1]))
}

// beyondText says what comes after the optimum, and whether there is a maximum.
func (f *conclusion) beyondText() string {
	o, last := f.Optimum, f.c.Steps[f.c.Heaviest()]
	high := f.c.Numbered(o.Equals[len(o.Equals)-1])
	end, _, _ := f.c.Yield(last)
	top, _, _ := f.c.Yield(high)
	switch {
	case f.c.OneLoad():
		return "One load shows no maximum."
	case f.failsBeyond():
		what := "operations"
		if last.LostJobs() > last.ErrorRatio {
			what = "jobs"
		}
		return fmt.Sprintf("Beyond %s too many %s fail: at %s %s is %s, and %s fail.", f.c.At(high), what, f.c.At(last), f.c.Noun(),
			f.c.Show(end),
			unit.Percent(last.Unwell()))
	case o.Inside && end < top:
		return fmt.Sprintf("Beyond %s %s falls, to %s at %s.", f.c.At(high), f.c.Noun(), f.c.Show(end), f.c.At(last))
	case last.LinkFull():
		return fmt.Sprintf("The emulated link was full at the heaviest load: more %s cannot give more.", f.c.Loads())
	case len(o.Equals) == 1 && o.Low != nil:
		return say.Capital(f.c.Noun()) + " still grows at the heaviest load: there is no maximum in the tested range."
	}
	return fmt.Sprintf("There is no maximum in the tested range, which ends at %s.", f.c.At(last))
}

// returnText says that loads give another result on the way down, "" if they do not.
func (f *conclusion) returnText() string {
	h := f.returned()
	if h == nil {
		return ""
	}
	up, down := f.c.Numbered(h.Up), f.c.Numbered(h.Down)
	return fmt.Sprintf("On the way down %s is %s at %s, after %s on the way up, which alone counts.", f.c.Noun(), f.c.Show(f.c.Mean(down)),
		f.c.At(down), f.c.Show(f.c.Mean(up)))
}

// highestText names the step with the highest mean, if that is another.
func (f *conclusion) highestText() string {
	highest := f.c.Numbered(f.Optimum.Step)
	for _, step := range f.Optimum.Equals {
		if s := f.c.Numbered(step); f.c.Mean(s) > f.c.Mean(highest) {
			highest = s
		}
	}
	if highest.Step == f.Optimum.Step {
		return ""
	}
	return fmt.Sprintf("The highest mean is %s%s at %s, which is not more beyond noise, or by less than 1%%.", f.c.Show(f.c.Mean(highest)),
		f.c.Between(highest), f.c.At(highest))
}

// kneeText names the knee.
func (f *conclusion) kneeText() string {
	k := f.Knee
	if k == nil {
		return ""
	}
	at := f.c.Count(k.Clients)
	if f.c.Open() {
		at = f.c.At(f.c.Numbered(k.Step))
	} else if k.ClientsLow != nil && k.ClientsHigh != nil && *k.ClientsHigh-*k.ClientsLow >= 1 {
		at += fmt.Sprintf(" (%.0f to %.0f)", math.Floor(*k.ClientsLow), math.Ceil(*k.ClientsHigh))
	}
	return fmt.Sprintf("The knee is at %s: beyond it each additional %s adds less than the average.", at, strings.TrimSuffix(f.c.Loads(), "s"))
}

// peakText names the maximum of the model.
func (f *conclusion) peakText() string {
	p := f.Optimum.Peak
	if p == nil {
		return ""
	}
	return fmt.Sprintf("The fitted %s is highest at %.0f %s (%.0f to %.0f).", f.Fits.Best, p.Value, f.c.Load(), math.Floor(*p.Low),
		math.Ceil(*p.High))
}

// cpuText tells what the optimum's step cost both sides.
func (f *conclusion) cpuText(s *steps.Working) string {
	who := "the server process"
	if s.ServerByHost {
		who = "the server host"
	}
	var all []string
	switch {
	case s.ServerCPU != nil:
		all = append(all, fmt.Sprintf("%s used %s of the CPU of its machine", who, unit.Percent(*s.ServerCPU)))
	case s.ServerCores != nil:
		all = append(all, fmt.Sprintf("%s kept %.2g cores busy", who, *s.ServerCores))
	}
	if s.ClientCPU != nil {
		text := fmt.Sprintf("the clients used %s of the CPU of their machine", unit.Percent(*s.ClientCPU))
		if s.ServerCPU != nil {
			text = "the clients " + unit.Percent(*s.ClientCPU)
		}
		all = append(all, text+busyClause(s))
	}
	if len(all) == 0 {
		return ""
	}
	return "At " + f.c.At(s) + " " + strings.Join(all, " and ") + "."
}

// busyClause tells how busy a machine was that both sides share: the kernel's work for the network is in no process's
// share.
func busyClause(s *steps.Working) string {
	for _, h := range s.Hosts {
		if h.ServerCores != nil && h.ClientCores != nil && h.CPU != nil {
			return fmt.Sprintf(" (it was %s busy overall)", unit.Percent(*h.CPU))
		}
	}
	return ""
}

// jobClauses are the sentences of the verdict on jobs: what the best step gave each, and how many did not come to
// their end.
func (f *conclusion) jobClauses(s *steps.Working) []string {
	if s.Jobs == nil {
		return nil
	}
	var said, all []string
	if e := s.CPUEfficiency; e != nil {
		said = append(said, "the CPU efficiency is "+unit.Percent(*e)+percentRange(s.CPUEfficiencyLow, s.CPUEfficiencyHigh),
			"the cluster throughput "+unit.Significant(*s.ClusterThroughput)+" jobs")
	}
	if t, estimated, ok := s.MeanJob(); ok {
		how := " on average"
		if estimated {
			how = " (estimated: no job was completed)"
		}
		said = append(said, "a job takes "+unit.Seconds(t)+how)
	}
	if len(said) > 0 {
		all = append(all, fmt.Sprintf("At %s %s.", f.c.At(s), strings.Join(said, ", ")))
	}
	if text, bad := validity.JobsText(f.c); bad {
		all = append(all, say.Capital(text)+".")
	}
	return all
}

// percentRange writes an interval of a share: " (43% to 47%)".
func percentRange(low, high *float64) string {
	if low == nil || high == nil {
		return ""
	}
	return " (" + unit.Percent(*low) + " to " + unit.Percent(*high) + ")"
}

// rungs is how many different loads make a curve of the cases.
const rungs = 4

// transferVerdict says what arrived, and what the curve shows if the cases are one.
func (f *Findings) transferVerdict() string {
	text := f.Transfers.Text()
	loads := map[int]bool{}
	for s := range basics.Each(f.Curve) {
		loads[s.Clients] = true
	}
	if len(loads) >= rungs && len(loads) == len(f.Curve) {
		return text + "\n" + f.Verdict
	}
	best := slices.MaxFunc(f.Transfers.Cases, func(a, b transfers.TransferCase) int { return cmp.Compare(a.Throughput, b.Throughput) })
	switch {
	case best.Throughput <= 0:
		return text
	case len(f.Transfers.Cases) > 1:
		return text + fmt.Sprintf("\nThe fastest case was %q with %s.", best.Case, unit.Bits(best.Throughput))
	}
	return text + fmt.Sprintf("\nThat is %s.", unit.Bits(best.Throughput))
}
