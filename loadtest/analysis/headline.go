package analysis

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/analysis/shape"
)

// longest is how many letters a headline has at most, where its numbers allow.
const longest = 100

// headline says in one line what the optimum gave, with its interval, at which load, and what limits it. What does not
// fit is left out: first where the limit is, then all of the limit.
func (f *Findings) headline() string {
	if f.best() < 0 {
		return f.nothing()
	}
	peak := f.peakPhrase()
	limit, short := f.headlineLimit()
	others, host := f.othersOfCPU()
	switch b := f.Bottleneck; {
	case others == "":
		return fitting(clauses(peak, limit), clauses(peak, short), peak)
	case len(b) > 0 && b[0].Resource == ResourceCPU && b[0].Foreign >= mostOfCPU: // the limit says so
		return fitting(clauses(peak, limit), clauses(peak, others))
	}
	return fitting(clauses(peak, limit, others+" of "+host), clauses(peak, short, others), clauses(peak, others))
}

// othersOfCPU says that other programs used most of a CPU that was used up at the optimum, "" if they did not.
func (f *Findings) othersOfCPU() (text, host string) {
	most := mostOfCPU
	for u := range each(f.Curve[f.best()].Resources) {
		if u.Resource == ResourceCPU && (u.reached || u.Saturated) && u.foreign >= most {
			most, host = u.foreign, u.Host
			text = "other programs used " + unit.Percent(most) + " of the CPU"
		}
	}
	return text, host
}

// peakPhrase names the optimum: "Peak 8.32 Gbit/s (8.10 to 8.52) at 16 clients".
func (f *Findings) peakPhrase() string {
	o, s := f.Optimum, &f.Curve[f.best()]
	gave := f.show(f.mean(s)) + f.between(s) + " at " + f.at(s)
	atEnd := len(o.Equals) == 1 && f.load(s) == f.load(&f.Curve[f.heaviest()])
	switch _, low, _ := f.yield(s); {
	case o.Unclear && f.oneLoad():
		gave = "No peak can be named: " + gave + ", the only load"
	case o.Unclear:
		gave = "No peak can be named: " + gave
	case f.oneLoad():
		gave += ", the only load tested"
	case atEnd && s.linkFull():
		gave = "Peak " + gave
	case atEnd && low != nil:
		gave = "At least " + gave + ", still growing"
	case atEnd:
		gave = "At least " + gave + ", the heaviest load tested"
	default:
		gave = "Peak " + gave
	}
	if lost := s.unwell(); lost >= 0.01 {
		gave += fmt.Sprintf(" (%s failed)", unit.Percent(lost))
	}
	return gave
}

// unclear reports whether the interval of what step s gave contains zero, or is as wide as twice the mean.
func (f *Findings) unclear(s *Step) bool {
	mean, _, _ := f.yield(s)
	low, high := f.bounds(s)
	return high > low && (low <= 0 || high-mean >= mean)
}

// oneLoad reports whether all steps had the same load.
func (f *Findings) oneLoad() bool {
	return f.load(&f.Curve[f.lightest()]) == f.load(&f.Curve[f.heaviest()])
}

// nothing says why there is no optimum.
func (f *Findings) nothing() string {
	right, bad, by := counts(f)
	switch {
	case len(f.Curve) == 0:
		return "Nothing was measured: no step reached its measurement time"
	case right == 0 && bad > 0:
		return fitting(fmt.Sprintf("All %d operations failed (%s)", bad, classes(by)), fmt.Sprintf("All %d operations failed", bad))
	case f.OfJobs():
		return "No job was completed"
	case bad > 0:
		return fmt.Sprintf("No step has a result: %d of %d operations failed", bad, right+bad)
	}
	return "No operation was completed and no payload was transferred during the measurement"
}

// fitting returns the first of texts that is no longer than a headline may be, the last one if there is none.
func fitting(texts ...string) string {
	for _, text := range texts {
		if utf8.RuneCountInString(text) <= longest {
			return text
		}
	}
	return texts[len(texts)-1]
}

