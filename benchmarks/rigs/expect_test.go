package rigs

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// notValid expects that a run is not reported as valid.
func (s *stage) notValid(r *ran) {
	s.expect(r.status() != "valid", "not valid expected, is %s", r.status())
}

// invalid expects that a run is invalid, and that its exit code is not 0.
func (s *stage) invalid(r *ran) {
	s.expect(r.status() == "invalid" || r.findings == nil && r.exit != 0, "invalid expected, is %s", r.status())
	s.fails(r)
}

// warns reports whether a run has a warning with a text, in addition to its checks.
func (r *ran) warns(of string) bool {
	return r.findings != nil && strings.Contains(strings.Join(r.Warnings, "\n"), of)
}

// fails expects an exit code other than 0.
func (s *stage) fails(r *ran) { s.expect(r.exit != 0, "an exit code other than 0 expected") }

// valid expects a run to be valid and to end with 0. The check of quiet machines may warn if other
// programs used the CPU; if they used much of it, the rig is skipped.
func (s *stage) valid(r *ran) {
	if why := alarm(r); why != "" {
		s.fit(r)
		s.expect(false, "valid expected: %s", why)
	}
}

// alarm returns the first problem that weir reports in a run without problems, or "" if it reports
// no problem.
func alarm(r *ran) string {
	f := r.findings
	switch {
	case f.ownStops() && r.crowded():
		return "" // it is true: other programs used all of the CPU
	case f == nil:
		return fmt.Sprintf("no findings, exit %d: %s", r.exit, lastLine(r.text))
	case r.exit != 0:
		return fmt.Sprintf("exit %d (%s: %s)", r.exit, f.status(), strings.Join(f.troubles(), ", "))
	case r.warns("unequally"):
		return "a warning of unequal service"
	case len(f.outages()) > 0:
		return fmt.Sprintf("an outage of %.1f s", f.outages()[0].Seconds)
	}
	for _, s := range f.Curve {
		if s.Excluded != "" {
			return fmt.Sprintf("step %d is excluded: %s", s.Step, s.Excluded)
		}
	}
	bad := f.troubles()
	if r.crowded() {
		bad = slices.DeleteFunc(bad, func(name string) bool { return name == "quiet machines" })
	}
	if len(bad) > 0 || f.status() != "valid" && len(f.troubles()) == 0 {
		return fmt.Sprintf("%s: %s (%s)", f.status(), strings.Join(bad, ", "), r.others())
	}
	return ""
}

// away expects an outage in a step, of about the given duration, and that the step does not count.
func (s *stage) away(r *ran, number int, seconds float64) {
	sum, n := 0.0, 0
	for _, o := range r.outages() {
		if o.Step == number {
			sum, n = sum+o.Seconds, n+1
		}
	}
	s.expect(n > 0, "an outage in step %d expected", number)
	if n > 0 {
		s.expect(sum > 0.65*seconds && sum < 1.5*seconds+0.5, "an outage of %.1f s expected, is %.1f s", seconds, sum)
	}
	s.expect(r.excludes(number), "step %d must not count", number)
	s.notValid(r)
}

// fit ends a rig whose truth depends on timing if the machine was not quiet enough for it.
func (s *stage) fit(r *ran) {
	if r.tooCrowded() {
		s.cannot("%s", r.others())
	}
}

// limited expects that the first bottleneck is one of resources. On a machine of which other
// programs used much, it is also correct that the CPU is the limit, or that the limit is unknown:
// then the rig is skipped.
func (s *stage) limited(r *ran, resources ...string) {
	is := r.limit().Resource
	if (is == "unknown" || is == "cpu") && !slices.Contains(resources, is) {
		s.fit(r)
	}
	s.expect(slices.Contains(resources, is), "limit %s expected, is %q", strings.Join(resources, " or "), is)
}

// near expects a figure whose relative difference from the expected value is at most within.
func (s *stage) near(what string, is, should, within float64) {
	s.expect(math.Abs(is-should) <= within*should, "%s: %.4g expected, is %.4g", what, should, is)
}

// between expects a figure in a range.
func (s *stage) between(what string, is, from, to float64) {
	s.expect(is >= from && is <= to, "%s: %.4g to %.4g expected, is %.4g", what, from, to, is)
}

// noCapacity expects that the run makes no statement about the capacity of the service.
func (s *stage) noCapacity(r *ran) {
	s.expect(r.noCapacity(), "no statement of capacity expected, but limit %q, peak %v", r.limit().Resource, r.peaks())
}

// flat expects that no maximum and no knee is reported for a flat curve, and that the lightest load
// is reported to be enough.
func (s *stage) flat(r *ran, lightest float64) {
	s.expect(!r.peaks(), "no peak expected")
	if r.findings != nil && r.Knee != nil {
		s.expect(r.Knee.Clients <= lightest, "no knee beyond %g clients expected, is at %g", lightest, r.Knee.Clients)
	}
	if r.findings != nil && r.Cheapest != nil {
		s.expect(r.Cheapest.Clients <= lightest, "%g clients are enough, but %g are said to be needed", lightest, r.Cheapest.Clients)
	}
}
