package xrootd

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"weir/internal/content"
	"weir/internal/require"
	"weir/storage"
	"weir/storage/storagetest"
)

// A peer is a server for one test. By default it completes the handshake and the login correctly;
// answer responds to requests.
type peer struct {
	url, host string
	port      uint16
	file      []byte                      // served to valid requests
	flags     uint32                      // flags that it announces
	offer     string                      // authentication that it requires
	demand    string                      // its requirements for signatures
	greet     func(c *talk) bool          // replaces the whole login
	answer    func(c *talk, q query) bool // false ends the connection; nil is good
	budget    atomic.Int64                // one more than the number of bytes that a connection may send before it breaks; 0: no limit
	cert      *tls.Certificate            // of a server that continues with TLS
	mend      atomic.Bool                 // from now on there are no faults
	mu        sync.Mutex
	seen      []query
	talks     int
	sent      atomic.Int64
}

// A query is a received request.
type query struct {
	stream, code uint16
	params       [16]byte
	args         string
	talk         int // number of the connection
}

func (q query) offset() int64 { return int64(binary.BigEndian.Uint64(q.params[4:])) }
func (q query) count() int64  { return int64(binary.BigEndian.Uint32(q.params[12:])) }

// A talk is one connection.
type talk struct {
	net.Conn
	tcp   *net.TCPConn // below Conn
	peer  *peer
	nth   int
	left  int
	reads int    // for use by the test
	late  string // sent after the response to kXR_protocol
}

// Write sends bytes, up to the peer's budget.
func (c *talk) Write(b []byte) (int, error) {
	if c.left >= len(b) {
		c.left -= len(b)
		c.peer.sent.Add(int64(len(b)))
		return c.Conn.Write(b)
	}
	_, _ = c.Conn.Write(b[:c.left])
	c.left = 0
	return 0, errBudget
}

var errBudget = errors.New("nothing more may be sent")

// start makes the peer listen; it is stopped at the end of the test.
func (p *peer) start(t testing.TB) *peer {
	t.Helper()
	var conf net.ListenConfig
	l, err := conf.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	a := l.Addr().(*net.TCPAddr)
	p.host, p.port = "127.0.0.1", uint16(a.Port)
	p.url = "root://" + a.String() + "//data"
	if p.flags == 0 {
		p.flags = flagServer | flagPages
	}
	if p.cert != nil {
		p.flags |= flagHasTLS | flagGoToTLS
		p.url = "roots" + p.url[len("root"):]
	}
	end := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			done := make(chan struct{})
			all.Go(func() {
				select {
				case <-end:
				case <-done:
				}
				_ = c.Close()
			})
			all.Go(func() {
				defer close(done)
				p.serve(c.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(func() {
		close(end)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		all.Wait()
	})
	return p
}

func (p *peer) serve(conn *net.TCPConn) {
	c := &talk{Conn: conn, tcp: conn, peer: p, left: 1 << 62}
	p.mu.Lock()
	p.talks++
	c.nth = p.talks
	p.mu.Unlock()
	if n := p.budget.Load(); n > 0 {
		c.left = int(n) - 1
	}
	if p.greet != nil && !p.mend.Load() {
		if !p.greet(c) {
			return
		}
	} else if !c.welcome() {
		return
	}
	for {
		q, err := c.ask()
		if err != nil {
			return
		}
		if p.answer == nil || p.mend.Load() {
			if !c.good(q) {
				return
			}
		} else if !p.answer(c, q) {
			return
		}
	}
}

// welcome is a correct login.
func (c *talk) welcome() bool {
	if !c.hello() {
		return false
	}
	q, err := c.ask()
	if err != nil || q.code != rqLogin {
		return false
	}
	if !c.say(q, stOK, strings.Repeat("s", sessionSize)+c.peer.offer) {
		return false
	}
	if c.peer.offer == "" {
		return true
	}
	q, err = c.ask()
	return err == nil && q.code == rqAuth && c.say(q, stOK, "")
}

// hello responds to the handshake and kXR_protocol.
func (c *talk) hello() bool {
	b := make([]byte, handshakeSize)
	if _, err := io.ReadFull(c, b); err != nil {
		return false
	}
	q, err := c.ask()
	if err != nil || q.code != rqProtocol {
		return false
	}
	if !c.raw(answerOf(0, stOK, number(protocolVersion)+number(1)) + answerOf(q.stream, stOK, number(protocolVersion)+number(c.peer.flags)+
		c.peer.demand) + c.late) {
		return false
	}
	if c.peer.cert != nil {
		c.Conn = tls.Server(c.Conn, &tls.Config{Certificates: []tls.Certificate{*c.peer.cert}})
	}
	return true
}

// ask reads the next request.
func (c *talk) ask() (query, error) {
	var head [requestSize]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return query{}, err
	}
	q := query{stream: binary.BigEndian.Uint16(head[:]), code: binary.BigEndian.Uint16(head[2:]), params: [16]byte(head[4:]), talk: c.nth}
	args := make([]byte, binary.BigEndian.Uint32(head[20:]))
	_, err := io.ReadFull(c, args)
	q.args = string(args)
	c.peer.mu.Lock()
	defer c.peer.mu.Unlock()
	c.peer.seen = append(c.peer.seen, q)
	return q, err
}

// queries returns the requests received with a code, with any code for 0.
func (p *peer) queries(code uint16) []query {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.seen), func(q query) bool { return code != 0 && q.code != code })
}

func (p *peer) connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.talks
}

func number[T uint32 | int32 | int](n T) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(n)))
}

