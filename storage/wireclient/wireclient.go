// Package wireclient has the common parts of the drivers of network protocols (ftp, webdav,
// xrootd): the state of a running operation, its progress and byte counts, buffers that only busy
// clients hold, and the reading of names and numbers that servers send.
//
// A driver's client consists of two parts. The client itself keeps the state that must survive
// between operations: connections and open files. All other state is in a call, which is taken from
// a pool for each operation, so that thousands of idle clients cost little memory. A driver's call
// embeds Call.
package wireclient

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"weir/internal/content"
	"weir/internal/tcp"
	"weir/internal/tlsconn"
	"weir/storage"
)

// A Call is the part of a running operation that depends on no protocol. Init prepares it once, Begin before each
// operation, Clear ends the operation.
type Call struct {
	Ctx      context.Context
	Op       *storage.Op
	Progress storage.Progress
	Deadline time.Time
	Result   storage.Result
	Phases   storage.PhaseTracker
	Dest     *storage.LocalFile // receives the payload of a read; may be nil
	Cursor   content.Cursor     // content of a write that is still to be sent
	Moved    func(int)          // method value of CountMoved, made once
	Discard  func(int)          // counts payload that the kernel has dropped
}

// Init makes the functions that count bytes, so that operations need not.
func (c *Call) Init() {
	c.Moved = c.CountMoved
	c.Discard = func(n int) {
		c.Result.Discarded += int64(n)
		c.CountMoved(n)
	}
}

// Begin starts an operation.
func (c *Call) Begin(ctx context.Context, op *storage.Op, p storage.Progress) {
	c.Ctx, c.Op, c.Progress = ctx, op, p
	c.Deadline = op.Deadline()
	c.Result = storage.Result{Size: -1}
	c.Phases = 0
}

// Clear releases the state of the operation and its client.
func (c *Call) Clear() {
	c.Ctx, c.Op, c.Progress, c.Dest = nil, nil, nil, nil
	c.Result = storage.Result{}
}

// Check returns an error if the operation cannot be run by any service.
func (c *Call) Check() error {
	if err := storage.CheckPath(c.Op.Path); err != nil {
		return err
	}
	if c.Op.Timeout < 0 {
		return fmt.Errorf("timeout %v is negative", c.Op.Timeout)
	}
	return nil
}

// Reach reports a phase, once per operation.
func (c *Call) Reach(p storage.Phase) { c.Phases.Reached(c.Progress, p) }

// CountMoved reports n bytes of payload.
func (c *Call) CountMoved(n int) {
	if c.Op.Kind == storage.Read {
		c.Reach(storage.FirstByte)
	}
	c.Progress.Moved(n)
}

// ToDest runs read with the file that Op.Dest names, if any, as Dest.
func (c *Call) ToDest(read func() error) (err error) {
	if c.Op.Dest == "" {
		return read()
	}
	if c.Dest, err = c.Op.OpenDest(); err != nil {
		return err
	}
	return c.Dest.Close(read())
}

// Fetch works like ToDest, for a read that passes its payload through a hash, which is nil if no
// checksum is requested.
func (c *Call) Fetch(read func(hash.Hash) error) error {
	return c.ToDest(func() (err error) {
		c.Result.Sum, err = content.Summed(c.Op.Sum, read)
		return err
	})
}

