package analysis

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/limits"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/analysis/validity"
)

// longest is how many letters a headline has at most, where its numbers allow.
const longest = 100

// headline says in one line what the optimum gave, with its interval, at which load, and what limits it. What does not
// fit is left out: first where the limit is, then all of the limit.
func (f *conclusion) headline() string {
	if f.best() < 0 {
		return f.nothing()
	}
	peak := f.peakPhrase()
	limit, short := limits.LimitPhrase(f.Bottleneck)
	others, host := f.resources.OthersOfCPU(f.c.Steps[f.best()])
	switch {
	case others == "":
		return fitting(clauses(peak, limit), clauses(peak, short), peak)
	case limits.OthersNamed(f.Bottleneck): // the limit has the reason
		return fitting(clauses(peak, limit), clauses(peak, others))
	}
	return fitting(clauses(peak, limit, others+" of "+host), clauses(peak, short, others), clauses(peak, others))
}

// peakPhrase names the optimum: "Peak 8.32 Gbit/s (8.10 to 8.52) at 16 clients".
func (f *conclusion) peakPhrase() string {
	o, s := f.Optimum, f.c.Steps[f.best()]
	gave := f.c.Show(f.c.Mean(s)) + f.c.Between(s) + " at " + f.c.At(s)
	atEnd := len(o.Equals) == 1 && f.c.LoadOf(s) == f.c.LoadOf(f.c.Steps[f.c.Heaviest()])
	switch _, low, _ := f.c.Yield(s); {
	case o.Unclear && f.c.OneLoad():
		gave = "No peak can be named: " + gave + ", the only load"
	case o.Unclear:
		gave = "No peak can be named: " + gave
	case f.c.OneLoad():
		gave += ", the only load tested"
	case atEnd && s.LinkFull():
		gave = "Peak " + gave
	case atEnd && low != nil:
		gave = "At least " + gave + ", still growing"
	case atEnd:
		gave = "At least " + gave + ", the heaviest load tested"
	default:
		gave = "Peak " + gave
	}
	if lost := s.Unwell(); lost >= 0.01 {
		gave += fmt.Sprintf(" (%s failed)", unit.Percent(lost))
	}
	return gave
}

// unclear reports whether the interval of what step s gave contains zero, or is as wide as twice the mean.
func (f *conclusion) unclear(s *steps.Working) bool {
	mean, _, _ := f.c.Yield(s)
	low, high := f.c.Bounds(s)
	return high > low && (low <= 0 || high-mean >= mean)
}

// nothing says why there is no optimum.
func (f *conclusion) nothing() string {
	right, bad, by := f.c.Counts()
	switch {
	case len(f.c.Steps) == 0:
		return "Nothing was measured: no step reached its measurement time"
	case right == 0 && bad > 0:
		return fitting(fmt.Sprintf("All %d operations failed (%s)", bad, steps.Classes(by)), fmt.Sprintf("All %d operations failed", bad))
	case f.c.OfJobs():
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

// reportOutages puts what was not available in front of the headline and the verdict of the steps that count, of which
// there are left, and adds what pauses after errors did.
func (f *conclusion) reportOutages(left int) {
	lines := []string{f.Verdict}
	if away := f.outageHeadline(left); away != "" {
		f.Headline = away
		lines = []string{away}
		if left > 0 {
			lines = append(lines, say.Capital(validity.Exclusions(f.c))+".", f.Verdict)
		}
	}
	if paused := validity.PauseText(f.c); paused != "" {
		lines = append(lines, paused)
	}
	if asked := validity.AskedText(f.c); asked != "" {
		lines = append(lines, asked)
	}
	f.Verdict = strings.Join(lines, "\n")
}

// outageHeadline is the headline of a run in which steps do not count, "" if all do. left is how many count.
func (f *conclusion) outageHeadline(left int) string {
	if len(f.c.Excluded()) == 0 {
		return ""
	}
	const none = "no capacity can be stated"
	if right, bad, by := f.c.Counts(); right == 0 && bad > 0 {
		return fitting(fmt.Sprintf("All %d operations failed (%s): %s", bad, steps.Classes(by), none),
			fmt.Sprintf("All %d operations failed: %s", bad, none))
	}
	why := f.firstExclusion()
	if left == 0 {
		return fitting(why+": "+none, why)
	}
	return fitting(why+": "+validity.Exclusions(f.c), why)
}

// firstExclusion says why the first step that does not count does not: with the moments of an outage, if there was
// one in which operations failed.
func (f *conclusion) firstExclusion() string {
	for o := range basics.Each(f.Outages) {
		if o.Kind == validity.OutageFailed {
			return say.Capital(o.Text())
		}
	}
	return say.Capital(f.c.Excluded()[0].Excluded)
}
