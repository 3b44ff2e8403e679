package ftp

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"time"

	"weir/internal/tcp"
	"weir/storage"
)

// connecting is how long a server may need to make the first data connection.
const connecting = 30 * time.Second

// streams are the data connections of a session in extended block mode. The
// server makes them, to a port of the client's, and keeps them from transfer to
// transfer.
type streams struct {
	want     int // how many were asked for
	listener *tcp.Listener
	from     netip.Addr     // the server's data interface
	done     sync.WaitGroup // of the goroutines that receive

	mu    sync.Mutex // guards what follows, and the call's progress
	all   []*stream
	x     *call
	limit int64 // bytes that may come; negative: any number
	moved int64
	ends  int64 // connections that have ended the transfer
	of    int64 // how many will; 0: not known yet
	err   error
}

// A stream is one of them.
type stream struct {
	set     *streams
	conn    *tcp.Conn
	counted int64
	closing bool // its server closes it after the transfer
	work    func()
	discard func(int)
	header  [headerSize]byte
}

// parallel tells whether the operation's transfers shall have several data
// connections, and prepares the session for that.
func (x *call) parallel() (bool, error) {
	s := x.c.s
	if x.op.Ahead < 2 || x.op.Sum != "" || s.linked || s.noBlocks.Load() {
		return false, nil
	}
	if _, err := x.join(); err != nil {
		return false, err
	}
	n := min(x.op.Ahead, maxStreams)
	if b := x.c.blocks; b != nil {
		if b.want == n && b.quiet() {
			return true, nil
		}
		x.dropStreams()
	}
	return x.spread(n)
}

// spread asks for n data connections.
//
//go:noinline
func (x *call) spread(n int) (bool, error) {
	c := x.c
	if !c.extended {
		if err := x.say("MODE ", "E"); err != nil {
			return false, err
		}
		if x.reply.code >= 300 {
			err := x.refusal()
			if c.conn == nil { // it has closed the session
				return false, while("MODE E", err)
			}
			c.s.noBlocks.Store(true)
			return false, nil
		}
		c.extended = true
	}
	count := strconv.Itoa(n)
	if err := x.say("OPTS RETR ", "Parallelism="+count+","+count+","+count+";"); err != nil {
		return false, err
	}
	if x.reply.code >= 300 {
		return false, while("parallel streams", x.refusal())
	}
	local, from, err := x.ways()
	if err != nil {
		return false, err
	}
	l, err := c.s.dialer.Listen(local)
	if err != nil {
		return false, while("listen for data connections", err)
	}
	c.blocks = &streams{want: n, listener: l, from: from}
	if err := x.say(portCommand(netip.AddrPortFrom(local, l.Port())), ""); err != nil {
		return false, err
	}
	if x.reply.code >= 300 {
		x.dropStreams()
		return false, while("active mode", x.refusal())
	}
	return true, nil
}

// ways finds out by which address the server's data interface reaches this machine,
// which need not be that of the control connection: PASV tells which interface it
// is, and the system which of ours faces it.
func (x *call) ways() (local, from netip.Addr, err error) {
	local, from = x.c.conn.Local().Addr().Unmap(), x.c.conn.Peer().Addr().Unmap()
	if err := x.say(x.passiveVerb(), ""); err != nil {
		return local, from, err
	}
	if x.reply.code >= 300 { // some have no passive mode here
		return local, from, nil
	}
	to, err := x.whereTo()
	if err != nil {
		return local, from, err
	}
	if facing := facing(to); facing.IsValid() {
		local = facing
	}
	return local, to.Addr(), nil
}

// facing returns the address of this machine from which it reaches another. No
// packet is sent: a UDP socket only asks for the way.
func facing(to netip.AddrPort) netip.Addr {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		return netip.Addr{}
	}
	defer conn.Close() //nolint:errcheck // nothing was sent
	at, ok := conn.LocalAddr().(*net.UDPAddr)
	if !ok {
		return netip.Addr{}
	}
	return at.AddrPort().Addr().Unmap()
}

// portCommand names an address to a server (RFC 959, 4.1.2; RFC 2428, 2).
func portCommand(at netip.AddrPort) string {
	if a := at.Addr(); a.Is4() {
		b := a.As4()
		return fmt.Sprintf("PORT %d,%d,%d,%d,%d,%d", b[0], b[1], b[2], b[3], at.Port()>>8, at.Port()&255)
	}
	return fmt.Sprintf("EPRT |2|%s|%d|", at.Addr().WithZone(""), at.Port())
}

// plainMode goes back to one data connection for each transfer.
//
//go:noinline
func (x *call) plainMode() error {
	if _, err := x.join(); err != nil || !x.c.extended { // a new session is not extended
		return err
	}
	x.dropStreams()
	if err := x.say("MODE ", "S"); err != nil {
		return err
	}
	if x.reply.code >= 300 {
		return while("MODE S", x.refusal())
	}
	x.c.extended = false
	return nil
}

// dropStreams closes the data connections.
func (x *call) dropStreams() {
	if b := x.c.blocks; b != nil {
		x.res.Wire += b.count()
		b.close()
		x.c.blocks = nil
	}
}

func (b *streams) close() {
	for _, s := range b.all {
		_ = s.conn.Close() // whatever it says, the connection is gone
	}
	_ = b.listener.Close() // nobody waits for more
}

// count returns the bytes since the last count.
func (b *streams) count() (n int64) {
	for _, s := range b.all {
		total := s.conn.In() + s.conn.Out()
		n += total - s.counted
		s.counted = total
	}
	return n
}

func (b *streams) quiet() bool {
	for _, s := range b.all {
		if !s.conn.Quiet() {
			return false
		}
	}
	return true
}