// Through reads payload with from, until it returns io.EOF or most bytes have been read, and passes
// it through sum (if it is not nil) and to Dest. It counts the bytes and returns their number.
// buffers is a pool of *[]byte.
func (c *Call) Through(buffers *sync.Pool, most int64, sum hash.Hash, from func([]byte) (int, error)) (total int64, err error) {
	held := buffers.Get().(*[]byte)
	defer buffers.Put(held)
	for total < most {
		n, err := from((*held)[:min(int64(len(*held)), most-total)])
		if n > 0 {
			total += int64(n)
			c.Moved(n)
			if sum != nil {
				sum.Write((*held)[:n])
			}
			if _, err := c.Dest.Write((*held)[:n]); err != nil {
				return total, err
			}
		}
		if errors.Is(err, io.EOF) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// Describe makes an OpError. server is the data server that failed, "" for the target; it is left out if this
// machine's disk failed.
func (c *Call) Describe(url, server string, err error) error {
	if errors.Is(err, storage.ErrScratch) {
		server = ""
	}
	return &storage.OpError{Kind: c.Op.Kind, URL: url, Server: server, Err: err}
}

// A Counted is a connection that counts its bytes.
type Counted interface {
	In() int64
	Out() int64
}

// Count adds to Result.Wire the bytes of conn since the last Count, of which counted keeps track.
func (c *Call) Count(conn Counted, counted *int64) {
	total := conn.In() + conn.Out()
	c.Result.Wire += total - *counted
	*counted = total
}

// Sooner returns the earlier of the operation's deadline and the time in d from now. hurried is true if it is the
// latter.
func (c *Call) Sooner(d time.Duration) (t time.Time, hurried bool) {
	t = time.Now().Add(d)
	if c.Deadline.IsZero() || t.Before(c.Deadline) {
		return t, true
	}
	return c.Deadline, false
}

// Methods are the methods of a driver's call of type C that carry out the kinds of operations.
type Methods[C any] map[storage.Kind]func(C) error

// Kinds returns the kinds that m has, in ascending order.
func (m Methods[C]) Kinds() []storage.Kind { return slices.Sorted(maps.Keys(m)) }

// NewBuffers returns a pool of *[]byte with the given length.
func NewBuffers(size int) *sync.Pool {
	return &sync.Pool{New: func() any {
		b := make([]byte, size)
		return &b
	}}
}

// A Buffer holds the received bytes that are not read yet, in Data[Pos:End]. It borrows its memory
// from Pool while it is in use: waiting clients have no memory, since thousands may wait and few
// receive a response at once. It implements tcp.Lender.
type Buffer struct {
	Pool     *sync.Pool // of *[]byte
	Data     []byte
	Pos, End int
	held     *[]byte // the memory of Data; memory beyond it, after growth, is not returned to Pool
}

// Hold makes sure that there is memory.
func (b *Buffer) Hold() {
	if b.held == nil {
		b.held = b.Pool.Get().(*[]byte)
		b.Data = *b.held
	}
}

// Release returns the memory to the pool, with all of its contents.
func (b *Buffer) Release() {
	if b.held != nil {
		b.Pool.Put(b.held)
		b.held, b.Data = nil, nil
	}
	b.Pos, b.End = 0, 0
}

// Lend returns the free part of the buffer, behind the received bytes.
func (b *Buffer) Lend() []byte {
	b.Hold()
	if b.Pos == b.End {
		b.Pos, b.End = 0, 0
	}
	return b.Data[b.End:]
}

// Return returns the memory to the pool if everything was read.
func (b *Buffer) Return() {
	if b.Pos == b.End {
		b.Release()
	}
}

// MaxEntries is the largest number of entries that a listing may have.
const MaxEntries = 1 << 20

// ProtocolError returns an error that wraps storage.ErrProtocol.
func ProtocolError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", storage.ErrProtocol, fmt.Sprintf(format, args...))
}

// CheckEntry returns an error unless name is the name of an entry of a folder: anything else could lead out of it.
func CheckEntry(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return ProtocolError("entry named %q", name[:min(len(name), 200)])
	}
	return nil
}

// A Listing collects the entries of a folder. Entries that no operation can name are left out and counted.
type Listing struct {
	Entries []storage.Entry
	Omitted int
	Reason  error // why the first entry was left out
}

// Add appends e, or leaves it out if its name is invalid (see CheckEntry). It fails if there are too many entries.
func (l *Listing) Add(e storage.Entry) error {
	if err := CheckEntry(e.Name); err != nil {
		l.Omit(err)
		return nil
	}
	if len(l.Entries) == MaxEntries {
		return ProtocolError("more than %d entries", MaxEntries)
	}
	l.Entries = append(l.Entries, e)
	return nil
}

// Omit counts an entry that is left out because of err.
func (l *Listing) Omit(err error) {
	if l.Omitted++; l.Reason == nil {
		l.Reason = err
	}
}

// SetListing makes l the listing of the operation.
func (c *Call) SetListing(l Listing) {
	c.Result.Entries, c.Result.Omitted, c.Result.Omission = l.Entries, l.Omitted, l.Reason
}