// answerOf returns a response in its form on the wire.
func answerOf(stream, status uint16, body string) string {
	b := binary.BigEndian.AppendUint16(nil, stream)
	b = binary.BigEndian.AppendUint16(b, status)
	b = binary.BigEndian.AppendUint32(b, uint32(len(body)))
	return string(b) + body
}

func (c *talk) raw(text string) bool {
	_, err := io.WriteString(c, text)
	return err == nil
}

func (c *talk) say(q query, status uint16, body string) bool {
	return c.raw(answerOf(q.stream, status, body))
}

// send redirects q to another server.
func (c *talk) send(q query, to *peer, opaque string) bool {
	return c.say(q, stRedirect, number(int(to.port))+to.host+opaque)
}

// later returns a response inside a kXR_attn.
func later(stream, status uint16, body string) string {
	return answerOf(0, stAttn, number(attnResponse)+number(0)+answerOf(stream, status, body))
}

// A sheet is a kXR_status before its checksum is computed, and the data that follows it.
type sheet struct {
	stream  uint16
	request byte
	kind    byte
	size    int64
	offset  int64
	wrong   uint32 // added to the checksum
	data    string
}

func (s sheet) text() string {
	b := binary.BigEndian.AppendUint16(nil, s.stream)
	b = append(b, s.request, s.kind, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(s.size))
	b = binary.BigEndian.AppendUint64(b, uint64(s.offset))
	sum := crc32.Checksum(b, castagnoli()) + s.wrong
	return answerOf(s.stream, stStatus, string(binary.BigEndian.AppendUint32(nil, sum))+string(b)) + s.data
}

// pagesOf returns a file's bytes as pages.
func pagesOf(b []byte, offset int64) string {
	var out []byte
	for len(b) > 0 {
		n := min(int(firstPage(offset)), len(b))
		out = binary.BigEndian.AppendUint32(out, crc32.Checksum(b[:n], castagnoli()))
		out = append(out, b[:n]...)
		b, offset = b[n:], offset+int64(n)
	}
	return string(out)
}

// pagesAt returns a correct response to a page read, or a part of a response.
func pagesAt(stream uint16, b []byte, offset int64, partial bool) sheet {
	data := pagesOf(b, offset)
	s := sheet{stream: stream, request: rqPgread - firstRequest, size: int64(len(data)), offset: offset, data: data}
	if partial {
		s.kind = partialStatus
	}
	return s
}

// part returns the existing part of the range that q requests.
func (p *peer) part(q query) []byte {
	from := min(q.offset(), int64(len(p.file)))
	return p.file[from:min(from+q.count(), int64(len(p.file)))]
}

func (p *peer) state() string { return fmt.Sprintf("1 %d 16 1700000000\x00", len(p.file)) }

// good responds correctly.
func (c *talk) good(q query) bool {
	p := c.peer
	switch q.code {
	case rqSigver:
		return true // no answer
	case rqOpen:
		return c.say(q, stOK, "hndl"+strings.Repeat("\x00", 8)+p.state())
	case rqStat:
		return c.say(q, stOK, p.state())
	case rqRead:
		return c.say(q, stOK, string(p.part(q)))
	case rqPgread:
		return c.raw(pagesAt(q.stream, p.part(q), q.offset(), false).text())
	case rqReadv:
		return c.say(q, stOK, p.vector(q))
	case rqPgwrite:
		return c.raw(sheet{stream: q.stream, request: rqPgwrite - firstRequest, offset: q.offset()}.text())
	case rqDirlist:
		return c.say(q, stOK, ".\n0 0 0 0\na\n1 2 16 3\nb\n1 4 2 3\x00")
	case rqLocate:
		return c.say(q, stOK, fmt.Sprintf("Sr%s:%d\x00", p.host, p.port))
	case rqQuery:
		return c.say(q, stOK, "adler32 12345678\x00")
	}
	return c.say(q, stOK, "") // close, write, ping, names
}

func (p *peer) vector(q query) string {
	var out strings.Builder
	for b := []byte(q.args); len(b) >= vectorItem; b = b[vectorItem:] {
		n, at := binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint64(b[8:])
		out.Write(b[:vectorItem])
		out.Write(p.file[at : at+uint64(n)])
	}
	return out.String()
}

// made returns a file's content.
func made(n int) []byte {
	b := make([]byte, n)
	content.Fill(b, 7, 0)
	return b
}

// events is a Progress that records its calls.
type events struct {
	phases []storage.Phase
	moved  int64
	server string
	signed int // requests, noted by the test
}

func (e *events) Reached(p storage.Phase) { e.phases = append(e.phases, p) }
func (e *events) Moved(n int)             { e.moved += int64(n) }
func (e *events) ServedBy(host string)    { e.server = host }

// serviceAt opens a service and closes it with the test.
func serviceAt(t testing.TB, url string, cred storage.Credentials) storage.Service {
	t.Helper()
	return storagetest.Open(t, Driver(), storagetest.TargetOf(t, url, cred))
}

// clientOf returns a client without credentials, of a service whose clients share their connections
// or not.
func clientOf(t testing.TB, url string, shared bool) storage.Client {
	t.Helper()
	target := storagetest.TargetOf(t, url, storage.Credentials{})
	target.Shared = shared
	return storagetest.Client(t, Driver(), target)
}

// clientAt returns a client that is closed at the end of the test.
func clientAt(t testing.TB, url string, cred storage.Credentials) storage.Client {
	t.Helper()
	return storagetest.Client(t, Driver(), storagetest.TargetOf(t, url, cred))
}
