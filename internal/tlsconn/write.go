package tlsconn

import "net"

// Write encrypts and sends all of p.
func (c *Conn) Write(p []byte) (int, error) { return c.write(p, false) }

// WriteMore writes like Write, and announces to the system that more follows at once.
func (c *Conn) WriteMore(p []byte) (int, error) { return c.write(p, true) }

func (c *Conn) write(p []byte, more bool) (int, error) {
	if c.through != nil {
		return c.through.Write(p)
	}
	buf := c.pool.get()
	defer c.pool.put(buf)
	done := 0
	for done < len(p) {
		out, taken := (*buf)[:0], 0
		for range bufferRecords {
			piece := p[done+taken:]
			if len(piece) == 0 {
				break
			}
			piece = piece[:min(len(piece), maxPlain)]
			out = c.seal(out, typeData, piece)
			taken += len(piece)
		}
		var err error
		if more {
			_, err = c.conn.WriteMore(out)
		} else {
			_, err = c.conn.Write(out)
		}
		if err != nil {
			return done, err
		}
		done += taken
	}
	return done, nil
}

// send sends one record.
func (c *Conn) send(typ byte, content []byte) error {
	buf := c.pool.get()
	defer c.pool.put(buf)
	_, err := c.conn.Write(c.seal((*buf)[:0], typ, content))
	return err
}

func (c *Conn) alert(level, code byte) error { return c.send(typeAlert, []byte{level, code}) }

// CloseWrite sends close_notify.
func (c *Conn) CloseWrite() error {
	if c.through != nil {
		return c.through.CloseWrite()
	}
	return c.alert(1, alertCloseNotify)
}

// Close closes the connection below, without a close_notify.
func (c *Conn) Close() error {
	c.plain, c.pos, c.end = nil, 0, 0
	c.release()
	c.err = net.ErrClosed
	return c.conn.Close()
}
