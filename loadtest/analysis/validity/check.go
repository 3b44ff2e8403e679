package validity

import (
	"slices"
	"strings"

	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/fact"
)

// Validity reports whether the numbers can be relied on.
type Validity struct {
	Status string  `json:"status"` // valid, suspect (a check warns), invalid (one fails); tables: unchecked
	Checks []Check `json:"checks"`
	Notes  []Note  `json:"notes"` // on unchecked data, which is no evidence of a problem
}

// States of a result.
const (
	Valid     = "valid"     // enough data, and no check has evidence of wrong numbers
	Suspect   = "suspect"   // evidence that the numbers may be wrong, or too little data to rely on
	Invalid   = "invalid"   // evidence that the numbers are wrong, or nothing was measured
	Unchecked = "unchecked" // of a table: there is no evidence for it or against it
)

// A Check is one reason to rely on a result, or not to rely on it.
type Check struct {
	Name   string `json:"name"`
	Status string `json:"status"`           // ok, warn, fail, skipped
	Detail string `json:"detail"`           // the texts of its facts
	Effect string `json:"effect,omitempty"` // of warn and fail: the consequence for the result

	Facts []fact.Fact `json:"facts,omitempty"` // of Detail, then the fact of Effect

	effect fact.Fact
	notes  []Note
}

// States of a check.
const (
	OK      = "ok"
	Warn    = "warn"
	Fail    = "fail"
	Skipped = "skipped" // no data to judge by; the reason is in the detail
)

// A Note describes data that a check could not examine. It is no evidence for or against the
// result.
type Note struct {
	Check     string `json:"check"`       // its name
	Unchecked string `json:"not_checked"` // the data that was not examined, and the reason
	Remedy    string `json:"to_check"`    // the change that permits the check; "" if no change does

	Facts []fact.Fact `json:"facts,omitempty"` // of Unchecked, then the fact of Remedy

	what []fact.Fact
}

// Note adds a note to c, whose status stays as it is. remedy is at most one fact.
func (c *Check) Note(what fact.Fact, remedy ...fact.Fact) { c.note([]fact.Fact{what}, remedy...) }

func (c *Check) note(what []fact.Fact, remedy ...fact.Fact) {
	c.notes = append(c.notes, Note{c.Name, sentence(what), sentence(remedy), slices.Concat(what, remedy), what})
}

// Skip marks c as a check that does not apply, with the given reasons, and returns it.
func (c *Check) Skip(why ...fact.Fact) Check {
	c.Status, c.Facts, c.Detail = Skipped, why, sentence(why)
	return *c
}

// unchecked returns c as a check without data to judge by, with a note.
func (c *Check) unchecked(what fact.Fact, remedy ...fact.Fact) Check {
	c.Note(what, remedy...)
	return c.Skip(what)
}

// undecided skips a check whose facts are not sufficient, and adds a note with them.
func (c *Check) undecided(remedy fact.Fact) {
	c.note(slices.Clone(c.Facts), remedy)
	c.Status = Skipped
}

// addFact adds a fact to the detail of c, see fact.New.
func (c *Check) addFact(code string, pairs ...any) { c.Add(fact.New(code, pairs...)) }

// Add adds facts to the detail of c.
func (c *Check) Add(all ...fact.Fact) {
	c.Facts = append(c.Facts, all...)
	c.Detail = sentence(c.Facts)
}

// mostItems is the number of facts of one kind, such as facts on steps, in a detail.
const mostItems = 3

// AddSome adds the first facts, and the number of the remaining facts.
func (c *Check) AddSome(all []fact.Fact) {
	c.Add(all[:min(len(all), mostItems)]...)
	if n := len(all) - mostItems; n > 0 {
		c.addFact("check.more", "number", n)
	}
}

func sentence(of []fact.Fact) string { return strings.Join(fact.Texts(of), "; ") }

// worsen sets a more severe state of c, and the effect on the result that is the reason for it. A
// state that is not more severe changes nothing.
func (c *Check) worsen(status string, effect fact.Fact) {
	if worse(c.Status, status) != c.Status {
		c.Status, c.effect, c.Effect = status, effect, effect.Text
	}
}

// worse returns the more serious of two states.
func worse(a, b string) string {
	order := map[string]int{Skipped: 0, OK: 1, Warn: 2, Fail: 3}
	if order[b] > order[a] {
		return b
	}
	return a
}

// Text returns the result of the check and, if it warns or fails, the consequence for the result.
func (c *Check) Text() string {
	if c.Effect == "" {
		return c.Detail
	}
	return c.Detail + ": " + c.Effect
}

// Text returns the data that was not checked, and the way to check it.
func (n *Note) Text() string {
	if n.Remedy == "" {
		return n.Unchecked
	}
	return n.Unchecked + "; to check it: " + n.Remedy
}

// Noted reports whether the notes contain everything about a check: it had no data to judge by.
func (v *Validity) Noted(c *Check) bool {
	return c.Status == Skipped && slices.ContainsFunc(v.Notes, func(n Note) bool { return n.Check == c.Name })
}

// Judged returns the validity that follows from checks. status is the state of a result without
// warnings.
func Judged(status string, checks []Check) Validity {
	v := Validity{Status: status, Checks: checks, Notes: []Note{}}
	for c := range basics.Each(checks) {
		v.Notes = append(v.Notes, c.notes...)
		switch c.Status {
		case Fail:
			v.Status = Invalid
		case Warn:
			if v.Status != Invalid {
				v.Status = Suspect
			}
		default:
			continue
		}
		if c.effect.Code == "" {
			c.effect = usualEffect(c.Name)
		}
		c.Effect, c.Facts = c.effect.Text, append(c.Facts, c.effect)
	}
	return v
}

// usualEffect returns the usual consequence of a warning or failure of a check for the result, for
// checks that do not set a more exact one.
func usualEffect(check string) fact.Fact {
	switch check {
	case "availability":
		return fact.New("effect.steps_excluded")
	case "error pauses":
		return fact.New("effect.paused")
	case "errors":
		return fact.New("effect.only_successful")
	case "verification":
		return fact.New("effect.wrong_content")
	case "both ends agree":
		return fact.New("effect.throughput_off")
	case "generator":
		return fact.New("effect.generator_limited")
	case "Little's law":
		return fact.New("effect.other_load")
	case "steadiness":
		return fact.New("effect.time_dependent")
	case "monitoring":
		return fact.New("effect.monitoring_cost")
	case "jobs":
		return fact.New("effect.jobs_incomplete")
	case "workers":
		return fact.New("effect.not_as_planned")
	case "links":
		return fact.New("effect.not_as_specified")
	case "backends agree":
		return fact.New("effect.backends_off")
	}
	return fact.New("effect.unknown")
}
