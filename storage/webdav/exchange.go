package webdav

import (
	"cmp"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"weir/storage"
	"weir/storage/wireclient"
)

const (
	maxRedirects = 10
	maxInterim   = 20 // 1xx responses before the final response
	// The time for which a client waits for 100 Continue before it sends the body anyway, as RFC
	// 9110 (10.1.1) requires: at first the same time as curl, then longer at a server that has been
	// found to redirect late. A redirector of XRootD looks for a place for five seconds, by
	// default.
	shortWait = time.Second
	longWait  = 10 * time.Second
)

// A request holds the parts that differ from request to request.
type request struct {
	method string
	path   string // below the target, unescaped
	slash  bool   // the path is a folder's
	bare   bool   // without a slash at its end if it is the target itself
	extra  string // more header lines
	ranged bool
	from   int64 // ranged: first byte
	count  int64 // ranged: bytes
	text   string
	to     string // MOVE: new path below the target, unescaped
	target string // S3: path and query, escaped; "": those derived from path
	sums   bool   // S3: checksums are requested
	upload bool   // the body is generated content of Op.Size bytes
	lends  bool   // COPY: extra has credentials of another server
}

// An exchange sends the requests of an operation and reads the responses. It opens the client's
// connections to servers, signs and sends requests, follows redirects and sends the bodies of
// uploads; the response to the last request is the embedded answer.
type exchange struct {
	answer
	c      *client
	server *origin // server of the operation at present
	path   []byte  // of a redirect; empty for the target's own
	sent   func(int)
	proof  proof // of the last request

	asks       bool // an upload waits for 100 Continue
	unanswered bool // the wait timed out

	withholds bool // bytes of an upload are reported once they are known to be stored
	withheld  int  // number of bytes not reported yet
	counted   int  // number of bytes reported
	again     int  // number of reported bytes that are sent again
}

// init prepares the exchange of a call of s, once.
func (x *exchange) init(s *service, call *wireclient.Call) {
	x.call, x.Pool, x.payload = call, s.small, s.buffers
	x.sent = x.sentMore
}

// begin starts the exchange of an operation of c.
func (x *exchange) begin(c *client) {
	x.c, x.server = c, c.s.home
	x.path = x.path[:0]
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
	x.Release()
	x.c, x.server = nil, nil
	x.head, x.body, x.proof = head{}, bodyState{}, proof{}
}

// dataServer returns the data server of the operation, "" for the target.
func (x *exchange) dataServer() string {
	if x.server == x.c.s.home {
		return ""
	}
	return x.server.name
}

// do sends a request, follows redirects and stores the final response's header in x.head and its
// body's state in x.body.
func (x *exchange) do(r *request) (*link, error) {
	x.path = x.path[:0]
	if r.method != http.MethodGet {
		return x.follow(r, x.c.s.home)
	}
	found := &x.c.found
	if found.at != nil && found.path == r.path {
		x.path = append(x.path, found.to...)
		x.call.Progress.ServedBy(found.at.name)
		l, err := x.follow(r, found.at)
		if err != nil || !expired(x.head.status) {
			return l, err
		}
		x.skip(l)
		x.path = x.path[:0]
		x.call.Progress.ServedBy("")
	}
	l, err := x.follow(r, x.c.s.home)
	found.at = nil
	if (x.call.Op.Keep || r.ranged) && err == nil && l.origin != x.c.s.home && x.head.status < 300 {
		found.at, found.path, found.to = l.origin, r.path, append(found.to[:0], x.path...)
	}
	return l, err
}

// expired reports whether a status may mean that a redirect was valid for a limited time, or once.
func expired(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone:
		return true
	}
	return false
}

// follow sends a request to at, and to the destinations of redirects.
func (x *exchange) follow(r *request, at *origin) (*link, error) {
	for hop := 0; ; hop++ {
		l, err := x.roundTrip(r, at)
		for range 2 { // refused credentials, a refused Expect
			if err != nil || !x.renewed(l) && !x.unexpected(r) {
				break
			}
			x.skip(l)
			l, err = x.roundTrip(r, at)
		}
		if err != nil {
			return nil, err
		}
		if !redirects(x.head.status) || r.method == "HEAD" && x.call.Op.Kind == storage.Login {
			return l, nil
		}
		if x.toFolder(r, l) {
			x.skip(l)
			return nil, errFolder
		}
		if hop == maxRedirects {
			x.drop(l)
			return nil, wireclient.ProtocolError("more than %d redirects", maxRedirects)
		}
		if at, err = x.redirect(r, l); err != nil {
			x.drop(l)
			return nil, err
		}
	}
}

