package analysis

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"weir/analysis/shape"
	"weir/internal/unit"
)

// longest is how many letters a headline has at most, where its numbers allow.
const longest = 100

// headline says in one line what the optimum gave, with its interval, at which
// load, which loads cannot be told from it, and what limits it. What does not fit
// is left out, the last first.
func (f *Findings) headline() string {
	best := f.best()
	if best < 0 {
		return f.nothing()
	}
	s := &f.Curve[best]
	mean, _, _ := f.yield(s)
	what := f.show(mean) + f.between(s) + " with " + f.at(s)
	if bad := s.unwell(); bad >= 0.01 {
		what += fmt.Sprintf(" (%s failed)", unit.Percent(bad))
	}
	limit, short := f.headlineLimit()
	return fitting(
		clauses(what, f.sameText(), limit),
		clauses(what, f.sameText(), short),
		clauses(what, f.sameText()),
		what,
	)
}

// nothing says why there is no optimum.
func (f *Findings) nothing() string {
	done, errors, by := counts(f)
	switch {
	case len(f.Curve) == 0:
		return "Nothing was measured: no step reached its hold time"
	case done == 0 && errors > 0:
		return fitting(fmt.Sprintf("All %d operations failed (%s)", errors, classes(by)), fmt.Sprintf("All %d operations failed", errors))
	case f.OfJobs():
		return "No job came to its end"
	case errors > 0:
		return fmt.Sprintf("No step gave a result: %d of %d operations failed", errors, done+errors)
	}
	return "No operation ended and no payload moved while the load was held"
}

// fitting returns the first of texts that is no longer than a headline may be,
// the last one if there is none.
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

// sameText says which other loads give the same, or that none does.
func (f *Findings) sameText() string {
	o, best := f.Optimum, f.best()
	s, things := &f.Curve[best], strings.TrimSuffix(f.Load(), "/s")
	lightest, heaviest := &f.Curve[f.lightest()], &f.Curve[f.heaviest()]
	low, high := f.numbered(o.Equals[0]), f.numbered(o.Equals[len(o.Equals)-1])
	within, growing := "the same within noise", "still growing there"
	if _, lower, _ := f.yield(s); lower == nil {
		within, growing = "about the same", "the most at the heaviest load"
	}
	switch {
	case f.load(lightest) == f.load(heaviest):
		return "no other load was tested"
	case len(o.Equals) == 1 && f.load(s) == f.load(heaviest):
		return growing
	case len(o.Equals) == 1 && f.load(s) == f.load(lightest):
		return "more " + things + " give less"
	case len(o.Equals) == 1:
		return "fewer or more " + things + " give less"
	case f.gaps():
		return fmt.Sprintf("some other loads up to %s %s", f.at(high), within)
	case f.load(high) == f.load(s):
		return fmt.Sprintf("from %s on %s", f.at(low), within)
	case f.load(low) < f.load(s):
		return fmt.Sprintf("%s to %s %s", strings.Fields(f.at(low))[0], f.at(high), within)
	}
	return fmt.Sprintf("up to %s %s", f.at(high), within)
}

// numbered returns the step of the curve with a number.
func (f *Findings) numbered(step int) *Step {
	return &f.Curve[max(0, f.indexOf(step))]
}

// gaps tells whether a load between the equals is none of them.
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

// headlineLimit names what limits the curve, in full and without its host, ""
// where that was not judged.
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
		return "limited by " + b.Text(), "limited by the server"
	}
	return "limited by " + b.Text(), "limited by " + b.name()
}

// verdict is the headline, and behind it what else the curve shows, one fact a
// line.
func (f *Findings) verdict() string {
	lines := []string{f.Headline}
	if best := f.best(); best >= 0 {
		s := &f.Curve[best]
		lines = append(lines, f.beyondText(), f.highestText(), f.cpuText(s), f.kneeText(), f.peakText())
		lines = append(lines, f.jobClauses(s)...)
		lines = append(lines, f.limitClause())
	}
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return l == "" }), "\n")
}

// beyondText says what comes after the optimum, and whether there is a maximum.
func (f *Findings) beyondText() string {
	o, last := f.Optimum, &f.Curve[f.heaviest()]
	high := f.numbered(o.Equals[len(o.Equals)-1])
	end, _, _ := f.yield(last)
	top, _, _ := f.yield(high)
	switch {
	case f.load(&f.Curve[f.lightest()]) == f.load(last):
		return "One load alone shows no maximum."
	case last.unwell() > shape.FewErrors && f.load(last) > f.load(high):
		return fmt.Sprintf("Beyond %s too much fails: with %s it is %s, and %s end badly.", f.at(high), f.at(last), f.show(end), unit.Percent(last.unwell()))
	case o.Inside && end < top:
		return fmt.Sprintf("Beyond %s it falls, to %s with %s.", f.at(high), f.show(end), f.at(last))
	case len(o.Equals) == 1 && o.Low != nil:
		return "It still grows at the heaviest load: no maximum was found in the tested range."
	}
	return fmt.Sprintf("No maximum was found in the tested range, which ends with %s.", f.at(last))
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
	return fmt.Sprintf("The highest mean is %s%s with %s: within noise of that, or within 1%%.", f.show(f.mean(highest)), f.between(highest), f.at(highest))
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
	return fmt.Sprintf("The knee is at %s: beyond it each %s adds less than on average.", at, singular(f.Load()))
}

// singular is one of what Load names.
func singular(load string) string {
	return strings.TrimSuffix(strings.TrimSuffix(load, "/s"), "s")
}

// peakText names the maximum of the model.
func (f *Findings) peakText() string {
	p := f.Optimum.Peak
	if p == nil {
		return ""
	}
	return fmt.Sprintf("The fitted %s is highest at %.0f %s (%.0f to %.0f).", f.Fits.Best, p.Value, f.Load(), math.Floor(*p.Low), math.Ceil(*p.High))
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
		all = append(all, fmt.Sprintf("%s used %s of its machine's CPU", who, unit.Percent(*s.ServerCPU)))
	case s.ServerCores != nil:
		all = append(all, fmt.Sprintf("%s kept %.2g cores busy", who, *s.ServerCores))
	}
	if s.ClientCPU != nil {
		text := fmt.Sprintf("the clients used %s of their machine's CPU", unit.Percent(*s.ClientCPU))
		if s.ServerCPU != nil {
			text = "the clients " + unit.Percent(*s.ClientCPU)
		}
		all = append(all, text+busyClause(s))
	}
	if len(all) == 0 {
		return ""
	}
	return "With " + f.at(s) + " " + strings.Join(all, " and ") + "."
}
