package analysis

import (
	"fmt"
	"slices"
)

// A Note is something that a check could not look at. It says nothing against the result, and nothing for it.
type Note struct {
	Check     string `json:"check"`       // its name
	Unchecked string `json:"not_checked"` // what was not looked at, and why
	Remedy    string `json:"to_check"`    // what would make it checkable; "" if nothing would
}

// note adds a note to c, whose status stays as it is.
func (c *Check) note(what, remedy string) {
	c.notes = append(c.notes, Note{c.Name, what, remedy})
}

// skip returns c as a check that does not apply, for the reason in detail.
func (c *Check) skip(detail string) Check {
	c.Status, c.Detail = Skipped, detail
	return *c
}

// unchecked returns c as a check that had nothing to judge by, with a note.
func (c *Check) unchecked(what, remedy string) Check {
	c.note(what, remedy)
	return c.skip(what)
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
