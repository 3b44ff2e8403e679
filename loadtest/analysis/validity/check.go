package validity

import (
	"cmp"
	"fmt"
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
	Detail string `json:"detail"`           // the texts of Facts
	Effect string `json:"effect,omitempty"` // of warn and fail: what it means for the result

	Facts []fact.Fact `json:"facts,omitempty"`

	notes []Note
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
}

// Note adds a note to c, whose status stays as it is.
func (c *Check) Note(what, remedy string) {
	c.notes = append(c.notes, Note{c.Name, what, remedy})
}

// Skip returns c as a check that does not apply, for the reason in detail.
func (c *Check) Skip(detail string) Check {
	c.Status, c.Detail = Skipped, detail
	return *c
}

// unchecked returns c as a check that had nothing to judge by, with a note.
func (c *Check) unchecked(what, remedy string) Check {
	c.Note(what, remedy)
	return c.Skip(what)
}

// addFact adds a fact to the detail of c, see fact.New.
func (c *Check) addFact(code string, pairs ...any) {
	c.Facts = append(c.Facts, fact.New(code, pairs...))
	c.Detail = strings.Join(fact.Texts(c.Facts), "; ")
}

// addDetail appends a sentence to the detail of c.
func (c *Check) addDetail(format string, args ...any) {
	if c.Detail != "" {
		c.Detail += "; "
	}
	c.Detail += fmt.Sprintf(format, args...)
}

// worsen gives c a graver state, and the effect on the result that is the reason for it. A state that is not graver
// changes nothing.
func (c *Check) worsen(status, effect string, args ...any) {
	if worse(c.Status, status) != c.Status {
		c.Status, c.Effect = status, fmt.Sprintf(effect, args...)
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
		if c.Effect == "" {
			c.Effect = cmp.Or(effects()[c.Name], "the result may be wrong")
		}
	}
	return v
}

// effects tells what a warning or failure of a check means for the result, unless the check itself is more exact.
func effects() map[string]string {
	return map[string]string{
		"availability":    "steps during which the service was unavailable are excluded from the curve",
		"error pauses":    "that step shows the pauses of the clients (load.error_pause), not the service",
		"errors":          "the throughput is that of the successful operations only",
		"verification":    "bytes that are not the content of the files count as payload",
		"both ends agree": "the throughput may be wrong by the same amount",
		"generator":       "the curve may show the load generator instead of the service",
		"Little's law":    "the actual load was not the one on the axis of the curve",
		"steadiness":      "the mean of these steps depends on when they were measured",
		"monitoring":      "monitoring took CPU time from the test",
		"jobs":            "jobs that were not completed transferred only part of their data",
		"workers":         "the load was not as planned",
		"links":           "the links were not as specified",
		"backends agree":  "the throughput or the shares of the backends may be wrong by the same amount",
	}
}