// errFolder is the error of an operation on a file whose name the server redirects to a folder's
// name.
var errFolder = fmt.Errorf("it is a folder, as the server redirects to the name with a slash at its end: %w", syscall.EISDIR)

// onFile reports whether the operation is on an existing file.
func (x *exchange) onFile() bool {
	return x.call.Op.Kind == storage.Read || x.call.Op.Kind == storage.Stat || x.call.Op.Kind == storage.Checksum
}

// toFolder reports whether a request for a file was redirected to the same name with a slash at its
// end, on the same host, as servers redirect folders. Some servers do not escape the name in
// Location.
func (x *exchange) toFolder(r *request, l *link) bool {
	if !x.onFile() {
		return false
	}
	to := withoutQuery(string(x.head.location))
	if strings.HasPrefix(to, "//") {
		to = l.origin.scheme() + ":" + to
	}
	if scheme, rest, ok := strings.Cut(to, "://"); ok && !strings.Contains(scheme, "/") {
		authority, path, _ := strings.Cut(rest, "/")
		if u, err := url.Parse(scheme + "://" + authority); err != nil || !strings.EqualFold(u.Hostname(), l.origin.host) {
			return false
		}
		to = "/" + path
	}
	at := withoutQuery(x.current(r))
	if !strings.HasSuffix(to, "/") || strings.HasSuffix(at, "/") {
		return false
	}
	if !strings.HasPrefix(to, "/") {
		to = at[:strings.LastIndexByte(at, '/')+1] + to
	}
	return sameFolder(to, at) || sameFolder(strings.ReplaceAll(to, "%", "%25"), at)
}

// renewed reports whether the response refuses credentials that have been replaced meanwhile.
func (x *exchange) renewed(l *link) bool {
	if !l.origin.trusted || !x.c.s.refused(x.head.status) || x.c.s.proofOf((*storage.Renewable[string]).Reread) == x.proof {
		return false
	}
	x.withheld, x.again = 0, x.counted
	return true
}

// unexpected reports whether the response refuses an upload because of its Expect, which later
// uploads then omit.
func (x *exchange) unexpected(r *request) bool {
	if !r.upload || !x.asks || x.head.status != http.StatusExpectationFailed {
		return false
	}
	x.c.s.expect.Store(expectNever)
	return true
}

