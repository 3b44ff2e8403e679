package ftp

import (
	"encoding/binary"
	"math"
)

// A header stands before each block of extended block mode (GFD.20, 3.2): a byte
// of flags, the number of bytes that follow, and where in the file they belong.
type header struct {
	flags         byte
	count, offset int64 // with endOfFile, offset is the number of connections that send endOfData
}

const (
	headerSize = 17

	endOfFile  = 0x40
	suspect    = 0x20 // the sender has its doubts
	restart    = 0x10 // the bytes are a restart marker
	endOfData  = 0x08 // nothing more comes on this connection
	willClose  = 0x04
	maxStreams = 1 << 10
)

// parseHeader reads a header and refuses what cannot be meant.
func parseHeader(b *[headerSize]byte) (header, error) {
	count, offset := binary.BigEndian.Uint64(b[1:9]), binary.BigEndian.Uint64(b[9:17])
	h := header{flags: b[0], count: int64(count), offset: int64(offset)} //nolint:gosec // checked below
	switch {
	case count > math.MaxInt64 || offset > math.MaxInt64 || offset+count > math.MaxInt64:
		return h, protocolError("a block of %d bytes at %d", count, offset)
	case h.flags&endOfFile != 0 && (count > 0 || offset == 0 || offset > maxStreams):
		return h, protocolError("an end of file of %d bytes for %d connections", count, offset)
	case h.flags&(restart|suspect) != 0:
		return h, protocolError("a block with flags %#x", h.flags)
	}
	return h, nil
}
