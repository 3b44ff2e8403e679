package content

// A Cursor walks over the pieces of a part of a seed's stream, so that they
// can be sent one after the other without being copied together. Its zero value has no pieces; Start gives
// it some. It allocates nothing if it is kept, for example with a connection.
type Cursor struct {
	seed   uint64
	off, n int64
	head   [HeadSize]byte
}

// Start makes c walk over the n bytes of seed's stream from off on. It panics
// if off or n is negative, or their sum beyond an int64.
func (c *Cursor) Start(seed uint64, off, n int64) {
	if off < 0 || n < 0 || off+n < 0 {
		panic("content: negative offset, length or end")
	}
	c.seed, c.off, c.n = seed, off, n
	if off < HeadSize {
		head(&c.head, seed)
	}
}

// Next returns the next piece, nil after the last. It is only to be read, and
// valid until the Cursor's next Start.
func (c *Cursor) Next() []byte {
	var p []byte
	switch {
	case c.n <= 0:
		return nil
	case c.off < HeadSize:
		p = c.head[c.off:HeadSize]
	default:
		p = pattern()[window(c.seed, c.off):]
	}
	p = p[:min(int64(len(p)), c.n)]
	c.off += int64(len(p))
	c.n -= int64(len(p))
	return p
}

// Left returns how many bytes the pieces have that Next did not return yet.
func (c *Cursor) Left() int64 { return c.n }
