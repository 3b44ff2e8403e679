package xrootd

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"

	"weir/storage"
	"weir/storage/wireclient"
	"weir/storage/xrootd/security"
)

// connect makes sure that l is open and starts the operation's use of it.
func (x *exchange) connect(l *link) error {
	x.at = l.server
	if l.wire != nil {
		err := l.wire.Begin(x.call.Ctx, x.call.Deadline)
		if err != nil {
			x.drop(l)
		}
		return err
	}
	if l.s.shared != nil {
		return l.s.shared.attach(x, l)
	}
	return x.join(l)
}

// errStale is wrapped by the error of a login with credentials that were renewed meanwhile.
var errStale = errors.New("the credentials were renewed")

// join connects and logs in.
func (x *exchange) join(l *link) error {
	err := x.joinOnce(l)
	if errors.Is(err, errStale) {
		err = x.joinOnce(l)
	}
	return err
}

func (x *exchange) joinOnce(l *link) error {
	x.doing = 0
	conn, err := l.s.dialer.Dial(x.call.Ctx, l.server.host, l.server.port, x.call.Deadline)
	if err != nil {
		return err
	}
	l.wire = conn
	if err = x.login(l); err != nil {
		x.drop(l)
	}
	return err
}

// login takes a new connection through handshake, TLS, login and authentication.
func (x *exchange) login(l *link) error {
	x.reach(storage.Connected)
	if err := x.handshake(l); err != nil {
		return err
	}
	if l.server.secure && l.flags&(flagGoToTLS|flagHasTLS) == 0 {
		return fmt.Errorf("%w: %w, and roots:// goes nowhere without: use root://, or configure xrd.tls there", fs.ErrPermission,
			storage.ErrNoTLS)
	}
	if l.server.secure || l.flags&(flagGoToTLS|flagTLSLogin) != 0 {
		if err := x.secure(l); err != nil {
			return err
		}
	}
	offer, err := x.introduce(l)
	if err == nil && offer != "" {
		err = x.authenticateApart(l, offer)
	}
	if err == nil && l.flags&flagTLSSession != 0 && !l.secure {
		err = x.secure(l) // the requests after the login
	}
	if err == nil {
		x.reach(storage.Authenticated)
	}
	return err
}

// handshake sends the handshake and reads the server's protocol flags.
func (x *exchange) handshake(l *link) error {
	x.doing = rqProtocol
	x.out = appendHello(x.out[:0], l.server.secure)
	if _, err := l.wire.Write(x.out); err != nil {
		return err
	}
	f, err := x.collect(l, 0)
	if errors.Is(err, storage.ErrProtocol) {
		return fmt.Errorf("%w, in answer to the handshake: is this an XRootD server?", err)
	}
	if err != nil {
		return err
	}
	if f.status != stOK || len(x.data) != 8 {
		return wireclient.ProtocolError("%s and %d bytes in answer to the handshake: is this an XRootD server?",
			statusName(f.status), len(x.data))
	}
	if err := x.agree(l); err != nil {
		return err
	}
	if l.flags&flagTLSData == 0 || l.flags&(flagGoToTLS|flagTLSLogin) != 0 || l.server.secure {
		return nil
	}
	// Data has to go over TLS, and here it goes over the connection of the login. TLS is requested
	// now: servers that require it for data alone (xrootd.tls data) announce that they begin it
	// after the login, and do not (5.5 to 6.2; xrdcp cannot connect to them).
	x.out = appendProtocol(x.out[:0], true)
	if _, err := l.wire.Write(x.out); err != nil {
		return err
	}
	return x.agree(l)
}

// agree reads the response to kXR_protocol.
func (x *exchange) agree(l *link) error {
	f, err := x.collect(l, 0)
	switch {
	case err != nil:
		return err
	case f.status == stError:
		return parseError(x.data)
	case f.status != stOK || len(x.data) < 8:
		return wireclient.ProtocolError("%s and %d bytes in answer to kXR_protocol", statusName(f.status), len(x.data))
	}
	l.flags = binary.BigEndian.Uint32(x.data[4:])
	l.demands, err = readDemands(x.data[8:])
	return err
}

