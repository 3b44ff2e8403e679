package tcp

import "time"

// A read that finds nothing yet is 5% of the CPU time of a small HTTP request. So a connection
// whose last lateResponses responses were not there when it looked, all within askPeriod, sends its
// requests from within the wait for the response, for one askPeriod. If most responses arrive at
// once (XRootD over loopback: 3 of 4), waiting first would cost 14% more.
//
// No response is missed: the poller discards its state of the connection before the request is
// sent. The only event that could be missed is a half-close: the other side has stopped sending,
// but still receives. Therefore the period ends with a timer of the poller, which wakes the
// connection to look.
const (
	lateResponses = 8
	askPeriod     = time.Second
)

// asking is the history of requests on a connection.
type asking struct {
	first bool  // the next read looks for a response for the first time
	late  int   // number of consecutive responses that had not arrived then
	since int64 // when the first of them was not there, on the clock
	until int64 // the period ends when a timer with this time fires
}

// posing reports whether requests are left to the next read.
func (c *Conn) posing() bool { return c.ask.until != 0 && c.ask.until == c.armed }

// Ask sends all of p, a request. The caller reads next, with ReadLate and the same lender, which gets its memory back
// as soon as p is sent; p must stay as it is until that read returns. An error of sending may be that read's.
func (c *Conn) Ask(p []byte, l Lender) error {
	if c.posing() {
		c.sock.posed = p
		return nil
	}
	if _, err := c.Write(p); err != nil {
		return err
	}
	l.Return()
	c.ask.first = true
	return nil
}

// receive makes one attempt to read, which also sends the posed request.
func (c *Conn) receive(p []byte, l Lender) (int, error) {
	if c.sock.posed != nil {
		return c.pose(p, l)
	}
	n, err := c.sock.recv(p, l)
	if c.ask.first {
		c.ask.first = false
		c.looked(c.sock.waited)
	}
	return n, err
}

// pose sends a request and waits for its response.
func (c *Conn) pose(p []byte, l Lender) (int, error) {
	size := len(c.sock.posed)
	n, err := c.sock.recv(p, l)
	rest := c.sock.posed
	c.sock.posed = nil
	c.out += int64(size - len(rest))
	if rest == nil {
		return n, err
	}
	if err != nil {
		if err = c.again(err); err != nil {
			return 0, err
		}
	}
	if _, err := c.Write(rest); err != nil { // the timer had fired, or there was no room
		return 0, err
	}
	if l != nil {
		l.Return()
	}
	return c.sock.recv(p, l)
}

// looked notes whether a response was waited for.
func (c *Conn) looked(waited bool) {
	if !waited {
		c.ask.late = 0
		return
	}
	c.ask.late++
	if c.ask.late == 1 {
		c.ask.since = c.clock.now()
	}
	if c.ask.late < lateResponses {
		return
	}
	c.ask.late = 0
	if c.clock.now()-c.ask.since < int64(askPeriod) {
		c.wakeWithin(askPeriod)
		c.ask.until = c.armed
	}
}
