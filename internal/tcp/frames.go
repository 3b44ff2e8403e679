package tcp

// Frames describes the frames that DiscardFrames takes from a connection. They begin with a head of
// five bytes, as the records of TLS do.
type Frames struct {
	Head [5]byte // of the frame that comes next
	Have int     // number of bytes of Head that have been read
	Drop int64   // bytes that are dropped before Head is read
	// Next is called with each complete Head. It returns the number of bytes to drop until the next
	// head, or false to end.
	Next func() (drop int64, ok bool)
	// Rest returns a lower bound of the number of bytes that follow after Drop. The connection
	// waits for no more.
	Rest func() int64
}

// atLeast returns a lower bound of the number of bytes that are still to come.
func (f *Frames) atLeast() int64 { return max(f.Drop+f.Rest(), 1) }

// headRead decides about the frame whose head is complete. It returns false if that frame is left to the caller.
func (f *Frames) headRead() bool {
	drop, ok := f.Next()
	if ok {
		f.Drop, f.Have = drop, 0
	}
	return ok
}

// DiscardFrames takes frames from the connection without bringing them into memory, if the system
// supports that. It reads only their heads, and returns as soon as f.Next has returned false; the
// frame behind that head is still to be read then. If the other side has closed, the error is
// io.ErrUnexpectedEOF.
func (c *Conn) DiscardFrames(f *Frames) error {
	c.frames = f
	c.watch.discarding.Add(1)
	err := c.discardFrames()
	c.watch.discarding.Add(-1)
	c.frames = nil
	return err
}
