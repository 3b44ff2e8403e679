package validity

import (
	"slices"
	"strings"

	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/fact"
)

// Validity says whether the numbers can be believed.
type Validity struct {
	Status string  `json:"status"` // valid, suspect (a check warns), invalid (one fails); of tables unchecked
	Checks []Check `json:"checks"`
	Notes  []Note  `json:"notes"` // what could not be checked, which is no evidence of a problem
}

// States of a result.
const (
	Valid     = "valid"     // enough data, and no check has evidence that they are wrong
	Suspect   = "suspect"   // evidence that the numbers may be wrong, or too little data to rely on
	Invalid   = "invalid"   // evidence that the numbers are wrong, or nothing was measured
	Unchecked = "unchecked" // of a table: nothing speaks against it, and nothing for it
)

// A Check is one reason to believe a result, or not to.
type Check struct {
	Name   string `json:"name"`
	Status string `json:"status"`           // ok, warn, fail, skipped
	Detail string `json:"detail"`           // the texts of its facts
	Effect string `json:"effect,omitempty"` // of warn and fail: what it means for the result

	Facts []fact.Fact `json:"facts,omitempty"` // of Detail, then that of Effect

	effect fact.Fact
	notes  []Note
}

// States of a check.
const (
	OK      = "ok"
	Warn    = "warn"
	Fail    = "fail"
	Skipped = "skipped" // nothing to judge by; the detail says why
)

// A Note is something that a check could not look at. It says nothing against the result, and nothing for it.
type Note struct {
	Check     string `json:"check"`       // its name
	Unchecked string `json:"not_checked"` // what was not looked at, and why
	Remedy    string `json:"to_check"`    // what would make it checkable; "" if nothing would

	Facts []fact.Fact `json:"facts,omitempty"` // of Unchecked, then that of Remedy

	what []fact.Fact
}

// Note adds a note to c, whose status stays as it is. remedy is at most one fact.
func (c *Check) Note(what fact.Fact, remedy ...fact.Fact) { c.note([]fact.Fact{what}, remedy...) }

func (c *Check) note(what []fact.Fact, remedy ...fact.Fact) {
	c.notes = append(c.notes, Note{c.Name, sentence(what), sentence(remedy), slices.Concat(what, remedy), what})
}

// Skip returns c as a check that does not apply, for the given reasons.
func (c *Check) Skip(why ...fact.Fact) Check {
	c.Status, c.Facts, c.Detail = Skipped, why, sentence(why)
	return *c
}

// unchecked returns c as a check that had nothing to judge by, with a note.
func (c *Check) unchecked(what fact.Fact, remedy ...fact.Fact) Check {
	c.Note(what, remedy...)
	return c.Skip(what)
}

// undecided skips a check whose facts so far decide nothing, with a note of them.
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

// mostItems is the number of facts of one kind, such as those of steps, in a detail.
const mostItems = 3

// AddSome adds the first facts, and the number of the others.
func (c *Check) AddSome(all []fact.Fact) {
	c.Add(all[:min(len(all), mostItems)]...)
	if n := len(all) - mostItems; n > 0 {
		c.addFact("check.more", "number", n)
	}
}

func sentence(of []fact.Fact) string { return strings.Join(fact.Texts(of), "; ") }

// worsen gives c a graver state, and the effect on the result that is the reason for it. A state that is not graver
// changes nothing.
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

// Text says what the check found and, where it warns or fails, what that means for the result.
func (c *Check) Text() string {
	if c.Effect == "" {
		return c.Detail
	}
	return c.Detail + ": " + c.Effect
}

// Text says what was not checked, and how it would be.
func (n *Note) Text() string {
	if n.Remedy == "" {
		return n.Unchecked
	}
	return n.Unchecked + "; to check it: " + n.Remedy
}

// Noted reports whether the notes say all that there is to say of a check: it had nothing to judge by.
func (v *Validity) Noted(c *Check) bool {
	return c.Status == Skipped && slices.ContainsFunc(v.Notes, func(n Note) bool { return n.Check == c.Name })
}

// Judged is the validity that follows from checks. status is that of a result of which no check warns.
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

// usualEffect returns the meaning of a warning or failure of a check for the result, unless the check itself is more exact.
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
