package storage

import (
	"fmt"
	"io/fs"
)

// Told has a bit, 1<<Phase, for each phase of an operation that a driver has told.
// The zero value is that of an operation that has just begun.
type Told uint16

// Reached tells to of a phase, once. What happens on the way to a later request of
// the same operation is not told: its first byte has been there.
func (t *Told) Reached(to Progress, p Phase) {
	const opened = 1<<Opened | 1<<FirstByte
	late := p < Opened && *t&opened != 0
	if !late && *t&(1<<p) == 0 {
		*t |= 1 << p
		to.Reached(p)
	}
}

// Check refuses a range that no file can have, with an error that is fs.ErrInvalid.
func (r Range) Check() error {
	if r.Offset < 0 || r.Length < 0 || r.Offset+r.Length < 0 {
		return fmt.Errorf("range of %d bytes at %d: %w", r.Length, r.Offset, fs.ErrInvalid)
	}
	return nil
}