// Handshake makes conn a TLS connection to host and counts the handshake. The errors of a handshake begin with "TLS: ".
func (c *Call) Handshake(conn net.Conn, conf *tls.Config, host string) (*tls.Conn, error) {
	begin := time.Now()
	conf.ServerName = cmp.Or(conf.ServerName, host)
	secured := tls.Client(conn, conf)
	if err := secured.Handshake(); err != nil {
		return nil, failedHandshake(err)
	}
	c.countHandshake(begin, secured.ConnectionState().DidResume)
	return secured, nil
}

// Secure works like Handshake, for connections that can discard payload without decrypting it. pool
// holds their buffers.
func (c *Call) Secure(conn *tcp.Conn, conf *tls.Config, host string, pool *tlsconn.Pool) (*tlsconn.Conn, error) {
	begin := time.Now()
	conf.ServerName = cmp.Or(conf.ServerName, host)
	secured, err := tlsconn.Client(conn, conf, pool)
	if err != nil {
		return nil, failedHandshake(err)
	}
	c.countHandshake(begin, secured.Resumed())
	return secured, nil
}

// Tickets returns the store for the TLS sessions of a new client: a store of its own, the store of
// all, or nil.
func Tickets(r storage.Resumption, all *tlsconn.Tickets) *tlsconn.Tickets {
	switch r {
	case storage.ResumeOwn:
		return &tlsconn.Tickets{}
	case storage.ResumeShared:
		return all
	}
	return nil
}

func (c *Call) countHandshake(begin time.Time, resumed bool) {
	r := &c.Result
	if r.Handshakes == 0 {
		r.Handshake = max(time.Since(begin), 1)
	}
	r.Handshakes++
	if resumed {
		r.Resumed++
	}
}

func failedHandshake(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return &tlsError{err}
}

// A tlsError is a handshake that failed.
type tlsError struct{ err error }

// Error implements error.
func (e *tlsError) Error() string {
	text := "TLS: " + strings.TrimPrefix(e.err.Error(), "tls: ")
	if unknown := (x509.UnknownAuthorityError{}); errors.As(e.err, &unknown) {
		text += ": name the authority with auth.ca_file or auth.ca_dir"
	}
	return text
}

// Unwrap returns the error of package tls.
func (e *tlsError) Unwrap() error { return e.err }

// CheckHost returns an error unless host can be a host name or an address.
func CheckHost(host string) error {
	if host == "" {
		return errors.New("no host")
	}
	if strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`/\?#@<>"`, r) }) {
		return fmt.Errorf("host %q has characters that no host name has", host[:min(len(host), 300)])
	}
	return nil
}

// HostPort returns the host of u in lower case and its port, or standard if u has no port.
func HostPort(u *url.URL, standard uint16) (host string, port uint16, err error) {
	host = strings.ToLower(u.Hostname())
	if err := CheckHost(host); err != nil {
		return "", 0, err
	}
	p := u.Port()
	if p == "" {
		return host, standard, nil
	}
	n, err := strconv.ParseUint(p, 10, 16)
	if err != nil || n == 0 {
		return "", 0, fmt.Errorf("port %q: use 1 to 65535", p)
	}
	return host, uint16(n), nil
}

// Decimal parses digits, and nothing else, as a number below 2^63.
func Decimal[T string | []byte](text T) (int64, bool) {
	if len(text) > 19 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text), 10, 63)
	return int64(n), err == nil
}

// Closed reports whether err is the error of a connection that the other side has closed.
func Closed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// maxShared bounds a Shared: a service that names more servers is at fault.
const maxShared = 4096

// A Shared keeps one value for each key, such as the description of each data server, so that thousands of clients
// share its memory. It is safe for concurrent use; its zero value is empty.
type Shared[K comparable, V any] struct {
	mu     sync.RWMutex
	values map[K]V
}

// Get returns the value of key, which is made by the first call.
func (s *Shared[K, V]) Get(key K, value func() V) V {
	s.mu.RLock()
	v, ok := s.values[key]
	s.mu.RUnlock()
	if ok {
		return v
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok = s.values[key]; ok {
		return v
	}
	if s.values == nil {
		s.values = map[K]V{}
	}
	v = value()
	if len(s.values) < maxShared {
		s.values[key] = v
	}
	return v
}
