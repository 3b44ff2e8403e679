package ftp

import (
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"math"
	"strconv"

	"weir/internal/content"
	"weir/storage"
	"weir/storage/wireclient"
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

// readWhole is one RETR.
func (x *call) readWhole(sum hash.Hash) error {
	if err := x.prepare(); err != nil {
		return err
	}
	if err := x.ask("RETR ", x.path()); err != nil {
		return err
	}
	n, err := x.take(x.Op.Size, sum)
	if err != nil {
		return err
	}
	x.Result.Size = n
	if n < x.Op.Size { // it may have been cut off: no size was announced
		return fmt.Errorf("%w: the file has %d bytes, not the %d expected", storage.ErrShort, n, x.Op.Size)
	}
	return nil
}

// prepare makes sure that there is a data connection for what is to be read, or that there are several.
func (x *call) prepare() error {
	many, err := x.parallel()
	if err != nil || many {
		return err
	}
	return x.passive()
}

// readRange is one ERET P, or REST and a RETR that is broken off.
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
	s := x.c.s
	if !s.noPartial.Load() { // GridFTP (GFD.20, 3.4)
		if err := x.path().check(); err != nil {
			return 0, err
		}
		x.Hold()
		b := append(x.Data[:0], "ERET P "...)
		b = append(strconv.AppendInt(b, r.Offset, 10), ' ')
		b = append(strconv.AppendInt(b, r.Length, 10), ' ')
		if err := x.send(x.path().append(b)); err != nil {
			return 0, err
		}
		if x.reply.code < 400 || !unknown(x.refusal()) {
			return x.take(r.Length, sum)
		}
		s.noPartial.Store(true)
	}
	x.Hold()
	if err := x.send(strconv.AppendInt(append(x.Data[:0], "REST "...), r.Offset, 10)); err != nil {
		return 0, err
	}
	if x.reply.code != 350 {
		return 0, while("restart", x.refusal())
	}
	if err := x.ask("RETR ", x.path()); err != nil {
		return 0, err
	}
	if c := x.reply.code; r.Offset > 0 && (c == 551 || c == 554) { // RFC 3659, 5.3: beyond the end
		return 0, fmt.Errorf("%w: 0 of %d bytes at %d: %w", storage.ErrShort, r.Length, r.Offset, x.refusal())
	}
	return x.takeFirst(r.Length, sum)
}

// take ends the command that the last reply is the first one to: it moves all that comes, past us if no one wants
// to see it, else through sum and to where it is to go, and counts it. More than limit, if that is not negative,
// are an error.
func (x *call) take(limit int64, sum hash.Hash) (int64, error) {
	if x.c.blocks != nil {
		return x.takeBlocks(limit)
	}
	if err := x.begun(); err != nil {
		return 0, err
	}
	most := int64(math.MaxInt64)
	if limit >= 0 && limit < most {
		most = limit + 1
	}
	n, err := x.drain(most, sum)
	switch {
	case limit >= 0 && n > limit:
		x.closeData()
		x.drop() // the server is still sending
		return n, x.tooMuch(limit)
	case err != nil:
		return n, x.brokenOff(err)
	}
	return n, x.ended()
}

// tooMuch is the error of a transfer of more than limit bytes: of a whole file the size is another one, of a part
// the server has sent what was not asked for.
func (x *call) tooMuch(limit int64) error {
	if x.Op.Ranges == nil {
		return fmt.Errorf("%w: more than the %d bytes expected", storage.ErrSize, limit)
	}
	return wireclient.ProtocolError("more than the %d bytes asked for", limit)
}

// brokenOff is the error of a transfer that err ended.
func (x *call) brokenOff(err error) error {
	if errors.Is(err, storage.ErrScratch) {
		x.closeData()
		x.drop()
		return err
	}
	return x.whyBroken(err)
}

// takeFirst is take for the first n bytes of what comes; the rest is left.
func (x *call) takeFirst(n int64, sum hash.Hash) (int64, error) {
	if err := x.begun(); err != nil {
		return 0, err
	}
	got, err := x.drain(n, sum)
	if err != nil {
		return got, x.brokenOff(err)
	}
	if got < n {
		return got, x.ended()
	}
	x.closeData() // the server says 226 or 426, as it got to know
	if err := x.hearBreak(); err != nil {
		return got, err
	}
	if x.reply.code == 421 {
		x.drop()
	}
	return got, nil
}

// begun looks whether the server announces a transfer.
func (x *call) begun() error {
	err := x.done(nil)
	if err == nil {
		err = x.secure()
	}
	if err == nil {
		x.Reach(storage.Opened)
	}
	return err
}

// ended reads how a transfer ended, after its data connection.
func (x *call) ended() error {
	x.closeData()
	if x.reply.code < 200 { // else the final reply came at once
		return x.done(x.hearEnd())
	}
	return x.done(nil)
}

// drain moves up to n bytes; fewer without an error if there are no more.
func (x *call) drain(n int64, sum hash.Hash) (int64, error) {
	if sum == nil && x.Dest == nil && x.secured == nil {
		got, err := x.data.Discard(n, x.Discard)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = nil
		}
		return got, err
	}
	return x.Through(x.c.s.buffers, n, sum, x.readData)
}

// readData reads from the data connection. Globus ends it without TLS's end mark; the reply on the control connection
// says whether all was sent.
func (x *call) readData(p []byte) (int, error) {
	if x.secured == nil {
		return x.data.Read(p)
	}
	n, err := x.secured.Read(p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

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
	if x.secured != nil {
		n, err := x.secured.Write(piece)
		x.Moved(n)
		return err
	}
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
	case missing(err), vague(err): // of a file that is there SIZE gives the size; a listing before each write would cost more than it
		return nil
	case unknown(err):
		return fmt.Errorf("the server knows neither MLST nor SIZE, so weir cannot check whether a write would replace a file: %w", err)
	}
	return err
}