func clauses(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "; ")
}

// sameText says which other loads give the same, or that none does; "" where the headline says all.
func (f *Findings) sameText() string {
	o, s := f.Optimum, &f.Curve[f.best()]
	low, high := f.numbered(o.Equals[0]), f.numbered(o.Equals[len(o.Equals)-1])
	things, same := f.loads(), "the same within noise"
	if _, lower, _ := f.yield(s); lower == nil {
		same = "about the same"
	}
	switch {
	case f.oneLoad(), len(o.Equals) == 1 && f.load(s) == f.load(&f.Curve[f.heaviest()]):
		return ""
	case len(o.Equals) == 1 && f.load(s) == f.load(&f.Curve[f.lightest()]):
		if f.failsBeyond() {
			return ""
		}
		return fmt.Sprintf("More %s give less.", things)
	case len(o.Equals) == 1 && f.failsBeyond(): // what they give is not compared
		return fmt.Sprintf("Fewer %s give less.", things)
	case len(o.Equals) == 1:
		return fmt.Sprintf("Fewer or more %s give less.", things)
	case f.gaps():
		return fmt.Sprintf("Some other loads up to %s give %s.", f.at(high), same)
	case f.load(high) == f.load(s):
		return fmt.Sprintf("All loads from %s on up to there give %s.", f.at(low), same)
	case f.load(low) < f.load(s):
		return fmt.Sprintf("All loads from %s to %s give %s.", f.at(low), f.at(high), same)
	}
	return fmt.Sprintf("All loads up to %s give %s.", f.at(high), same)
}

// numbered returns the step of the curve with a number.
func (f *Findings) numbered(step int) *Step {
	return &f.Curve[max(0, f.indexOf(step))]
}

// gaps reports whether a load between the equals is none of them.
func (f *Findings) gaps() bool {
	equal := map[float64]bool{}
	low, high := 0.0, 0.0
	for i, step := range f.Optimum.Equals {
		x := f.load(f.numbered(step))
		if equal[x] = true; i == 0 {
			low = x
		}
		high = x
	}
	return slices.ContainsFunc(f.Curve, func(s Step) bool {
		x := f.load(&s)
		return x > low && x < high && !equal[x]
	})
}

// headlineLimit names what limits the curve, in full and without its host, "" where that was not judged.
func (f *Findings) headlineLimit() (full, short string) {
	if len(f.Bottleneck) == 0 {
		return "", ""
	}
	b := &f.Bottleneck[0]
	switch b.Resource {
	case LimitNone, LimitLatency:
		return "no limit reached", "no limit reached"
	case LimitUnknown:
		return "limit unknown", "limit unknown"
	case LimitInside:
		return "limited by " + b.Text() + b.notClause(), "limited by the server"
	}
	return "limited by " + b.Text(), "limited by " + b.name()
}

// verdict is the headline, and behind it what else the curve shows, one fact a line.
func (f *Findings) verdict() string {
	lines := []string{f.Headline}
	if best := f.best(); best >= 0 {
		s := &f.Curve[best]
		lines = append(lines, f.sameText(), f.beyondText(), f.returnText(), f.highestText(), f.cpuText(s), f.kneeText(), f.peakText())
		lines = append(lines, f.jobClauses(s)...)
		lines = append(lines, f.limitClause())
	}
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return l == "" }), "\n")
}

// failsBeyond reports whether too many operations fail at the heaviest load, which is beyond the optimum.
func (f *Findings) failsBeyond() bool {
	last, equals := &f.Curve[f.heaviest()], f.Optimum.Equals
	return last.unwell() > shape.FewErrors(f.points()) && f.load(last) > f.load(f.numbered(equals[len(equals)-1]))
}

