package tlsconn

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"

	"weir/internal/tcp"
)

const (
	// maxUseless is the number of records and messages without payload that a server may send in a
	// row, as in crypto/tls.
	maxUseless = 16
	maxMessage = 64 << 10
)

// Handshake messages that follow the handshake (RFC 8446, 4).
const (
	messageHelloRequest = 0
	messageTicket       = 4
	messageKeyUpdate    = 24
)

func (c *Conn) is13() bool { return c.version == tls.VersionTLS13 }

// Read decrypts payload into p. It returns io.EOF after the server's close_notify, and if the
// connection ends between two records; io.ErrUnexpectedEOF if it ends within one.
func (c *Conn) Read(p []byte) (int, error) {
	if c.through != nil {
		return c.through.Read(p)
	}
	if len(p) == 0 {
		return 0, nil
	}
	for len(c.plain) == 0 {
		if n, err := c.record(p, bufferSize); n > 0 || err != nil {
			return n, err
		}
	}
	return c.take(p), nil
}

// ReadLate reads like Read, into a buffer that l lends as soon as bytes have arrived.
func (c *Conn) ReadLate(l tcp.Lender) (int, error) {
	if c.through != nil {
		return c.through.Read(l.Lend())
	}
	for len(c.plain) == 0 {
		if _, err := c.record(nil, maxRecord); err != nil { // the payload after it may be discarded later
			return 0, err
		}
	}
	return c.take(l.Lend()), nil
}

// take moves payload to p.
func (c *Conn) take(p []byte) int {
	n := copy(p, c.plain)
	c.skip(n)
	return n
}

// skip removes n bytes of payload.
func (c *Conn) skip(n int) {
	c.plain = c.plain[n:]
	c.release()
}

// record reads one record. It leaves payload in c.plain, or in p if that has room, and returns the number of bytes there.
func (c *Conn) record(p []byte, ahead int) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	c.ahead = ahead
	if err := c.fill(headSize); err != nil {
		return 0, err
	}
	size, err := c.checkHead(c.buf[c.pos:c.end])
	if err != nil {
		return 0, c.fail(err)
	}
	if err := c.fill(headSize + size); err != nil {
		return 0, err
	}
	record := c.buf[c.pos : c.pos+headSize+size]
	direct := len(p) >= size
	if !direct {
		p = nil
	}
	var sealed []byte
	if c.tickets != nil {
		sealed = append(sealed, record...) // open may decrypt it in place
	}
	typ, data, err := c.open(p, record)
	if err != nil {
		return 0, c.fail(err)
	}
	if c.tickets != nil && (typ == typeData && len(data) > 0 || typ == typeHandshake && !c.tickets.read(sealed)) {
		c.tickets = nil
	}
	c.pos += len(record)
	if typ != typeData || len(data) == 0 {
		err = c.control(typ, data)
		c.release()
		return 0, err
	}
	c.useless = 0
	if len(c.messages) > 0 {
		return 0, c.fail(wrong(alertUnexpectedMessage, "payload within a handshake message"))
	}
	c.learn(size, len(data))
	if direct {
		c.release()
		return len(data), nil
	}
	c.plain = data
	return 0, nil
}

