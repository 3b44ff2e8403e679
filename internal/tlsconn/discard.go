package tlsconn

import (
	"errors"
	"io"
	"slices"
)

// minDropped is the least payload of a record that is dropped. Smaller records cost little, and in
// TLS 1.3 they may contain something else than payload.
const minDropped = 4 << 10

// Discard takes the next n bytes of payload without keeping them, and returns the number of bytes
// that came; fewer than n only with an error (io.ErrUnexpectedEOF if the server has closed). moved
// counts decrypted payload, dropped the payload of records that were not decrypted.
//
// The last record is always decrypted: its checksum proves that no record was lost, added or
// repeated since the last decrypted record. In TLS 1.2 all other records of 4 KiB or more are
// dropped. In TLS 1.3 the length and the kind of a record's content are encrypted, so a record is
// dropped only if it has the length of one of the last four decrypted records with nothing but
// payload, and no record is dropped after a padded record. If padding was among dropped records,
// payload is left over; see Surplus.
//
// If a service's records have all had one length, several records are dropped at once; see Pool.
func (c *Conn) Discard(n int64, moved, dropped func(int)) (int64, error) {
	c.left, c.gone, c.size, c.checked = n, dropped, 0, 0
	err := c.discard(moved)
	done := n - c.left
	c.left, c.gone, c.passed = 0, nil, 0
	if c.checked > 0 {
		c.pool.checked.Add(c.checked)
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return done, err
}

func (c *Conn) discard(moved func(int)) error {
	if c.through != nil {
		return c.discardThrough(moved)
	}
	for c.left > 0 {
		if n := int(min(int64(len(c.plain)), c.left)); n > 0 {
			c.skip(n)
			c.left -= int64(n)
			moved(n)
			continue
		}
		if err := c.dropRecords(); err != nil {
			return err
		}
		if _, err := c.record(nil, 0); err != nil {
			return err
		}
		c.count() // the record is authentic, so the dropped records before it were payload
		if c.size > 0 && int64(len(c.plain)) < c.left {
			c.pool.irregular.Store(true)
		}
	}
	return nil
}

func (c *Conn) discardThrough(moved func(int)) error {
	buf := c.pool.get()
	defer c.pool.put(buf)
	for c.left > 0 {
		n, err := c.through.Read((*buf)[:min(int64(len(*buf)), c.left)])
		c.left -= int64(n)
		moved(n)
		if err != nil && c.left > 0 {
			return err
		}
	}
	return nil
}

// dropRecords drops records as long as their content is irrelevant. The head of the next record is
// then in buf.
func (c *Conn) dropRecords() error {
	if c.err != nil || c.left <= minDropped || c.is13() && c.units[c.recent] == 0 {
		return c.err
	}
	f := &c.drop
	f.Have, f.Drop = 0, 0
	for c.pos < c.end {
		if n := copy(f.Head[:], c.buf[c.pos:c.end]); n < headSize {
			c.pos, f.Have = c.end, n
			break
		}
		drop, ok := c.nextFrame()
		if !ok {
			return nil
		}
		c.pos += headSize
		here := min(int(drop), c.end-c.pos)
		c.pos += here
		f.Drop = drop - int64(here)
	}
	c.release()
	if err := c.conn.DiscardFrames(f); err != nil {
		c.err = err // the rest of a record is missing
		return err
	}
	c.hold()
	c.end = copy(c.buf, f.Head[:])
	return nil
}

// nextFrame decides about the record whose head was read. The dropped bytes before it have come
// completely.
func (c *Conn) nextFrame() (int64, bool) {
	h := &c.drop.Head
	size := int(h[3])<<8 | int(h[4])
	payload := size - c.overhead()
	if h[0] != typeData || h[1] != 3 || h[2] != 3 || payload > maxPlain {
		if !c.batch { // else the records in between may differ from the foreseen records
			c.count()
		}
		return 0, false
	}
	c.count()
	if payload < minDropped || int64(payload) >= c.left || c.is13() && !slices.Contains(c.units[:], size) || len(c.messages) > 0 {
		return 0, false
	}
	if c.size != size && c.size > 0 {
		c.pool.irregular.Store(true)
	}
	n := c.foresee(size, payload)
	c.size, c.passed, c.batch, c.useless = size, n*payload, n > 1, 0
	c.foreseen = c.foreseen || n > 1
	c.in.seq += uint64(n)
	return int64(n*size + (n-1)*headSize), true
}

// count counts the payload of the dropped records.
func (c *Conn) count() {
	if c.passed > 0 {
		c.left -= int64(c.passed)
		c.gone(c.passed)
		c.passed = 0
		c.checked++
	}
}

const (
	// batch is the number of records that are dropped at once.
	batch = 8
	// regular is the number of consecutive records of equal length after which further records of a
	// service are foreseen.
	regular = 4096
	// maxForeseen is the last record of a connection that is foreseen. Servers that change their keys do so later: Java
	// after 2^37 bytes, GnuTLS after 2^24 records.
	maxForeseen = 1 << 22
)

// foresee returns the number of records to drop at once: the record whose head was read, and the
// similar records that are expected after it. One more at least is left for the next check.
func (c *Conn) foresee(size, payload int) int {
	if size != c.size || c.in.seq > maxForeseen || c.pool.checked.Load() < regular || c.pool.irregular.Load() {
		return 1
	}
	return int(max(1, min(batch, (c.left-1)/int64(payload))))
}

// rest returns the number of payload bytes that are still to come after the record that is being
// dropped.
func (c *Conn) rest() int64 { return c.left - int64(c.passed) }

// learn notes the length of a decrypted record and of its payload.
func (c *Conn) learn(size, payload int) {
	switch {
	case size != payload+c.overhead():
		c.padded, c.units = true, [4]int{}
	case !c.padded && payload >= minDropped && !slices.Contains(c.units[:], size):
		c.recent = (c.recent + 1) % len(c.units)
		c.units[c.recent] = size
	}
}

// Surplus reports whether there is payload beyond the requested payload: the other side has sent
// more than was discarded. It does not wait for any.
func (c *Conn) Surplus() (bool, error) {
	if c.through != nil {
		return false, nil
	}
	for len(c.plain) == 0 {
		if c.err != nil || c.pos == c.end && c.conn.Quiet() {
			return false, nil
		}
		if _, err := c.record(nil, maxRecord); err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
	}
	return true, nil
}

// Buffered reports whether something was received that is not read yet.
func (c *Conn) Buffered() bool { return c.pos < c.end || len(c.plain) > 0 }
