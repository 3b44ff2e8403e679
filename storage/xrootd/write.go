package xrootd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"strconv"

	"weir/internal/content"
	"weir/internal/tcp"
	"weir/storage"
	"weir/storage/wireclient"
)

// writeFile creates a file of generated content. An existing file is not changed, unless this
// client's last write left it unfinished. A file of other content (WriteFrom) replaces an existing
// file.
func (x *call) writeFile() error {
	if x.Op.Size < 0 || x.Op.Chunk < 0 || x.Op.Ahead < 0 {
		return fmt.Errorf("a file of %d bytes, chunks of %d, %d in flight: %w", x.Op.Size, x.Op.Chunk, x.Op.Ahead, fs.ErrInvalid)
	}
	options := uint16(openUpdate | openMakePath | openNew)
	if x.exchange.c.partial == x.Op.Path || x.transfer.from != nil {
		options = openUpdate | openMakePath | openDelete
	}
	f := &x.file
	x.exchange.extra = "oss.asize=" + strconv.FormatInt(x.Op.Size, 10) // servers choose a disk with enough space
	err := x.exchange.open(f, options, modeFile)
	if x.exchange.extra = ""; err != nil {
		return err
	}
	x.exchange.c.partial = x.Op.Path
	err = x.transfer.writeParts(f)
	if err == nil && x.Op.Sync {
		x.exchange.req = request{code: rqSync, args: x.exchange.req.args[:0], params: fileAt(f.handle, 0, 0)}
		err = x.exchange.followUp(f.link)
	}
	if err == nil {
		err = x.exchange.close(f)
	} else {
		x.exchange.drop(f.link)
	}
	if err == nil {
		x.exchange.c.partial = ""
		x.Result.Size = x.Op.Size
	}
	return err
}

func (t *transfer) writeParts(f *file) error {
	w := &t.window
	w.open(t.call.Op)
	for next := int64(0); next < t.call.Op.Size || w.busy > 0; {
		if next < t.call.Op.Size && w.busy < len(w.slots) {
			n := min(w.chunk, t.call.Op.Size-next)
			if err := t.writePart(f, w.take(next, n), n); err != nil {
				return err
			}
			next += n
			continue
		}
		if err := t.receiveWritten(f); err != nil {
			return err
		}
	}
	return nil
}

// writePart sends one request and its n bytes.
func (t *transfer) writePart(f *file, i int, n int64) error {
	offset := t.window.slots[i].offset
	stream := f.link.first + 1 + uint16(i)
	params := fileAt(f.handle, offset, 0)
	if t.from == nil {
		t.call.Cursor.Start(t.call.Op.Seed, offset, n)
	}
	if t.call.Op.Plain || !f.pages() {
		t.exchange.doing = rqWrite
		t.exchange.out = appendRequest(t.exchange.out[:0], stream, rqWrite, &params, int(n))
		if err := t.exchange.sendHead(f.link, t.exchange.out); err != nil {
			return err
		}
		if t.from != nil {
			return t.writeGiven(f, n)
		}
		return t.writeBytes(f)
	}
	t.exchange.doing = rqPgwrite
	t.exchange.out = appendRequest(t.exchange.out[:0], stream, rqPgwrite, &params, int(pageRaw(n, firstPage(offset))))
	if err := t.exchange.sendHead(f.link, t.exchange.out); err != nil {
		return err
	}
	return t.writePages(f, offset, n)
}

// writeBytes sends the bytes of the cursor.
func (t *transfer) writeBytes(f *file) error {
	for piece := t.call.Cursor.Next(); piece != nil; piece = t.call.Cursor.Next() {
		if len(piece) <= content.HeadSize && t.call.Cursor.Left() > 0 { // a header is sent together with the following bytes
			if _, err := f.link.wire.WriteMore(piece); err != nil {
				return err
			}
			t.reportMoved(len(piece))
			continue
		}
		if err := t.sendBulk(f, piece, t.call.Moved); err != nil {
			return err
		}
	}
	return nil
}

// writeGiven sends the next n bytes of the reader.
func (t *transfer) writeGiven(f *file, n int64) error {
	held := t.exchange.c.s.large.Get().(*[]byte)
	defer t.exchange.c.s.large.Put(held)
	for n > 0 {
		piece := (*held)[:min(n, int64(len(*held)))]
		if _, err := io.ReadFull(t.from, piece); err != nil {
			return err
		}
		if err := t.sendBulk(f, piece, t.call.Moved); err != nil {
			return err
		}
		n -= int64(len(piece))
	}
	return nil
}

// writePages sends n bytes from an offset on in pages, each behind its CRC32C.
func (t *transfer) writePages(f *file, offset, n int64) error {
	held := t.exchange.c.s.large.Get().(*[]byte)
	defer t.exchange.c.s.large.Put(held)
	buf := *held
	for n > 0 {
		end, payload := 0, int64(0)
		for n > 0 && end+pageUnit <= len(buf) {
			size := min(firstPage(offset), n)
			page := buf[end+4 : end+4+int(size)]
			if t.from == nil {
				content.Fill(page, t.call.Op.Seed, offset)
			} else if _, err := io.ReadFull(t.from, page); err != nil {
				return err
			}
			binary.BigEndian.PutUint32(buf[end:], crc32.Checksum(page, castagnoli()))
			end += 4 + int(size)
			payload += size
			offset += size
			n -= size
		}
		if err := t.sendBulk(f, buf[:end], nil); err != nil {
			return err
		}
		t.reportMoved(int(payload))
	}
	return nil
}

// sendBulk sends a piece of a request, and reads the responses to earlier requests that arrive
// meanwhile.
func (t *transfer) sendBulk(f *file, piece []byte, moved func(int)) error {
	for {
		n, err := f.link.wire.Send(piece, moved)
		piece = piece[n:]
		if !errors.Is(err, tcp.ErrAnswered) {
			return err
		}
		if err := t.receiveWritten(f); err != nil {
			return err
		}
	}
}

// receiveWritten reads the response to one of the writes in flight.
func (t *transfer) receiveWritten(f *file) error {
	l := f.link
	h, err := t.answered(l)
	if err != nil {
		return err
	}
	t.exchange.data = t.exchange.data[:0]
	if err := t.exchange.gather(l, h.size); err != nil {
		return err
	}
	switch h.status {
	case stOK:
	case stStatus:
		if err := written(h, t.exchange.data, t.slot.offset); err != nil {
			return err
		}
	case stError:
		return unsigned(l, parseError(t.exchange.data))
	case stWait: // the data would have to be sent again; no server is known to request that
		return fmt.Errorf("%w: it asks to wait in the middle of a write", storage.ErrBusy)
	default:
		return wireclient.ProtocolError("%s in answer to kXR_write or kXR_pgwrite", statusName(h.status))
	}
	t.window.free(t.slot)
	return nil
}

// written checks the response to a page write at an offset.
func written(h frame, b []byte, offset int64) error {
	st, err := parseStatus(h, b)
	switch {
	case err != nil:
		return err
	case st.request != rqPgwrite || st.offset != offset:
		return wireclient.ProtocolError("the status of a %s at %d in answer to kXR_pgwrite at %d", requestName(st.request), st.offset, offset)
	case st.size > 0 || len(b) > statusSize+8:
		return fmt.Errorf("%w: the server found pages of the write at %d damaged", storage.ErrChecksum, offset)
	}
	return nil
}
