package ftp

import (
	"fmt"
	"io/fs"

	"weir/internal/content"
)

// writeFile is one STOR of made content, where there is no file yet.
func (x *call) writeFile() error {
	if x.Op.Size < 0 {
		return fmt.Errorf("a file of %d bytes: %w", x.Op.Size, fs.ErrInvalid)
	}
	if x.c.left != x.Op.Path || x.Op.Path == "" {
		if err := x.absent(x.path()); err != nil {
			return err
		}
	}
	if err := x.passive(); err != nil {
		return err
	}
	before := x.c.left
	x.c.left = x.Op.Path // whatever becomes of it from here on
	if err := x.ask("STOR ", x.path()); err != nil {
		return err
	}
	if err := x.begun(); err != nil {
		x.c.left = before
		return err
	}
	x.Cursor.Start(x.Op.Seed, 0, x.Op.Size)
	if err := x.sendBody(); err != nil {
		return x.whyBroken(err)
	}
	if err := x.ended(); err != nil {
		return err
	}
	x.c.left = ""
	return nil
}

// sendBody sends what the cursor has.
func (x *call) sendBody() error {
	for piece := x.Cursor.Next(); piece != nil; piece = x.Cursor.Next() {
		if err := x.sendPiece(piece); err != nil {
			return err
		}
	}
	return nil
}

func (x *call) sendPiece(piece []byte) error {
	if len(piece) <= content.HeadSize && x.Cursor.Left() > 0 { // a head waits for what follows it
		n, err := x.data.WriteMore(piece)
		x.Moved(n)
		return err
	}
	_, err := x.data.Send(piece, x.Moved)
	return err
}

// absent fails with fs.ErrExist unless there is nothing under a name.
func (x *call) absent(p path) error {
	_, err := x.look(p)
	switch {
	case err == nil:
		return fmt.Errorf("%q: weir does not replace what is there: %w", p.name, fs.ErrExist)
	case missing(err):
		return nil
	case unknown(err):
		return fmt.Errorf("the server knows neither MLST nor SIZE, so nobody can tell what a write would replace: %w", err)
	}
	return err
}
