package analysis

import "fmt"

// A Note is something that a check could not look at. It says nothing against
// the result, and nothing for it.
type Note struct {
	Check     string `json:"check"`       // its name
	Unchecked string `json:"not_checked"` // what was not looked at, and why
	Remedy    string `json:"to_check"`    // what would make it checkable; "" if nothing would
}

// note adds a note to c, whose status stays as it is.
func (c *Check) note(what, remedy string) {
	c.notes = append(c.notes, Note{c.Name, what, remedy})
}

// unchecked makes c a check that had nothing to judge by.
func (c *Check) unchecked(what, remedy string) {
	c.Status, c.Detail = Skipped, what
	c.note(what, remedy)
}

// tell appends a fact to what c says.
func (c *Check) tell(format string, args ...any) {
	if c.Detail != "" {
		c.Detail += "; "
	}
	c.Detail += fmt.Sprintf(format, args...)
}

// worsen gives c a graver state, and the effect on the result that is the
// reason for it. A state that is not graver changes nothing.
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