// fill waits until buf has n bytes of the next record.
func (c *Conn) fill(n int) error {
	if c.pos > 0 && len(c.buf)-c.pos < n {
		c.end = copy(c.buf, c.buf[c.pos:c.end])
		c.pos = 0
	}
	c.need = n
	for c.end-c.pos < n {
		got, err := c.conn.ReadLate(c)
		c.end += got
		if errors.Is(err, io.EOF) && c.end > c.pos {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Lend implements tcp.Lender for the connection below.
func (c *Conn) Lend() []byte {
	c.hold()
	return c.buf[c.end:min(len(c.buf), c.pos+max(c.ahead, c.need))]
}

// Return implements tcp.Lender.
func (c *Conn) Return() { c.release() }

func (c *Conn) hold() {
	if c.held == nil {
		c.held = c.pool.get()
		c.buf = *c.held
		c.pos, c.end = 0, 0
	}
}

// release returns the buffer if nothing is in it.
func (c *Conn) release() {
	if c.held != nil && c.pos == c.end && len(c.plain) == 0 {
		c.pool.put(c.held)
		c.held, c.buf, c.plain = nil, nil, nil
		c.pos, c.end = 0, 0
	}
}

// fail ends the connection's reading with err, of which it notifies the server if the server is at fault.
func (c *Conn) fail(err error) error {
	c.plain = nil
	if fault := (*recordError)(nil); errors.As(err, &fault) {
		_ = c.alert(2, fault.alert) // the first error is returned
		if c.foreseen {
			c.pool.irregular.Store(true)
			err = fmt.Errorf("%w (or the records before it were not as long as those of the service so far; from now on each is checked)", err)
		}
	}
	c.err = err
	return err
}

// control handles a record without payload.
func (c *Conn) control(typ byte, data []byte) error {
	if c.is13() && typ != typeHandshake && len(c.messages) > 0 {
		return c.fail(wrong(alertUnexpectedMessage, "a record of type %d within a handshake message", typ))
	}
	switch typ {
	case typeData:
		return c.idle()
	case typeAlert:
		return c.alerted(data)
	case typeChangeCipherSpec:
		if len(data) != 1 || data[0] != 1 {
			return c.fail(wrong(alertDecodeError, "a malformed change_cipher_spec"))
		}
		if c.is13() {
			return c.idle()
		}
	case typeHandshake:
		if len(data) > 0 {
			return c.handshake(data)
		}
	}
	return c.fail(wrong(alertUnexpectedMessage, "an unexpected record of type %d and %d bytes", typ, len(data)))
}

// idle counts a record or message that brings no payload and does not end the connection.
func (c *Conn) idle() error {
	if c.useless++; c.useless > maxUseless {
		return c.fail(wrong(alertUnexpectedMessage, "more than %d records without payload", maxUseless))
	}
	return nil
}

// alerted handles an alert. It returns the same errors as crypto/tls.
func (c *Conn) alerted(data []byte) error {
	switch {
	case len(data) != 2:
		return c.fail(wrong(alertUnexpectedMessage, "an alert of %d bytes", len(data)))
	case data[1] == alertCloseNotify:
		return c.fail(io.EOF)
	case c.is13() && data[1] == alertUserCanceled, !c.is13() && data[0] == 1: // warnings
		return c.idle()
	case !c.is13() && data[0] != 2:
		return c.fail(wrong(alertUnexpectedMessage, "an alert of level %d", data[0]))
	}
	return c.fail(&net.OpError{Op: "remote error", Err: tls.AlertError(data[1])})
}

// handshake handles the messages that servers send after the handshake. Tickets are for crypto/tls,
// see ticketReader.
func (c *Conn) handshake(data []byte) error {
	c.messages = append(c.messages, data...)
	for len(c.messages) >= 4 {
		m := c.messages
		size := int(m[1])<<16 | int(m[2])<<8 | int(m[3])
		if size > maxMessage {
			return c.fail(wrong(alertInternalError, "a handshake message of %d bytes", size))
		}
		if !c.is13() {
			return c.fail(c.renegotiation(m[0], size))
		}
		if len(m) < 4+size {
			return nil
		}
		c.messages = m[4+size:]
		if err := c.idle(); err != nil {
			return err
		}
		switch {
		case m[0] == messageTicket:
		case m[0] == messageKeyUpdate && size == 1 && m[4] <= 1 && len(c.messages) == 0:
			if err := c.keyUpdate(m[4] == 1); err != nil {
				return c.fail(err)
			}
		default:
			return c.fail(wrong(alertUnexpectedMessage, "an unexpected handshake message of type %d and %d bytes", m[0], size))
		}
	}
	if len(c.messages) == 0 {
		c.messages = nil
	}
	return nil
}

// renegotiation returns the error of a handshake message after the handshake of TLS 1.2.
func (c *Conn) renegotiation(typ byte, size int) error {
	if typ == messageHelloRequest && size == 0 {
		return wrong(alertNoRenegotiation, "the server asks for a renegotiation, which is not supported: configure it to ask for "+
			"client certificates in the first handshake")
	}
	return wrong(alertUnexpectedMessage, "an unexpected handshake message of type %d and %d bytes", typ, size)
}

// keyUpdate replaces the server's keys, and this side's if the server requests that.
func (c *Conn) keyUpdate(both bool) error {
	if both {
		if err := c.send(typeHandshake, []byte{messageKeyUpdate, 0, 0, 1, 0}); err != nil {
			return err
		}
		if err := c.out.update(); err != nil {
			return err
		}
	}
	return c.in.update()
}
