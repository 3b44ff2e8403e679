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

// writeFile creates a file of made content. A file that is there already is not touched, unless this client's last
// write left it unfinished. A file of other content (WriteFrom) replaces what is there.
func (x *call) writeFile() error {
	if x.Op.Size < 0 || x.Op.Chunk < 0 || x.Op.Ahead < 0 {
		return fmt.Errorf("a file of %d bytes, chunks of %d, %d in flight: %w", x.Op.Size, x.Op.Chunk, x.Op.Ahead, fs.ErrInvalid)
	}
	options := uint16(openUpdate | openMakePath | openNew)
	if x.c.partial == x.Op.Path || x.from != nil {
		options = openUpdate | openMakePath | openDelete
	}
	f := &x.file
	x.extra = "oss.asize=" + strconv.FormatInt(x.Op.Size, 10) // servers choose where they have room
	err := x.open(f, options, modeFile)
	if x.extra = ""; err != nil {
		return err
	}
	x.c.partial = x.Op.Path
	err = x.writeParts(f)
	if err == nil && x.Op.Sync {
		x.req = request{code: rqSync, args: x.req.args[:0], params: fileAt(f.handle, 0, 0)}
		err = x.followUp(f.link)
	}
	if err == nil {
		err = x.close(f)
	} else {
		x.drop(f.link)
	}
	if err == nil {
		x.c.partial = ""
		x.Result.Size = x.Op.Size
	}
	return err
}

func (x *call) writeParts(f *file) error {
	w := &x.window
	w.open(x.Op)
	for next := int64(0); next < x.Op.Size || w.busy > 0; {
		if next < x.Op.Size && w.busy < len(w.slots) {
			n := min(w.chunk, x.Op.Size-next)
			if err := x.writePart(f, w.take(next, n), n); err != nil {
				return err
			}
			next += n
			continue
		}
		if err := x.receiveWritten(f); err != nil {
			return err
		}
	}
	return nil
}

// writePart sends one request and its n bytes.
func (x *call) writePart(f *file, i int, n int64) error {
	offset := x.window.slots[i].offset
	stream := f.link.first + 1 + uint16(i)
	params := fileAt(f.handle, offset, 0)
	if x.from == nil {
		x.Cursor.Start(x.Op.Seed, offset, n)
	}
	if x.Op.Plain || !f.pages() {
		x.doing = rqWrite
		x.out = appendRequest(x.out[:0], stream, rqWrite, &params, int(n))
		if err := x.sendHead(f.link, x.out); err != nil {
			return err
		}
		if x.from != nil {
			return x.writeGiven(f, n)
		}
		return x.writeBytes(f)
	}
	x.doing = rqPgwrite
	x.out = appendRequest(x.out[:0], stream, rqPgwrite, &params, int(pageRaw(n, firstPage(offset))))
	if err := x.sendHead(f.link, x.out); err != nil {
		return err
	}
	return x.writePages(f, offset, n)
}

// writeBytes sends what the cursor has.
func (x *call) writeBytes(f *file) error {
	for piece := x.Cursor.Next(); piece != nil; piece = x.Cursor.Next() {
		if len(piece) <= content.HeadSize && x.Cursor.Left() > 0 { // a head waits for what follows it
			if _, err := f.link.wire.WriteMore(piece); err != nil {
				return err
			}
			x.reportMoved(len(piece))
			continue
		}
		if err := x.sendBulk(f, piece, x.Moved); err != nil {
			return err
		}
	}
	return nil
}

// writeGiven sends the next n bytes that are given.
func (x *call) writeGiven(f *file, n int64) error {
	held := x.c.s.large.Get().(*[]byte)
	defer x.c.s.large.Put(held)
	for n > 0 {
		piece := (*held)[:min(n, int64(len(*held)))]
		if _, err := io.ReadFull(x.from, piece); err != nil {
			return err
		}
		if err := x.sendBulk(f, piece, x.Moved); err != nil {
			return err
		}
		n -= int64(len(piece))
	}
	return nil
}

// writePages sends n bytes from an offset on in pages, each behind its CRC32C.
func (x *call) writePages(f *file, offset, n int64) error {
	held := x.c.s.large.Get().(*[]byte)
	defer x.c.s.large.Put(held)
	buf := *held
	for n > 0 {
		end, payload := 0, int64(0)
		for n > 0 && end+pageUnit <= len(buf) {
			size := min(firstPage(offset), n)
			page := buf[end+4 : end+4+int(size)]
			if x.from == nil {
				content.Fill(page, x.Op.Seed, offset)
			} else if _, err := io.ReadFull(x.from, page); err != nil {
				return err
			}
			binary.BigEndian.PutUint32(buf[end:], crc32.Checksum(page, castagnoli()))
			end += 4 + int(size)
			payload += size
			offset += size
			n -= size
		}
		if err := x.sendBulk(f, buf[:end], nil); err != nil {
			return err
		}
		x.reportMoved(int(payload))
	}
	return nil
}

// sendBulk sends a piece of a request, and reads the answers to earlier ones that come meanwhile.
func (x *call) sendBulk(f *file, piece []byte, moved func(int)) error {
	for {
		n, err := f.link.wire.Send(piece, moved)
		piece = piece[n:]
		if !errors.Is(err, tcp.ErrAnswered) {
			return err
		}
		if err := x.receiveWritten(f); err != nil {
			return err
		}
	}
}

// receiveWritten reads the answer to one of the writes under way.
func (x *call) receiveWritten(f *file) error {
	l := f.link
	h, err := x.answered(l)
	if err != nil {
		return err
	}
	x.data = x.data[:0]
	if err := x.gather(l, h.size); err != nil {
		return err
	}
	switch h.status {
	case stOK:
	case stStatus:
		if err := written(h, x.data, x.slot.offset); err != nil {
			return err
		}
	case stError:
		return unsigned(l, parseError(x.data))
	case stWait: // the data would have to be sent again; no server is known to ask for that
		return fmt.Errorf("%w: it asks to wait in the middle of a write", storage.ErrBusy)
	default:
		return wireclient.ProtocolError("%s in answer to kXR_write or kXR_pgwrite", statusName(h.status))
	}
	x.window.free(x.slot)
	return nil
}

// written checks the answer to a page write at an offset.
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
