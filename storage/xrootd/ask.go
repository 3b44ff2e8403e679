package xrootd

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"weir/storage"
	"weir/storage/wireclient"
)

const (
	maxRedirects = 16
	maxListing   = 256 << 20 // bytes of the answer to kXR_dirlist
	maxAnswer    = 1 << 20   // bytes of any other answer that is kept
	maxReopens   = 3
)

// An exchange sends the requests of an operation and reads the responses. It opens the client's
// connections to servers, logs in, follows redirects, obeys waits, and opens and closes files. req
// holds one request at a time, and data its response; a transfer keeps several reads and writes in
// flight.
type exchange struct {
	call   *wireclient.Call
	c      *client
	at     *server // where the operation is now
	named  *server // last server passed to ServedBy
	req    request // current request
	asked  bool    // the request was sent
	doing  uint16  // the last request that was sent, 0 while connecting
	hail   request // of a login, sent before the request
	out    []byte  // bytes to send
	signed []byte  // requests with their signatures
	data   []byte  // response to a request
	opaque string  // opaque information of the last redirect
	extra  string  // added to the path by the request itself
	tried  string  // data servers that failed
}

func (x *exchange) begin(c *client) {
	x.c, x.at, x.named = c, c.s.home, c.s.home
	x.opaque, x.extra, x.tried = "", "", ""
}

// settle counts the bytes that the operation has not reported yet.
func (x *exchange) settle() {
	x.count(&x.c.home)
	for _, l := range x.c.data {
		x.count(l)
	}
}

// clear drops all references to the client.
func (x *exchange) clear() {
	x.c, x.at, x.named = nil, nil, nil
	if cap(x.data) > maxKept {
		x.data = nil
	}
}

// count adds the link's bytes since the last count to the result, and the requests that a shared session signed.
func (x *exchange) count(l *link) {
	if l.wire == nil {
		return
	}
	x.call.Count(l.wire, &l.counted)
	if b, ok := l.wire.(*clientStream); ok {
		x.call.Result.Signed += b.signed
		b.signed = 0
	}
}

// drop closes a link whose state is unknown, with the files open on it.
func (x *exchange) drop(l *link) {
	x.count(l)
	x.c.forget(l)
	if w, ok := l.wire.(secured); ok {
		l.wire = w.wire // without close_notify, which might have to wait
	}
	_ = l.close() // the connection is gone in any case
}

// reach reports a phase, once. The session with a data server to which a redirect led is not
// reported: its time would include the redirector's response time.
func (x *exchange) reach(p storage.Phase) {
	if p >= storage.Redirected || x.call.Phases&(1<<storage.Redirected) == 0 {
		x.call.Phases.Reached(x.call.Progress, p)
	}
}

// serve records the server at which the operation is.
func (x *exchange) serve(s *server) {
	x.at = s
	if s == x.named {
		return
	}
	x.named = s
	if s == x.c.s.home {
		x.call.Progress.ServedBy("")
	} else {
		x.call.Progress.ServedBy(s.name)
	}
}

// place describes the event for which the operation was waiting: a redirector that does not respond
// is distinguished from a slow data server.
func (x *exchange) place() string {
	if x.doing == 0 {
		return "connecting to " + x.at.name
	}
	return "waiting for " + x.at.name + " to answer " + requestName(x.doing)
}

// ask sends the request x.req to the target, follows redirects, obeys waits and stores the final
// response in x.data. It returns the link to the server that sent the response.
func (x *exchange) ask() (*link, error) { return x.askAt(x.c.s.home) }

