package ftp

import (
	"crypto/tls"
	"errors"
	"io/fs"
	"net/netip"

	"weir/storage/wireclient"
)

// passive requests a data connection, the first command of a transfer, and opens it.
func (t *transfer) passive() error {
	if t.control.c.extended {
		if err := t.plainMode(); err != nil {
			return err
		}
	}
	if err := t.control.first(false, "", path{}); err != nil {
		return err
	}
	to, err := t.whereTo()
	if err != nil {
		return err
	}
	return t.dial(to)
}

// whereTo reads the address for the data connection from the reply.
func (t *transfer) whereTo() (netip.AddrPort, error) {
	peer := t.control.c.conn.Peer().Addr().Unmap()
	var to netip.AddrPort
	var ok bool
	switch t.control.reply.code {
	case 227:
		to, ok = parsePassive(t.control.reply.text)
	case 229:
		var port uint16
		port, ok = parseExtended(t.control.reply.text)
		to = netip.AddrPortFrom(peer, port)
	default:
		return to, while("passive mode", t.control.refusal())
	}
	if !ok {
		return to, wireclient.ProtocolError("no address in the reply %d %q", t.control.reply.code, clip(t.control.reply.line(0), 80))
	}
	local := t.control.c.s.local || peer.IsLoopback() && !t.control.c.s.linked
	if to, ok = allowed(to, peer, local); !ok {
		return to, wireclient.ProtocolError("the server wants clients to connect to %s, where no data server of its can be", to)
	}
	return to, nil
}

// parsePassive finds h1,h2,h3,h4,p1,p2 (RFC 959, 4.1.2; RFC 1123, 4.1.2.6: with or without
// parentheses).
func parsePassive(text []byte) (netip.AddrPort, bool) {
	var n [6]byte
	for i := 0; i < len(text); i++ {
		if !digit(text[i]) || i > 0 && digit(text[i-1]) {
			continue
		}
		if sixNumbers(text[i:], &n) {
			return netip.AddrPortFrom(netip.AddrFrom4([4]byte(n[:4])), uint16(n[4])<<8|uint16(n[5])), true
		}
	}
	return netip.AddrPort{}, false
}

func sixNumbers(text []byte, n *[6]byte) bool {
	i := 0
	for k := range n {
		v, digits := 0, 0
		for ; i < len(text) && digit(text[i]) && digits < 3; i++ {
			v = v*10 + int(text[i]-'0')
			digits++
		}
		if digits == 0 || v > 255 {
			return false
		}
		n[k] = byte(v)
		if k < 5 {
			if i == len(text) || text[i] != ',' {
				return false
			}
			i++
		}
	}
	return i == len(text) || !digit(text[i]) && text[i] != ','
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// parseExtended finds (|||port|), whose delimiter may be any character but a digit (RFC 2428, 3).
func parseExtended(text []byte) (uint16, bool) {
	for i := 0; i+5 < len(text); i++ {
		d := text[i+1]
		if text[i] != '(' || d < 33 || d > 126 || digit(d) || text[i+2] != d || text[i+3] != d {
			continue
		}
		port, k := 0, i+4
		for ; k < len(text) && digit(text[k]) && k < i+9; k++ {
			port = port*10 + int(text[k]-'0')
		}
		if k > i+4 && port <= 65535 && k < len(text) && text[k] == d {
			return uint16(port), true
		}
	}
	return 0, false
}

// allowed returns the address to connect to if a server at peer, or on this machine, sends its
// clients to an address: see the package's comment.
func allowed(to netip.AddrPort, peer netip.Addr, local bool) (netip.AddrPort, bool) {
	a := to.Addr()
	if a.IsUnspecified() {
		a = peer
		to = netip.AddrPortFrom(a, to.Port())
	}
	switch {
	case to.Port() < 1024, a.IsMulticast(), a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return to, false
	case a.IsLoopback():
		return to, local
	case a.IsLinkLocalUnicast():
		return to, a == peer
	}
	return to, true
}

// dial opens the data connection.
func (t *transfer) dial(to netip.AddrPort) error {
	t.serve(to.Addr())
	var err error
	t.data, err = t.control.c.s.dialer.Dial(t.call.Ctx, t.server, to.Port(), t.call.Deadline)
	if err != nil {
		return while("data connection", err)
	}
	t.startSecuring()
	return nil
}

// startSecuring secures the data connection while the server reads the command: the server accepts
// the connection only if it carries out the command, and before it replies.
func (t *transfer) startSecuring() {
	if !t.control.c.s.securesData() {
		return
	}
	data, id, done := t.data, t.control.c.channel.id, make(chan securing, 1)
	t.securing = done
	go func() {
		secured, err := t.control.c.s.grid.secure(data, id)
		if err != nil {
			data.Break() // the server waits for the rest of the handshake
		}
		done <- securing{secured, err}
	}()
}

// A securing is the result of securing a data connection.
type securing struct {
	conn *tls.Conn
	err  error
}

// secure waits until the data connection is secured, if it has to be.
func (t *transfer) secure() error {
	if t.securing == nil {
		return nil
	}
	done := <-t.securing
	t.securing = nil
	t.secured = done.conn
	if done.err == nil {
		return nil
	}
	if why := t.whyBroken(done.err); !errors.Is(done.err, fs.ErrPermission) {
		return why
	}
	return done.err
}

// serve reports the data server's address.
func (t *transfer) serve(a netip.Addr) {
	if host := t.control.c.s.hosts.Get(a, a.String); host != t.server {
		t.server = host
		t.call.Progress.ServedBy(host)
	}
}
