package content

// A Cursor walks over the pieces of a part of a seed's stream, so that they
// can be sent one after the other. Its zero value has no pieces; Start gives
// it some. It allocates nothing if it is kept, for example with a connection.
type Cursor struct {
	seed   uint64
	off, n int64
	head   [HeadSize]byte
}

// A Piece is either bytes to be sent as they are, or a part of the memory
// file of a Pattern.
type Piece struct {
	Head   []byte // not nil: the piece; valid until the Cursor's next Start
	Offset int64  // else: where the piece begins in Pattern.File
	Length int64  // bytes in the piece, in both cases; never 0
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

// Next returns the next piece; ok is false after the last.
func (c *Cursor) Next() (p Piece, ok bool) {
	switch {
	case c.n <= 0:
		return Piece{}, false
	case c.off < HeadSize:
		h := c.head[c.off : c.off+min(HeadSize-c.off, c.n)]
		p = Piece{Head: h, Length: int64(len(h))}
	default:
		at := window(c.seed, c.off)
		p = Piece{Offset: at, Length: min(PatternSize-at, c.n)}
	}
	c.off += p.Length
	c.n -= p.Length
	return p, true
}

// Left returns how many bytes the pieces have that Next did not return yet.
func (c *Cursor) Left() int64 { return c.n }
