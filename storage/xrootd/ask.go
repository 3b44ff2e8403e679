package xrootd

import (
	"encoding/binary"
	"strings"

	"weir/storage"
	"weir/storage/wireclient"
)

const (
	maxRedirects = 16
	maxListing   = 256 << 20 // bytes of the answer to kXR_dirlist
	maxAnswer    = 1 << 20   // bytes of any other answer that is kept
	maxReopens   = 3
)

// ask sends the question x.req to the target, follows redirects, obeys waits and leaves the final answer in x.data.
// It returns who gave it.
func (x *call) ask() (*link, error) { return x.askAt(x.c.s.home) }

func (x *call) askAt(at *server) (*link, error) {
	x.opaque = ""
	for hops := 0; ; {
		l, f, err := x.roundTrip(at)
		if err != nil {
			if at, err = x.another(l, err); err != nil {
				return nil, err
			}
			continue
		}
		switch f.status {
		case stOK:
			return l, nil
		case stRedirect:
			if hops++; hops > maxRedirects {
				return nil, isLoop(l)
			}
			if at, err = x.redirect(l); err != nil {
				return nil, err
			}
		case stWait:
			if err := x.waitAsAsked(); err != nil {
				return nil, err
			}
		default:
			return nil, x.unexpected(l, f)
		}
	}
}

// circles says that redirects have no end. Errors are made apart from what clients wait in, whose stacks they would
// enlarge for life.
//
//go:noinline
func isLoop(l *link) error {
	return wireclient.ProtocolError("more than %d redirects, the last from %s: redirectors send each other in circles", maxRedirects,
		l.server.name)
}

// unexpected says that an answer is none to the question.
//
//go:noinline
func (x *call) unexpected(l *link, f frame) error {
	x.drop(l)
	return wireclient.ProtocolError("%s in answer to %s", statusName(f.status), requestName(x.req.code))
}

// another decides where to go after err: back to the redirector, when it was the server that it had named that
// broke down and the question may be asked again.
func (x *call) another(l *link, err error) (*server, error) {
	home := x.c.s.home
	if l == nil || l.server == home || !broken(err) || !x.req.path || x.Result.Reopened >= maxReopens || x.Ctx.Err() != nil {
		return nil, err
	}
	switch x.req.code {
	case rqRm, rqRmdir, rqMv, rqMkdir:
		if x.asked { // it may be done already
			return nil, err
		}
	}
	x.lost(l.server)
	return home, nil
}

// lost notes that a data server broke down: the redirector is informed.
func (x *call) lost(s *server) {
	x.Result.Reopened++
	if x.tried != "" {
		x.tried += ","
	}
	x.tried += s.name
	x.opaque = ""
	x.serve(x.c.s.home)
}

// redirect follows a redirect.
func (x *call) redirect(l *link) (*server, error) {
	r, err := parseRedirect(x.data)
	if err != nil {
		x.drop(l)
		return nil, err
	}
	// The protocol has no scheme for hosts: they are like the one that named them. A URL may lead to TLS, never
	// away from it.
	to := x.c.s.serverAt(r.host, r.port, r.secure || l.server.secure)
	x.opaque = r.opaque
	x.reach(storage.Redirected)
	x.serve(to)
	return to, nil
}

// waitAsAsked waits as the answer in x.data says.
func (x *call) waitAsAsked() error {
	if len(x.data) < 4 {
		return wireclient.ProtocolError("a wait of %d bytes", len(x.data))
	}
	return x.pause(int32(binary.BigEndian.Uint32(x.data)), clip(x.data[4:]))
}

// roundTrip asks one server. A kept session that proves to be closed is made again, once.
func (x *call) roundTrip(at *server) (*link, frame, error) {
	l := x.c.link(x, at)
	for {
		kept := l.wire != nil
		x.asked = false
		if err := x.connect(l); err != nil {
			return l, frame{}, err
		}
		x.asked = true
		x.data = x.data[:0]
		before := l.wire.In()
		f, err := x.question(l, &x.req)
		if err == nil || refused(err) != 0 {
			return l, f, err
		}
		heard := l.wire.In() != before
		x.drop(l)
		if !kept || heard || !broken(err) {
			return l, f, err
		}
	}
}

// question sends r over a link that is open and collects the answer.
func (x *call) question(l *link, r *request) (frame, error) {
	stream := l.first + 1
	if err := x.sendQuestion(l, r, stream); err != nil {
		return frame{}, err
	}
	f, err := x.collect(l, stream)
	if err == nil && f.status == stError {
		err = unsigned(l, parseError(x.data))
	}
	return f, err
}

// send sends requests over a link, signed where its server wants that.
func (x *call) send(l *link, b []byte) (err error) {
	if len(b) == 0 {
		return nil
	}
	if l.signs != nil {
		before := l.signs.last
		if x.signed, err = l.signs.append(x.signed[:0], b); err != nil {
			return err
		}
		x.Result.Signed += int(l.signs.last - before)
		b = x.signed
	}
	_, err = l.wire.Write(b)
	return err
}

func (x *call) sendQuestion(l *link, r *request, stream uint16) error {
	x.doing = r.code
	size, opaque := len(r.args), ""
	if r.path {
		if opaque = x.opaqueOf(); opaque != "" {
			size += 1 + len(opaque)
		}
	}
	x.out = appendRequest(x.out[:0], stream, r.code, &r.params, size)
	x.out = append(x.out, r.args...)
	if opaque != "" {
		x.out = append(x.out, '?')
		x.out = append(x.out, opaque...)
	}
	return x.send(l, x.out)
}

// opaqueOf joins the opaque information behind the path: the target's own query, the last redirect's, and which servers
// were tried.
func (x *call) opaqueOf() string {
	if x.opaque == "" && x.tried == "" && x.extra == "" {
		return x.c.s.opaque
	}
	parts := make([]string, 0, 4)
	for _, p := range []string{x.c.s.opaque, x.opaque, x.extra} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	if x.tried != "" && x.at == x.c.s.home {
		parts = append(parts, "tried="+x.tried)
	}
	return strings.Join(parts, "&")
}

// aim makes x.req a question about the operation's path.
func (x *call) aim(code uint16) *request {
	x.req = request{code: code, path: true, args: x.appendPath(x.req.args[:0], x.Op.Path)}
	if x.Op.Path == "" && x.c.s.root != "" && (code == rqOpen || code == rqStat || code == rqQuery) { // the target may be a file
		x.req.args = x.req.args[:len(x.c.s.root)]
	}
	return &x.req
}

func (x *call) appendPath(b []byte, path string) []byte {
	b = append(b, x.c.s.root...)
	b = append(b, '/')
	return append(b, strings.TrimLeft(path, "/")...)
}
