package ftp

import (
	"fmt"
	"hash"

	"weir/storage"
)

// read reads the whole file, or its ranges.
func (x *call) read() error { return x.explained(x.path(), x.Fetch(x.readParts)) }

func (x *call) readParts(sum hash.Hash) error {
	if x.Op.Ranges == nil {
		return x.readWhole(sum)
	}
	for _, r := range x.Op.Ranges {
		if err := r.Check(); err != nil {
			return err
		}
		if r.Length == 0 {
			continue
		}
		if err := x.readRange(r, sum); err != nil {
			return err
		}
	}
	return nil
}

// readWhole sends one RETR.
func (x *call) readWhole(sum hash.Hash) error {
	if err := x.prepare(); err != nil {
		return err
	}
	if err := x.control.command("RETR ", x.path()); err != nil {
		return err
	}
	n, err := x.transfer.take(x.Op.Size, sum)
	if err != nil {
		return err
	}
	x.Result.Size = n
	if n < x.Op.Size { // it may have been cut off: no size was announced
		return fmt.Errorf("%w: the file has %d bytes, not the %d expected", storage.ErrShort, n, x.Op.Size)
	}
	return nil
}

// prepare opens a data connection for the read, or several.
func (x *call) prepare() error {
	many, err := x.transfer.parallel()
	if err != nil || many {
		return err
	}
	return x.transfer.passive()
}

// readRange sends one ERET P, or REST and a RETR that is broken off.
func (x *call) readRange(r storage.Range, sum hash.Hash) error {
	if err := x.prepare(); err != nil {
		return err
	}
	n, err := x.askPart(r, sum)
	if err != nil {
		return err
	}
	if n < r.Length {
		return fmt.Errorf("%w: %d of %d bytes at %d", storage.ErrShort, n, r.Length, r.Offset)
	}
	return nil
}

func (x *call) askPart(r storage.Range, sum hash.Hash) (int64, error) {
	s := x.s
	if !s.noPartial.Load() {
		if err := x.control.askRange(x.path(), r); err != nil {
			return 0, err
		}
		if x.control.reply.code < 400 || !unknown(x.control.refusal()) {
			return x.transfer.take(r.Length, sum)
		}
		s.noPartial.Store(true)
	}
	if err := x.control.restart(r.Offset); err != nil {
		return 0, err
	}
	if x.control.reply.code != 350 {
		return 0, while("restart", x.control.refusal())
	}
	if err := x.control.command("RETR ", x.path()); err != nil {
		return 0, err
	}
	if c := x.control.reply.code; r.Offset > 0 && (c == 551 || c == 554) { // RFC 3659, 5.3: beyond the end
		return 0, fmt.Errorf("%w: 0 of %d bytes at %d: %w", storage.ErrShort, r.Length, r.Offset, x.control.refusal())
	}
	return x.transfer.takeFirst(r.Length, sum)
}