// beyondText says what comes after the optimum, and whether there is a maximum.
func (f *Findings) beyondText() string {
	o, last := f.Optimum, &f.Curve[f.heaviest()]
	high := f.numbered(o.Equals[len(o.Equals)-1])
	end, _, _ := f.yield(last)
	top, _, _ := f.yield(high)
	switch {
	case f.oneLoad():
		return "One load shows no maximum."
	case f.failsBeyond():
		what := "operations"
		if last.lostJobs() > last.ErrorRatio {
			what = "jobs"
		}
		return fmt.Sprintf("Beyond %s too many %s fail: at %s %s is %s, and %s fail.", f.at(high), what, f.at(last), f.noun(), f.show(end),
			unit.Percent(last.unwell()))
	case o.Inside && end < top:
		return fmt.Sprintf("Beyond %s %s falls, to %s at %s.", f.at(high), f.noun(), f.show(end), f.at(last))
	case last.linkFull():
		return fmt.Sprintf("The emulated link was full at the heaviest load: more %s cannot give more.", f.loads())
	case len(o.Equals) == 1 && o.Low != nil:
		return say.Capital(f.noun()) + " still grows at the heaviest load: there is no maximum in the tested range."
	}
	return fmt.Sprintf("There is no maximum in the tested range, which ends at %s.", f.at(last))
}

// returnText says that loads give another result on the way down, "" if they do not.
func (f *Findings) returnText() string {
	h := f.returned()
	if h == nil {
		return ""
	}
	up, down := f.numbered(h.Up), f.numbered(h.Down)
	return fmt.Sprintf("On the way down %s is %s at %s, after %s on the way up, which alone counts.", f.noun(), f.show(f.mean(down)),
		f.at(down), f.show(f.mean(up)))
}

// highestText names the step with the highest mean, if that is another.
func (f *Findings) highestText() string {
	highest := f.numbered(f.Optimum.Step)
	for _, step := range f.Optimum.Equals {
		if s := f.numbered(step); f.mean(s) > f.mean(highest) {
			highest = s
		}
	}
	if highest.Step == f.Optimum.Step {
		return ""
	}
	return fmt.Sprintf("The highest mean is %s%s at %s, which is not more beyond noise, or by less than 1%%.", f.show(f.mean(highest)),
		f.between(highest), f.at(highest))
}

// mean is what steps are compared by.
func (f *Findings) mean(s *Step) float64 {
	mean, _, _ := f.yield(s)
	return mean
}

// kneeText names the knee.
func (f *Findings) kneeText() string {
	k := f.Knee
	if k == nil {
		return ""
	}
	at := f.count(k.Clients)
	if f.Open() {
		at = f.at(f.numbered(k.Step))
	} else if k.ClientsLow != nil && k.ClientsHigh != nil && *k.ClientsHigh-*k.ClientsLow >= 1 {
		at += fmt.Sprintf(" (%.0f to %.0f)", math.Floor(*k.ClientsLow), math.Ceil(*k.ClientsHigh))
	}
	return fmt.Sprintf("The knee is at %s: beyond it each additional %s adds less than the average.", at, strings.TrimSuffix(f.loads(), "s"))
}

// loads names the load by which steps differ, without a unit: clients, jobs or arrivals.
func (f *Findings) loads() string { return strings.TrimSuffix(f.Load(), "/s") }

// peakText names the maximum of the model.
func (f *Findings) peakText() string {
	p := f.Optimum.Peak
	if p == nil {
		return ""
	}
	return fmt.Sprintf("The fitted %s is highest at %.0f %s (%.0f to %.0f).", f.Fits.Best, p.Value, f.Load(), math.Floor(*p.Low),
		math.Ceil(*p.High))
}

// cpuText tells what the optimum's step cost both sides.
func (f *Findings) cpuText(s *Step) string {
	who := "the server process"
	if s.serverByHost {
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
	return "At " + f.at(s) + " " + strings.Join(all, " and ") + "."
}
