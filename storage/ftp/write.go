package ftp

import (
	"fmt"
	"io/fs"
)

// writeFile sends one STOR of generated content, if there is no file yet.
func (x *call) writeFile() error {
	if x.Op.Size < 0 {
		return fmt.Errorf("a file of %d bytes: %w", x.Op.Size, fs.ErrInvalid)
	}
	if x.control.c.left != x.Op.Path || x.Op.Path == "" {
		if err := x.absent(x.path()); err != nil {
			return err
		}
	}
	if err := x.transfer.passive(); err != nil {
		return err
	}
	before := x.control.c.left
	x.control.c.left = x.Op.Path // from here on, even after a failure
	if err := x.control.command("STOR ", x.path()); err != nil {
		return err
	}
	if err := x.transfer.begun(); err != nil {
		x.control.c.left = before
		return err
	}
	x.Cursor.Start(x.Op.Seed, 0, x.Op.Size)
	if err := x.transfer.sendBody(); err != nil {
		return x.transfer.whyBroken(err)
	}
	if err := x.transfer.ended(); err != nil {
		return err
	}
	x.control.c.left = ""
	return nil
}

// absent returns fs.ErrExist unless the name is free.
func (x *call) absent(p path) error {
	_, err := x.look(p)
	switch {
	case err == nil:
		return fmt.Errorf("%q: weir does not replace what is there: %w", p.name, fs.ErrExist)
	case missing(err), vague(err): // for an existing file SIZE returns the size; a listing before each write would cost more than the write
		return nil
	case unknown(err):
		return fmt.Errorf("the server knows neither MLST nor SIZE, so weir cannot check whether a write would replace a file: %w", err)
	}
	return err
}
