// Package tlsconn provides client connections with TLS 1.2 and 1.3 that can discard payload without decrypting it.
//
// Package crypto/tls performs the handshake. After that a Conn reads and writes the records itself,
// with the keys that the handshake has agreed on: Config.KeyLogWriter yields them. Nothing of
// crypto/tls remains in memory. Conn.Discard decrypts only the records whose content it needs, and
// has the kernel drop the others.
//
// With any cipher suite other than AES-GCM and ChaCha20-Poly1305 all goes through crypto/tls, and Discard decrypts everything.
//
// TLS sessions are resumed if Config.ClientSessionCache comes from a Tickets.
package tlsconn

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"weir/internal/tcp"
)

const (
	headSize      = 5
	maxPlain      = 16 << 10
	maxCipher13   = maxPlain + 256
	maxCipher12   = maxPlain + 2048
	maxRecord     = headSize + maxCipher12
	bufferRecords = 4
	bufferSize    = bufferRecords * maxRecord
)

// A Pool has the shared state of the connections with one service: buffers, and the lengths of the
// service's records. It is safe for concurrent use; its zero value is empty.
//
// If the first 4096 records of a service within bodies were all as long as the records before, the
// same is expected of later records: of eight records the header of one is checked. If it is not
// where it is expected, the connection ends with an error, and no more records of the service are
// foreseen.
type Pool struct {
	pool      sync.Pool    // of *[]byte
	checked   atomic.Int64 // records that were dropped after a look at their header
	irregular atomic.Bool  // records within a body differed in their length
}

func (p *Pool) get() *[]byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, bufferSize)
	return &b
}

func (p *Pool) put(b *[]byte) { p.pool.Put(b) }

// A Conn is a TLS connection. One goroutine may use it at a time. While it waits for a server it holds no buffer.
type Conn struct {
	conn    *tcp.Conn
	pool    *Pool
	through *tls.Conn // nil: this package reads and writes the records
	version uint16
	resumed bool // the handshake was that of an earlier TLS session
	in, out half
	tickets *ticketReader // nil: no ticket is expected any more

	held     *[]byte // the memory of buf
	buf      []byte  // buf[pos:end]: records that were received and are not read yet
	pos, end int
	plain    []byte // decrypted payload that is not read yet; it lies in buf
	messages []byte // the part of a handshake message that has been received
	useless  int    // records and messages without payload since the last payload
	err      error  // why nothing more can be read

	need     int    // number of bytes of records that buf must have
	ahead    int    // number that it may have, if more have come
	units    [4]int // lengths of records that contain payload without padding, as far as known
	recent   int    // the last of units to be set
	padded   bool   // a padded record was seen
	drop     tcp.Frames
	left     int64     // of Discard: payload still to come, that of the record being dropped included
	passed   int       // payload of the records that are being dropped
	size     int       // length of the last dropped record, 0 if this call has dropped no record
	checked  int64     // records of this call that were dropped after a look at their header
	batch    bool      // several records are being dropped
	foreseen bool      // records were dropped without a look at their header
	gone     func(int) // of Discard: counts dropped payload
}

// Client performs the handshake with the server at the other end of conn. On an error conn is in an unknown state and is
// still to be closed.
func Client(conn *tcp.Conn, conf *tls.Config, pool *Pool) (*Conn, error) {
	secrets := &secrets{}
	conf = conf.Clone()
	conf.KeyLogWriter = secrets
	if cache, ok := conf.ClientSessionCache.(*sessionCache); ok {
		cache.secrets = secrets
	}
	under := &oneByOne{Conn: conn, secrets: secrets}
	through := tls.Client(under, conf)
	if err := through.Handshake(); err != nil {
		return nil, err
	}
	state := through.ConnectionState()
	c := &Conn{conn: conn, pool: pool, version: state.Version, resumed: state.DidResume}
	if !c.takeOver(&state, secrets) {
		under.free = true
		c.through = through
	} else if c.is13() && conf.ClientSessionCache != nil {
		under.over = true
		c.tickets = &ticketReader{through, under}
	}
	return c, nil
}