// introduce logs in and returns the authentication methods that the server offers, "" for nothing.
func (x *exchange) introduce(l *link) (string, error) {
	const about = "?xrd.appname=weir"
	x.hail = request{code: rqLogin, args: append(x.hail.args[:0], about...)}
	p := &x.hail.params
	binary.BigEndian.PutUint32(p[0:], l.s.pid)
	copy(p[4:12], l.s.user)
	p[13] = loginFullURL | loginReadRedir | loginIPv64
	p[14] = loginVersion | loginAsync
	f, err := x.question(l, &x.hail)
	for err == nil && f.status == stWait {
		if err = x.waitAsAsked(); err == nil {
			f, err = x.question(l, &x.hail)
		}
	}
	switch {
	case err != nil:
		return "", err
	case f.status == stOK && len(x.data) == 0:
		return "", nil // an old server without sessions
	case f.status != stOK || len(x.data) < sessionSize:
		return "", wireclient.ProtocolError("%s and %d bytes in answer to kXR_login", statusName(f.status), len(x.data))
	}
	return strings.TrimRight(string(x.data[sessionSize:]), "\x00 "), nil
}

// authenticateApart runs authenticate in a goroutine of its own: authentication needs a deep stack,
// which the client's goroutine would keep for good.
func (x *exchange) authenticateApart(l *link, offer string) error {
	done := make(chan error, 1)
	go func() { done <- x.authenticate(l, offer) }()
	return <-done
}

// authenticate authenticates the client.
func (x *exchange) authenticate(l *link, offer string) error {
	method, parameters, err := security.Pick(offer, l.secure, l.s.methods)
	if err != nil {
		return err
	}
	if method == nil {
		return nil // the server requires no authentication after all
	}
	ctx, cancel := x.limited()
	defer cancel()
	exchange, err := method.Begin(ctx, security.Server{Host: l.server.host, Parameters: parameters, Secure: l.secure,
		Address: addressOf(l.wire)})
	if err != nil {
		return fmt.Errorf("authentication %s: %w", method.Name(), err)
	}
	var challenge []byte
	for range maxRounds {
		proof, err := exchange.Next(challenge)
		if err != nil {
			return fmt.Errorf("authentication %s: %w", method.Name(), err)
		}
		x.hail = request{code: rqAuth, args: append(x.hail.args[:0], proof...)}
		copy(x.hail.params[12:], method.Name())
		f, err := x.question(l, &x.hail)
		switch {
		case refused(err) != 0 && security.Stale(exchange):
			return fmt.Errorf("%w: %w: %w", errStale, fs.ErrPermission, err)
		case refused(err) != 0:
			return fmt.Errorf("authentication %s: %w: %w%s", method.Name(), fs.ErrPermission, err, because(security.Hint(exchange)))
		case err != nil:
			return err
		case f.status == stOK:
			l.signs = newSigner(l.demands, exchange)
			return nil
		case f.status != stAuthMore:
			return wireclient.ProtocolError("%s in answer to kXR_auth", statusName(f.status))
		}
		challenge = append([]byte(nil), x.data...)
	}
	return wireclient.ProtocolError("authentication %s goes on after %d rounds", method.Name(), maxRounds)
}

// limited returns a context that ends with the operation.
func (x *exchange) limited() (context.Context, context.CancelFunc) {
	if x.call.Deadline.IsZero() {
		return x.call.Ctx, func() {}
	}
	return context.WithDeadline(x.call.Ctx, x.call.Deadline)
}

// addressOf returns the IP address of the other side.
func addressOf(w wire) string {
	switch s := w.(type) {
	case secured:
		w = s.wire
	case sealed:
		w = s.wire
	}
	c, ok := w.(net.Conn)
	if !ok {
		return ""
	}
	host, _, _ := net.SplitHostPort(c.RemoteAddr().String()) // an address always has a port
	return host
}

// maxRounds bounds an authentication; GSI needs three.
const maxRounds = 10