// takeBlocks is take for a transfer over streams.
func (x *call) takeBlocks(limit int64) (int64, error) {
	if err := x.begun(); err != nil {
		return 0, err
	}
	b := x.c.blocks
	n, err := b.receive(x, limit)
	x.res.Wire += b.count()
	if err != nil {
		if !errors.Is(err, storage.ErrProtocol) && !errors.Is(err, storage.ErrScratch) {
			err = x.whyBroken(err)
		}
		x.drop()
		return n, err
	}
	for _, s := range b.all {
		if s.closing {
			x.dropStreams()
			break
		}
	}
	return n, x.ended()
}

// receive waits until all streams have ended the transfer, and for those that are
// still to be made.
func (b *streams) receive(x *call, limit int64) (int64, error) {
	b.x, b.limit, b.moved, b.ends, b.of, b.err = x, limit, 0, 0, 0, nil
	b.listener.Rest()
	for _, s := range b.all {
		if err := s.conn.Begin(x.ctx, x.deadline); err != nil {
			b.fail(err)
		}
		b.done.Add(1)
		go s.work()
	}
	x.serve(b.from)
	for len(b.all) < b.want && !b.over() {
		b.accept()
	}
	b.done.Wait()
	b.x = nil
	if b.err == nil && (b.of == 0 || b.ends < b.of) {
		b.err = fmt.Errorf("%w: a data connection ended early", storage.ErrShort)
	}
	return b.moved, b.err
}

// accept takes one more connection.
func (b *streams) accept() {
	x := b.x
	soon := time.Now().Add(connecting)
	if !x.deadline.IsZero() && x.deadline.Before(soon) {
		soon = x.deadline
	}
	conn, err := b.listener.Accept(x.ctx, soon)
	switch {
	case errors.Is(err, tcp.ErrWoken):
		return
	case errors.Is(err, os.ErrDeadlineExceeded) && len(b.all) > 0 && (x.deadline.IsZero() || time.Now().Before(x.deadline)):
		return // fewer than were asked for are fine, as long as they bring the file
	case err != nil:
		b.fail(fmt.Errorf("the server makes no data connection to this machine, which in_flight above 1 needs: %w", err))
		return
	}
	_ = conn.SetDeadline(x.deadline) // never fails
	s := &stream{set: b, conn: conn}
	s.work, s.discard = s.run, s.tell
	b.mu.Lock()
	b.all = append(b.all, s)
	broken := b.err != nil
	b.mu.Unlock()
	if broken {
		conn.Break()
	}
	b.done.Add(1)
	go s.work()
}

// over tells whether the transfer has ended, well or not.
func (b *streams) over() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err != nil || b.of > 0 && b.ends >= b.of
}

// fail ends the transfer for all.
func (b *streams) fail(err error) {
	b.mu.Lock()
	first := b.err == nil
	if first {
		b.err = err
		for _, s := range b.all {
			s.conn.Break()
		}
	}
	b.mu.Unlock()
	b.listener.Wake()
}

// run is a stream's part of one transfer.
func (s *stream) run() {
	defer s.set.done.Done()
	if err := s.receive(); err != nil {
		s.set.fail(err)
	}
}

func (s *stream) receive() error {
	for {
		for got := 0; got < headerSize; {
			n, err := s.conn.Read(s.header[got:])
			if errors.Is(err, io.EOF) {
				return fmt.Errorf("%w: a data connection ended early", storage.ErrShort)
			}
			if err != nil {
				return err
			}
			got += n
		}
		h, err := parseHeader(&s.header)
		if err != nil {
			return err
		}
		if h.flags&endOfFile != 0 {
			s.set.announce(h.offset)
		} else if err := s.block(h); err != nil {
			return err
		}
		if h.flags&willClose != 0 {
			s.closing = true
		}
		if h.flags&endOfData != 0 {
			s.set.end()
			return nil
		}
	}
}

// announce notes how many streams will have ended at the end of the file.
func (b *streams) announce(of int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.of = of
}

// end notes that a stream has ended. When all have, nobody waits for more.
func (b *streams) end() {
	b.mu.Lock()
	b.ends++
	b.mu.Unlock()
	if b.over() {
		b.listener.Wake()
	}
}

// block takes the bytes of one block.
func (s *stream) block(h header) error {
	if h.count == 0 {
		return nil
	}
	b := s.set
	b.mu.Lock()
	b.moved += h.count
	over := b.limit >= 0 && b.moved > b.limit
	dest := b.x.dest
	b.mu.Unlock()
	if over {
		return protocolError("more than the %d bytes expected", b.limit)
	}
	if dest == nil {
		_, err := s.conn.Discard(h.count, s.discard)
		return err
	}
	return s.copyTo(dest, h)
}

// copyTo brings a block to its place in a file of this machine.
func (s *stream) copyTo(dest *storage.Dest, h header) error {
	x := s.set.x
	buf := x.c.s.buffers.Get().(*[]byte) //nolint:forcetypeassert // the pool has nothing else
	defer x.c.s.buffers.Put(buf)
	for left := h.count; left > 0; {
		n, err := s.conn.Read((*buf)[:min(left, int64(len(*buf)))])
		if err != nil {
			return err
		}
		if _, err := dest.WriteAt((*buf)[:n], h.offset+h.count-left); err != nil {
			return err
		}
		left -= int64(n)
		s.set.mu.Lock()
		x.moved(n)
		s.set.mu.Unlock()
	}
	return nil
}

// tell counts bytes that the kernel has dropped.
func (s *stream) tell(n int) {
	s.set.mu.Lock()
	defer s.set.mu.Unlock()
	s.set.x.discard(n)
}
