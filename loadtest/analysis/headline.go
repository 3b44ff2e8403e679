package analysis

import (
	"slices"
	"strings"
	"unicode/utf8"

	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/limits"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/analysis/validity"
)

// longest is the maximum number of letters of a headline, if its numbers permit.
const longest = 100

// headline returns one line on the yield of the optimum, with its interval, its load and the limit,
// and the facts of this line. If it is too long, first the host of the limit is left out, then the
// whole limit; the facts keep them.
func (f *conclusion) headline() (string, []fact.Fact) {
	if f.best() < 0 {
		return f.nothing()
	}
	facts := f.peakFacts()
	peak := strings.Join(fact.Texts(facts), " ")
	limit, short, judged := limits.LimitPhrase(f.Bottleneck)
	if judged {
		facts = append(facts, limit)
	}
	others, program, used := f.resources.OthersOfCPU(f.c.Steps[f.best()])
	switch {
	case !used:
		return fitting(clauses(peak, limit.Text), clauses(peak, short.Text), peak), facts
	case limits.OthersNamed(f.Bottleneck): // the limit includes the reason
		return fitting(clauses(peak, limit.Text), clauses(peak, program.Text)), facts
	}
	return fitting(clauses(peak, limit.Text, others.Text), clauses(peak, short.Text, program.Text), clauses(peak, program.Text)),
		append(facts, others)
}

// peakFacts returns the facts of the optimum: "Peak 8.32 Gbit/s (8.10 to 8.52) at 16 clients", and
// the share of failed operations.
func (f *conclusion) peakFacts() []fact.Fact {
	peak := f.peakFact()
	if lost := f.c.Steps[f.best()].Unwell(); lost >= 0.01 {
		return []fact.Fact{peak, fact.New("verdict.peak.failed", "share", lost)}
	}
	return []fact.Fact{peak}
}

func (f *conclusion) peakFact() fact.Fact {
	o, s := f.Optimum, f.c.Steps[f.best()]
	yield, low, high := f.c.Yield(s)
	load, unit := f.c.At(s), f.c.Unit()
	atEnd := len(o.Equals) == 1 && f.c.LoadOf(s) == f.c.LoadOf(f.c.Steps[f.c.Heaviest()])
	switch {
	case o.Unclear && f.c.OneLoad():
		return fact.New("verdict.peak.unclear.only", "yield", yield, "unit", unit, "low", low, "high", high, "load", load)
	case o.Unclear:
		return fact.New("verdict.peak.unclear", "yield", yield, "unit", unit, "low", low, "high", high, "load", load)
	case f.c.OneLoad():
		return fact.New("verdict.peak.only", "yield", yield, "unit", unit, "low", low, "high", high, "load", load)
	case atEnd && s.LinkFull(), !atEnd:
		return fact.New("verdict.peak", "yield", yield, "unit", unit, "low", low, "high", high, "load", load)
	case low != nil:
		return fact.New("verdict.peak.growing", "yield", yield, "unit", unit, "low", low, "high", high, "load", load)
	}
	return fact.New("verdict.peak.heaviest", "yield", yield, "unit", unit, "low", low, "high", high, "load", load)
}

// unclear reports whether the interval of the yield of step s contains zero, or is at least as wide
// as twice the mean.
func unclear(c *steps.Curve, s *steps.Working) bool {
	mean, _, _ := c.Yield(s)
	low, high := c.Bounds(s)
	return high > low && (low <= 0 || high-mean >= mean)
}

// nothing returns the reason why the run has no optimum.
func (f *conclusion) nothing() (string, []fact.Fact) {
	right, bad, by := f.c.Counts()
	var why fact.Fact
	switch {
	case len(f.c.Steps) == 0:
		why = fact.New("verdict.nothing.measured")
	case right == 0 && bad > 0:
		why = fact.New("verdict.failed.classes", "failed", bad, "classes", steps.Classes(by))
		return fitting(why.Text, fact.New("verdict.failed", "failed", bad).Text), []fact.Fact{why}
	case f.c.OfJobs():
		why = fact.New("verdict.nothing.jobs")
	case bad > 0:
		why = fact.New("verdict.nothing.left", "failed", bad, "ended", right+bad)
	default:
		why = fact.New("verdict.nothing")
	}
	return why.Text, []fact.Fact{why}
}

// fitting returns the first text that fits into a headline, or the last text if all are too long.
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

// reportOutages puts the outages in front of the headline and the verdict of the steps that count,
// and adds the effect of pauses after errors. left is the number of steps that count.
func (f *conclusion) reportOutages(left int) {
	texts, facts := []string{f.Verdict}, f.Facts
	if away, why := f.outageHeadline(left); away != "" {
		f.Headline = away
		if left == 0 {
			texts, facts = nil, nil
		} else {
			excluded := fact.New("verdict.excluded", "steps", validity.Exclusions(f.c).Shown())
			texts, facts = append([]string{excluded.Text}, texts...), append([]fact.Fact{excluded}, facts...)
		}
		texts, facts = append([]string{away}, texts...), append([]fact.Fact{why}, facts...)
	}
	pauses := validity.Pauses(f.c)
	f.Verdict, f.Facts = strings.Join(append(texts, fact.Texts(pauses)...), "\n"), append(facts, pauses...)
}

// outageHeadline returns the headline of a run in which steps do not count, "" if all steps count,
// and the fact of the headline. left is the number of steps that count.
func (f *conclusion) outageHeadline(left int) (string, fact.Fact) {
	if len(f.c.Excluded()) == 0 {
		return "", fact.Fact{}
	}
	if right, bad, by := f.c.Counts(); right == 0 && bad > 0 {
		all := fact.New("verdict.outage.failed.classes", "failed", bad, "classes", steps.Classes(by))
		return fitting(all.Text, fact.New("verdict.outage.failed", "failed", bad).Text), all
	}
	why := f.firstExclusion()
	short := fact.New("verdict.outage", "reason", why)
	if left == 0 {
		all := fact.New("verdict.outage.whole", "reason", why)
		return fitting(all.Text, short.Text), all
	}
	some := fact.New("verdict.outage.steps", "reason", why, "steps", validity.Exclusions(f.c).Shown())
	return fitting(some.Text, short.Text), some
}

// firstExclusion returns the reason why the first excluded step does not count: with the times of
// an outage, if there was an outage in which operations failed.
func (f *conclusion) firstExclusion() any {
	for o := range basics.Each(f.Outages) {
		if o.Kind == validity.OutageFailed {
			return o.Fact().Shown()
		}
	}
	return f.c.Excluded()[0].Excluded
}
