package ftp

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"weir/internal/tcp"
)

// connecting is the time within which a server must make the first data connection.
const connecting = 30 * time.Second

// streams are the data connections of a session in extended block mode. The server connects to a
// port of the client and keeps the connections from transfer to transfer.
type streams struct {
	want     int // number of connections requested
	listener *tcp.Listener
	from     netip.Addr     // the server's data interface
	done     sync.WaitGroup // of the goroutines that receive

	mu       sync.Mutex // guards the following fields, and the call's progress
	all      []*stream
	transfer *transfer // the current transfer
	limit    int64     // maximum number of bytes; negative: no limit
	moved    int64
	ends     int64 // connections that have ended the transfer
	of       int64 // number of connections that will end it; 0: not known yet
	err      error
}

// A stream is one of these connections.
type stream struct {
	set     *streams
	conn    *tcp.Conn
	counted int64
	closing bool // its server closes it after the transfer
	work    func()
	discard func(int)
	header  [headerSize]byte
}

// parallel reports whether the operation's transfers use several data connections, and prepares the
// session for that.
func (t *transfer) parallel() (bool, error) {
	s := t.control.c.s
	if t.call.Op.Ahead < 2 || t.call.Op.Sum != "" || s.linked || s.noBlocks.Load() || s.securesData() {
		return false, nil
	}
	if _, err := t.control.join(); err != nil {
		return false, err
	}
	n := min(t.call.Op.Ahead, maxStreams)
	if b := t.control.c.blocks; b != nil {
		if b.want == n && b.quiet() {
			return true, nil
		}
		t.control.dropStreams()
	}
	return t.spread(n)
}

// spread requests n data connections.
//
//go:noinline
func (t *transfer) spread(n int) (bool, error) {
	c := t.control.c
	if !c.extended {
		if err := t.control.say("MODE ", "E"); err != nil {
			return false, err
		}
		if t.control.reply.code >= 300 {
			err := t.control.refusal()
			if c.conn == nil { // the server has closed the session
				return false, while("MODE E", err)
			}
			c.s.noBlocks.Store(true)
			return false, nil
		}
		c.extended = true
	}
	count := strconv.Itoa(n)
	if err := t.control.done(t.control.say("OPTS RETR ", "Parallelism="+count+","+count+","+count+";")); err != nil {
		return false, while("parallel streams", err)
	}
	local, from, err := t.ways()
	if err != nil {
		return false, err
	}
	l, err := c.s.dialer.Listen(local)
	if err != nil {
		return false, while("listen for data connections", err)
	}
	c.blocks = &streams{want: n, listener: l, from: from}
	if err := t.control.say(portCommand(netip.AddrPortFrom(local, l.Port())), ""); err != nil {
		return false, err
	}
	if t.control.reply.code >= 300 {
		t.control.dropStreams()
		return false, while("active mode", t.control.refusal())
	}
	return true, nil
}

// ways returns the address of this machine and the server's data interface for data connections.
// They may differ from the addresses of the control connection: PASV returns the interface's
// address, and the system returns the local address that faces it.
func (t *transfer) ways() (local, from netip.Addr, err error) {
	local, from = t.control.c.conn.Local().Addr().Unmap(), t.control.c.conn.Peer().Addr().Unmap()
	if err := t.control.say(t.control.passiveVerb(), ""); err != nil {
		return local, from, err
	}
	if t.control.reply.code >= 300 { // some servers have no passive mode here
		return local, from, nil
	}
	to, err := t.whereTo()
	if err != nil {
		return local, from, err
	}
	if facing := facing(to); facing.IsValid() {
		local = facing
	}
	return local, to.Addr(), nil
}

// facing returns the address of this machine from which it reaches another. No packet is sent: a
// UDP socket only looks up the route.
func facing(to netip.AddrPort) netip.Addr {
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		return netip.Addr{}
	}
	defer conn.Close()
	at, ok := conn.LocalAddr().(*net.UDPAddr)
	if !ok {
		return netip.Addr{}
	}
	return at.AddrPort().Addr().Unmap()
}

// portCommand returns the command that sends an address to a server (RFC 959, 4.1.2; RFC 2428, 2).
func portCommand(at netip.AddrPort) string {
	if a := at.Addr(); a.Is4() {
		b := a.As4()
		return fmt.Sprintf("PORT %d,%d,%d,%d,%d,%d", b[0], b[1], b[2], b[3], at.Port()>>8, at.Port()&255)
	}
	return fmt.Sprintf("EPRT |2|%s|%d|", at.Addr().WithZone(""), at.Port())
}

// plainMode returns to one data connection for each transfer.
//
//go:noinline
func (t *transfer) plainMode() error {
	if _, err := t.control.join(); err != nil || !t.control.c.extended { // a new session is not extended
		return err
	}
	t.control.dropStreams()
	if err := t.control.done(t.control.say("MODE ", "S")); err != nil {
		return while("MODE S", err)
	}
	t.control.c.extended = false
	return nil
}

func (b *streams) close() {
	for _, s := range b.all {
		_ = s.conn.Close() // the connection is gone in any case
	}
	_ = b.listener.Close() // it is not used any more
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
	return !slices.ContainsFunc(b.all, func(s *stream) bool { return !s.conn.Quiet() })
}
