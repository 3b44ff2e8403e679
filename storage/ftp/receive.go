package ftp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"weir/internal/tcp"
	"weir/storage"
	"weir/storage/wireclient"
)

// takeBlocks is take for a transfer over streams.
func (t *transfer) takeBlocks(limit int64) (int64, error) {
	if err := t.begun(); err != nil {
		return 0, err
	}
	b := t.control.c.blocks
	n, err := b.receive(t, limit)
	t.call.Result.Wire += b.count()
	if err != nil {
		if !errors.Is(err, storage.ErrProtocol) && !errors.Is(err, storage.ErrScratch) {
			err = t.whyBroken(err)
		}
		t.control.drop()
		return n, err
	}
	if slices.ContainsFunc(b.all, func(s *stream) bool { return s.closing }) {
		t.control.dropStreams()
	}
	return n, t.ended()
}

// receive waits until all streams have ended the transfer, including streams whose connections do
// not exist yet.
func (b *streams) receive(t *transfer, limit int64) (int64, error) {
	b.transfer, b.limit, b.moved, b.ends, b.of, b.err = t, limit, 0, 0, 0, nil
	b.listener.Rest()
	t.serve(b.from) // before any stream reports bytes
	for _, s := range b.all {
		if err := s.conn.Begin(t.call.Ctx, t.call.Deadline); err != nil {
			b.fail(err)
		}
		b.done.Add(1)
		go s.work()
	}
	for len(b.all) < b.want && !b.over() {
		b.accept()
	}
	b.done.Wait()
	b.transfer = nil
	if b.err == nil && (b.of == 0 || b.ends < b.of) {
		b.err = fmt.Errorf("%w: a data connection ended early", storage.ErrShort)
	}
	return b.moved, b.err
}

// accept accepts one more connection.
func (b *streams) accept() {
	x := b.transfer.call
	soon, _ := x.Sooner(connecting)
	conn, err := b.listener.Accept(x.Ctx, soon)
	switch {
	case errors.Is(err, tcp.ErrWoken):
		return
	case errors.Is(err, os.ErrDeadlineExceeded) && len(b.all) > 0 && (x.Deadline.IsZero() || time.Now().Before(x.Deadline)):
		return // fewer connections than requested are fine, as long as they transfer the whole file
	case err != nil:
		b.fail(fmt.Errorf("the server makes no data connection to this machine, which in_flight above 1 needs: %w", err))
		return
	}
	_ = conn.SetDeadline(x.Deadline) // never fails
	s := &stream{set: b, conn: conn}
	s.work, s.discard = s.run, s.reportMoved
	b.mu.Lock()
	b.all = append(b.all, s)
	broken := b.err != nil
	b.mu.Unlock()
	if broken {
		conn.Break()
	}
	b.done.Add(1)
	go s.work()
}

// over reports whether the transfer has ended, with or without success.
func (b *streams) over() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err != nil || b.of > 0 && b.ends >= b.of
}

// fail ends the transfer on all streams.
func (b *streams) fail(err error) {
	b.mu.Lock()
	first := b.err == nil
	if first {
		b.err = err
		for _, s := range b.all {
			s.conn.Break()
		}
	}
	b.mu.Unlock()
	b.listener.Wake()
}

// run receives a stream's part of one transfer.
func (s *stream) run() {
	defer s.set.done.Done()
	if err := s.receive(); err != nil {
		s.set.fail(err)
	}
}

func (s *stream) receive() error {
	for {
		for got := 0; got < headerSize; {
			n, err := s.conn.Read(s.header[got:])
			if errors.Is(err, io.EOF) {
				return fmt.Errorf("%w: a data connection ended early", storage.ErrShort)
			}
			if err != nil {
				return err
			}
			got += n
		}
		h, err := parseHeader(&s.header)
		if err != nil {
			return err
		}
		if h.flags&endOfFile != 0 { // the offset is the number of streams that will have ended at the end of the file
			s.set.mu.Lock()
			s.set.of = h.offset
			s.set.mu.Unlock()
		} else if err := s.block(h); err != nil {
			return err
		}
		if h.flags&willClose != 0 {
			s.closing = true
		}
		if h.flags&endOfData != 0 {
			s.set.end()
			return nil
		}
	}
}

// end counts a stream that has ended. After the last stream Accept stops waiting.
func (b *streams) end() {
	b.mu.Lock()
	b.ends++
	b.mu.Unlock()
	if b.over() {
		b.listener.Wake()
	}
}

// block receives the bytes of one block.
func (s *stream) block(h header) error {
	if h.count == 0 {
		return nil
	}
	b := s.set
	b.mu.Lock()
	b.moved += h.count
	over := b.limit >= 0 && b.moved > b.limit
	dest := b.transfer.call.Dest
	b.mu.Unlock()
	if over {
		return b.transfer.tooMuch(b.limit)
	}
	if dest == nil {
		_, err := s.conn.Discard(h.count, s.discard)
		return err
	}
	return s.copyTo(dest, h)
}

// copyTo writes a block to its offset in a file of this machine.
func (s *stream) copyTo(dest *storage.LocalFile, h header) error {
	t := s.set.transfer
	buffers := t.control.c.s.buffers
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	for left := h.count; left > 0; {
		n, err := s.conn.Read((*buf)[:min(left, int64(len(*buf)))])
		if err != nil {
			return err
		}
		if _, err := dest.WriteAt((*buf)[:n], h.offset+h.count-left); err != nil {
			return err
		}
		left -= int64(n)
		s.set.mu.Lock()
		t.call.Moved(n)
		s.set.mu.Unlock()
	}
	return nil
}

// reportMoved counts bytes that the kernel has dropped.
func (s *stream) reportMoved(n int) {
	s.set.mu.Lock()
	defer s.set.mu.Unlock()
	s.set.transfer.call.Discard(n)
}

// A header precedes each block of extended block mode (GFD.20, 3.2): a byte of flags, the number of
// bytes that follow, and their offset in the file.
type header struct {
	flags         byte
	count, offset int64 // with endOfFile, offset is the number of connections that send endOfData
}

const (
	headerSize = 17

	endOfFile  = 0x40
	suspect    = 0x20 // the sender suspects an error in the block
	restart    = 0x10 // the bytes are a restart marker
	endOfData  = 0x08 // no more data comes on this connection
	willClose  = 0x04
	maxStreams = 1 << 10
)

// parseHeader reads a header and refuses invalid values.
func parseHeader(b *[headerSize]byte) (header, error) {
	count, offset := binary.BigEndian.Uint64(b[1:9]), binary.BigEndian.Uint64(b[9:17])
	h := header{flags: b[0], count: int64(count), offset: int64(offset)}
	switch {
	case count > math.MaxInt64 || offset > math.MaxInt64 || offset+count > math.MaxInt64:
		return h, wireclient.ProtocolError("a block of %d bytes at %d", count, offset)
	case h.flags&endOfFile != 0 && (count > 0 || offset == 0 || offset > maxStreams):
		return h, wireclient.ProtocolError("an end of file of %d bytes for %d connections", count, offset)
	case h.flags&(restart|suspect) != 0:
		return h, wireclient.ProtocolError("a block with flags %#x", h.flags)
	}
	return h, nil
}