func (x *exchange) askAt(at *server) (*link, error) {
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

// isLoop returns the error of endless redirects. Errors are made in functions of their own:
// otherwise they would enlarge the stacks of waiting clients for good.
//
//go:noinline
func isLoop(l *link) error {
	return wireclient.ProtocolError("more than %d redirects, the last from %s: redirectors send each other in circles", maxRedirects,
		l.server.name)
}

// unexpected returns the error of a response that does not match the request.
//
//go:noinline
func (x *exchange) unexpected(l *link, f frame) error {
	x.drop(l)
	return wireclient.ProtocolError("%s in answer to %s", statusName(f.status), requestName(x.req.code))
}

// another returns the server to try after err: the redirector, if it had named the failed server
// and the request may be sent again.
func (x *exchange) another(l *link, err error) (*server, error) {
	home := x.c.s.home
	if l == nil || l.server == home || !broken(err) || !x.req.path || x.call.Result.Reopened >= maxReopens || x.call.Ctx.Err() != nil {
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

// lost records that a data server failed, so that the redirector is informed.
func (x *exchange) lost(s *server) {
	x.call.Result.Reopened++
	if x.tried != "" {
		x.tried += ","
	}
	x.tried += s.name
	x.opaque = ""
	x.serve(x.c.s.home)
}

// redirect follows a redirect.
func (x *exchange) redirect(l *link) (*server, error) {
	r, err := parseRedirect(x.data)
	if err != nil {
		x.drop(l)
		return nil, err
	}
	// The protocol has no scheme for hosts: the scheme of the redirecting server applies. A URL may
	// lead to TLS, never away from it.
	to := x.c.s.serverAt(r.host, r.port, r.secure || l.server.secure)
	x.opaque = r.opaque
	x.reach(storage.Redirected)
	x.serve(to)
	return to, nil
}

// waitAsAsked waits for the time in the response in x.data.
func (x *exchange) waitAsAsked() error {
	if len(x.data) < 4 {
		return wireclient.ProtocolError("a wait of %d bytes", len(x.data))
	}
	return x.pause(int32(binary.BigEndian.Uint32(x.data)), clip(x.data[4:]))
}

// roundTrip sends the request to one server. If a kept session turns out to be closed, it is opened
// again, once.
func (x *exchange) roundTrip(at *server) (*link, frame, error) {
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

// question sends r over an open link and collects the response.
func (x *exchange) question(l *link, r *request) (frame, error) {
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

// send sends requests over a link, signed if the server requires it.
func (x *exchange) send(l *link, b []byte) (err error) {
	if len(b) == 0 {
		return nil
	}
	if l.signs != nil {
		before := l.signs.last
		if x.signed, err = l.signs.append(x.signed[:0], b); err != nil {
			return err
		}
		x.call.Result.Signed += int(l.signs.last - before)
		b = x.signed
	}
	_, err = l.wire.Write(b)
	return err
}

func (x *exchange) sendQuestion(l *link, r *request, stream uint16) error {
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

// opaqueOf joins the opaque information that follows the path: the target's own query, the last
// redirect's, and the list of servers tried.
func (x *exchange) opaqueOf() string {
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

// aim makes x.req a request about the operation's path.
func (x *exchange) aim(code uint16) *request {
	x.req = request{code: code, path: true, args: x.appendPath(x.req.args[:0], x.call.Op.Path)}
	if x.call.Op.Path == "" && x.c.s.root != "" && (code == rqOpen || code == rqStat || code == rqQuery) { // the target may be a file
		x.req.args = x.req.args[:len(x.c.s.root)]
	}
	return &x.req
}

func (x *exchange) appendPath(b []byte, path string) []byte {
	b = append(b, x.c.s.root...)
	b = append(b, '/')
	return append(b, strings.TrimLeft(path, "/")...)
}

// waitLimit is the longest time that an operation without a timeout waits on request of the server
// before it reports that the service is busy.
const waitLimit = 10 * time.Minute

// pause obeys a kXR_wait.
func (x *exchange) pause(seconds int32, text string) error {
	wait := time.Duration(max(seconds, 0)) * time.Second
	left := waitLimit - x.call.Result.Waited
	if !x.call.Deadline.IsZero() {
		left = time.Until(x.call.Deadline)
	}
	if seconds <= 0 { // a server that sends "again at once" repeatedly must not keep a core busy
		wait = min(time.Duration(x.call.Result.Waits)*time.Millisecond, time.Second)
	}
	if wait > left {
		return fmt.Errorf("%w: it asks to wait %v, longer than the %v that this operation has left%s", storage.ErrBusy, wait,
			left.Round(time.Millisecond), because(text))
	}
	x.call.Result.Waits++
	x.call.Result.Waited += wait
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-x.call.Ctx.Done():
		return x.call.Ctx.Err()
	}
}

func because(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}
