package storage

import (
	"fmt"
	"io/fs"
	"os"
)

// A Dest is the file of this machine that takes the payload of a read: Op.Dest.
// Its failures wrap ErrScratch and name the file; the system's own error is
// inside. A nil Dest takes nothing. It is used by one goroutine at a time.
type Dest struct{ file *os.File }

// OpenDest makes the file that op names in Dest, for its owner alone, or
// empties it. It returns nil if op names none. The caller closes it.
func (o *Op) OpenDest() (*Dest, error) {
	if err := o.checkDest(); err != nil || o.Dest == "" {
		return nil, err
	}
	f, err := os.OpenFile(o.Dest, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, scratch(err)
	}
	return &Dest{f}, nil
}

// checkDest refuses a Dest of what is no whole file.
func (o *Op) checkDest() error {
	if o.Dest != "" && (o.Kind != Read || o.Ranges != nil) {
		return fmt.Errorf("only the payload of a whole file's read can go to %s: %w", o.Dest, fs.ErrInvalid)
	}
	return nil
}

// Write writes behind what was written before.
func (d *Dest) Write(p []byte) (int, error) {
	if d == nil {
		return len(p), nil
	}
	n, err := d.file.Write(p)
	return n, scratch(err)
}

// WriteAt writes at an offset, for payload that comes in another order.
func (d *Dest) WriteAt(p []byte, at int64) (int, error) {
	if d == nil {
		return len(p), nil
	}
	n, err := d.file.WriteAt(p, at)
	return n, scratch(err)
}

// Close closes the file and returns what became of the read: err, or if that is
// nil why the file does not hold all that was written.
func (d *Dest) Close(err error) error {
	if d == nil {
		return err
	}
	if cerr := d.file.Close(); err == nil {
		err = scratch(cerr)
	}
	return err
}

// scratch says that it was this machine.
func scratch(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrScratch, err)
}