// Resumed reports whether the handshake resumed an earlier TLS session.
func (c *Conn) Resumed() bool { return c.resumed }

// takeOver derives the keys of both directions. It returns false if crypto/tls has to continue.
func (c *Conn) takeOver(state *tls.ConnectionState, s *secrets) bool {
	suite := suiteOf(state.CipherSuite)
	if suite == nil {
		return false
	}
	var err error
	switch state.Version {
	case tls.VersionTLS13:
		if s.client == nil || s.server == nil {
			return false
		}
		err = errors.Join(c.in.use13(suite, s.server), c.out.use13(suite, s.client))
	case tls.VersionTLS12:
		if s.master == nil || s.random == nil || len(s.hello) < helloSize {
			return false
		}
		err = keys12(suite, s, &c.in, &c.out)
	default:
		return false
	}
	if err != nil { // a cipher that this system does not allow by default
		return false
	}
	c.drop.Next, c.drop.Rest = c.nextFrame, c.rest
	return true
}

// oneByOne lets crypto/tls read no further than to the end of a record: the bytes after the
// handshake are not for crypto/tls.
type oneByOne struct {
	*tcp.Conn
	secrets *secrets
	head    [headSize]byte
	have    int // bytes of head
	left    int // of the record
	free    bool
	over    bool   // the handshake is over: crypto/tls reads record and writes nothing
	record  []byte // the input of crypto/tls
}

// Write sends the output of crypto/tls. The first of it is the ClientHello.
func (o *oneByOne) Write(p []byte) (int, error) {
	if o.over {
		return len(p), nil
	}
	if s := o.secrets; s.random == nil && len(p) >= headSize+helloSize {
		s.random = append(s.random, p[headSize+helloSize-32:headSize+helloSize]...)
	}
	return o.Conn.Write(p)
}

// Read reads a record's head or the rest of a record.
func (o *oneByOne) Read(p []byte) (int, error) {
	switch {
	case o.free:
		return o.Conn.Read(p)
	case o.over && len(o.record) == 0:
		return 0, errNoRecord
	case o.over:
		n := copy(p, o.record)
		o.record = o.record[n:]
		return n, nil
	}
	if o.left == 0 && o.have == headSize {
		o.have = 0
	}
	if o.have < headSize {
		n, err := o.Conn.Read(p[:min(len(p), headSize-o.have)])
		copy(o.head[o.have:], p[:n])
		if o.have += n; o.have == headSize {
			o.left = int(o.head[3])<<8 | int(o.head[4])
		}
		return n, err
	}
	n, err := o.Conn.Read(p[:min(len(p), o.left)])
	o.left -= n
	if o.head[0] == typeHandshake {
		o.secrets.sees(p[:n])
	}
	return n, err
}

// secrets takes the secrets after the handshake from crypto/tls: the lines of its key log, and the
// server's first message.
type secrets struct {
	hello          []byte // the beginning of the server's first handshake message
	random         []byte // the client's
	master         []byte // TLS 1.2
	client, server []byte // TLS 1.3: traffic secrets
}

// helloSize is the length of the beginning of a hello, up to its random number: type, length and
// version come first.
const helloSize = 4 + 2 + 32

func (s *secrets) sees(p []byte) {
	if room := helloSize - len(s.hello); room > 0 {
		s.hello = append(s.hello, p[:min(room, len(p))]...)
	}
}

// Write takes a line of the key log.
func (s *secrets) Write(line []byte) (int, error) {
	var label string
	var random, secret []byte
	if _, err := fmt.Fscanf(bytes.NewReader(line), "%s %x %x\n", &label, &random, &secret); err != nil {
		return 0, err
	}
	switch label {
	case "CLIENT_RANDOM":
		s.random, s.master = random, secret
	case "CLIENT_TRAFFIC_SECRET_0":
		s.client = secret
	case "SERVER_TRAFFIC_SECRET_0":
		s.server = secret
	}
	return len(line), nil
}