func redirects(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// redirect follows a redirect.
func (x *exchange) redirect(r *request, l *link) (*origin, error) {
	if len(x.head.location) == 0 {
		return nil, wireclient.ProtocolError("status %d without a Location", x.head.status)
	}
	if r.upload {
		if x.head.status == http.StatusSeeOther {
			return nil, wireclient.ProtocolError("status 303 in answer to a PUT")
		}
		x.c.s.puts.Store(putsRedirected)
		x.withheld, x.again = 0, x.counted
		if x.unanswered {
			x.c.s.expect.CompareAndSwap(expectShortly, expectPatiently)
		}
	}
	to, err := parseReference(string(x.head.location), l.origin, x.current(r))
	var o *origin
	if err == nil {
		o, err = x.c.s.originAt(to)
	}
	if err != nil {
		return nil, wireclient.ProtocolError("Location %q: %v", clip(x.head.location, 200), err)
	}
	if r.lends && !o.trusted {
		return nil, fmt.Errorf("it redirects to %s, which is not sent the credentials of the other end of the copy: %w", o.name, fs.ErrPermission)
	}
	path := to.EscapedPath()
	path = cmp.Or(path, "/")
	x.path = append(appendPrintable(x.path[:0], path), queryOf(to)...)
	x.skip(l)
	x.call.Reach(storage.Redirected)
	if server := o.name; o != x.c.s.home {
		x.call.Progress.ServedBy(server)
	} else if l.origin != o {
		x.call.Progress.ServedBy("") // back to the target
	}
	return o, nil
}

// current returns the path of the request that was answered.
func (x *exchange) current(r *request) string {
	if len(x.path) > 0 {
		return string(x.path)
	}
	return string(x.appendTarget(nil, r))
}

// roundTrip sends the request to one server and reads the response's header. If a kept connection
// turns out to be closed, it is opened again, once.
func (x *exchange) roundTrip(r *request, at *origin) (*link, error) {
	l := x.c.link(x, at)
	// An upload cannot be repeated once its bytes are counted, and no change should be sent twice:
	// these requests check the connection first, all others detect a closed connection from the
	// error. After HEAD all requests check: if a server sends a body with it, the body would be
	// taken for the next response.
	if l.conn != nil && (r.method != "GET" && r.method != "HEAD" || l.headed) && !l.quiet() {
		x.drop(l)
	}
	for {
		kept := l.conn != nil
		if err := x.connect(l); err != nil {
			return nil, err
		}
		err := x.sendAndReceive(r, l)
		if err == nil {
			x.arrived(r, l)
			return l, nil
		}
		x.drop(l)
		if !kept || r.upload || x.heard || !wireclient.Closed(err) {
			return nil, err
		}
	}
}

// arrived records the results of the first response on a connection.
func (x *exchange) arrived(r *request, l *link) {
	l.headed = r.method == "HEAD"
	x.body.begin(&x.head, l.headed)
	proved := l.shown || l.origin.trusted && x.c.s.proves()
	if proved && !l.known && x.head.status != http.StatusUnauthorized && x.head.status != http.StatusForbidden {
		l.known = true
		x.call.Reach(storage.Authenticated)
	}
}

func (x *exchange) sendAndReceive(r *request, l *link) error {
	x.Hold()
	x.asks = r.upload && x.expects()
	x.Data = x.appendHead(x.Data[:0], r, l.origin)
	x.Pos, x.End, x.heard = 0, 0, false
	if r.upload {
		return x.sendUpload(l)
	}
	if err := l.ask(x.Data, &x.Buffer); err != nil {
		return err
	}
	return x.receive(l)
}

// appendHead appends a request, including a small body.
func (x *exchange) appendHead(b []byte, r *request, o *origin) []byte {
	b = append(b, r.method...)
	b = append(b, ' ')
	begin := len(b)
	switch {
	case len(x.path) > 0:
		b = append(b, x.path...)
	case r.target != "":
		b = append(b, r.target...)
	default:
		b = x.appendTarget(b, r)
	}
	end := len(b)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, o.authority...)
	b = append(b, "\r\nUser-Agent: weir\r\n"...)
	if o.trusted {
		x.proof = x.c.s.proofOf((*storage.Renewable[string]).Current)
		if k := x.c.s.bucket; k != nil {
			b = k.sign(b, r, o.authority, string(b[begin:end]), x.proof, time.Now())
		} else {
			b = append(b, x.proof.shown...)
		}
	}
	b = append(b, r.extra...)
	if r.to != "" {
		b = x.appendDestination(b, r, o)
	}
	if r.ranged {
		b = append(b, "Range: bytes="...)
		b = strconv.AppendInt(b, r.from, 10)
		b = append(b, '-')
		b = strconv.AppendInt(b, r.from+r.count-1, 10)
		b = append(b, "\r\n"...)
	}
	if r.upload || len(r.text) > 0 {
		b = append(b, "Content-Length: "...)
		if r.upload {
			b = strconv.AppendInt(b, x.call.Op.Size, 10)
		} else {
			b = strconv.AppendInt(b, int64(len(r.text)), 10)
		}
		b = append(b, "\r\n"...)
	}
	if x.asks {
		b = append(b, "Expect: 100-continue\r\n"...)
	}
	b = append(b, "\r\n"...)
	return append(b, r.text...)
}

func (x *exchange) appendTarget(b []byte, r *request) []byte {
	b = append(b, x.c.s.root...)
	if (r.bare || r.path == "" && x.onFile()) && len(x.c.s.root) > 0 {
		return append(b, x.c.s.query...)
	}
	b = append(b, '/')
	b = appendPath(b, r.path)
	if r.slash && b[len(b)-1] != '/' {
		b = append(b, '/')
	}
	return append(b, x.c.s.query...)
}

// appendDestination appends the header lines with the destination of a move, on the server of the
// request.
func (x *exchange) appendDestination(b []byte, r *request, o *origin) []byte {
	b = append(b, "Overwrite: F\r\nDestination: "...)
	b = append(b, o.scheme()...)
	b = append(b, "://"...)
	b = append(b, o.authority...)
	b = append(b, x.c.s.root...)
	b = append(b, '/')
	b = appendPath(b, r.to)
	if r.slash {
		b = append(b, '/')
	}
	return append(b, "\r\n"...)
}
