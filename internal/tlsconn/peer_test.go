package tlsconn

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"errors"
	"io"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"

	"weir/internal/tcp"
	"weir/internal/tlsconn/tlsconntest"
)

// A Setting is a version of TLS with a cipher suite.
type Setting struct {
	tlsconntest.Suite
	Whole bool // crypto/tls does everything
}

// Settings returns all versions and suites.
func Settings() (all []Setting) {
	for _, s := range tlsconntest.Suites() {
		all = append(all, Setting{Suite: s})
	}
	cbc := tlsconntest.Suite{Name: "1.2 AES-CBC", Version: tls.VersionTLS12, IDs: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA}}
	return append(all, Setting{cbc, true})
}

// On12 is the index in Settings of TLS 1.2 with AES-128-GCM.
const On12 = 3

// An authority signs itself.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

var theAuthority = sync.OnceValue(func() authority {
	a := authority{cert: &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true}}
	cert := a.issue(a.cert)
	a.key = cert.PrivateKey.(*ecdsa.PrivateKey)
	var err error
	if a.cert, err = x509.ParseCertificate(cert.Certificate[0]); err != nil {
		panic(err)
	}
	return a
})

// issue makes a key and signs a certificate for it; an authority without a key signs with the new
// key.
func (a authority) issue(c *x509.Certificate) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	if a.key == nil {
		a.key = key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, key.Public(), a.key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Certificate returns a server's certificate for localhost and 127.0.0.1, changed by change.
func Certificate(change func(*x509.Certificate)) tls.Certificate {
	a := theAuthority()
	c := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "localhost"}, NotBefore: a.cert.NotBefore,
		NotAfter: a.cert.NotAfter, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	change(c)
	return a.issue(c)
}

var usual = sync.OnceValue(func() tls.Certificate { return Certificate(func(*x509.Certificate) {}) })

// ClientConfig returns the configuration of a client of a Peer.
func ClientConfig() *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(theAuthority().cert)
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12, ServerName: "localhost"}
}

// ServerConfig returns the configuration of a server; tickets are sent only by scripts. See tlsconntest.Suite.Limit about TLS 1.3.
func (s Setting) ServerConfig(t testing.TB) *tls.Config {
	conf := &tls.Config{Certificates: []tls.Certificate{usual()}, SessionTicketsDisabled: true}
	s.Limit(t, conf)
	return conf
}

// A Peer is the server's side of a connection after crypto/tls has done the handshake. It sends any records.
type Peer struct {
	*Conn // output: the state for encryption; its conn is nil
	Raw   net.Conn
	TLS   *tls.Conn             // decrypts the client's data; writes nothing
	Asked func(size int) []byte // for protocols other than HTTP: the bytes before a file of the given size
	last  []byte
}

// spied shows the server's first message to secrets.
type spied struct {
	net.Conn
	secrets *secrets
}

func (s spied) Write(p []byte) (int, error) {
	if len(p) > headSize && p[0] == typeHandshake {
		s.secrets.sees(p[headSize:])
	}
	return s.Conn.Write(p)
}

// Accept performs the server's handshake, with the configuration that ServerConfig returned.
func (s Setting) Accept(raw net.Conn, conf *tls.Config) (*Peer, error) {
	from := &secrets{}
	conf = conf.Clone()
	conf.KeyLogWriter = from
	c := tls.Server(spied{raw, from}, conf)
	if err := c.Handshake(); err != nil {
		return nil, err
	}
	p := &Peer{Conn: &Conn{pool: &Pool{}, version: s.Version}, Raw: raw, TLS: c}
	if s.Whole {
		return p, nil
	}
	suite := suiteOf(c.ConnectionState().CipherSuite)
	if s.Version == tls.VersionTLS13 {
		return p, p.out.use13(suite, from.server)
	}
	var other half
	return p, keys12(suite, from, &p.out, &other)
}

// Send sends a record of the type and the content, with padding in TLS 1.3.
func (p *Peer) Send(typ byte, content []byte, padding int) error {
	_, err := p.Raw.Write(p.Seal(typ, content, padding))
	return err
}

// Seal returns the next record.
func (p *Peer) Seal(typ byte, content []byte, padding int) []byte {
	if p.is13() && padding > 0 {
		h := &p.out
		content = append(append(append([]byte{}, content...), typ), make([]byte, padding)...)
		head := binary.BigEndian.AppendUint16([]byte{typeData, 3, 3}, uint16(len(content)+h.aead.Overhead()))
		p.last = append(head, h.aead.Seal(nil, h.nonceOf(nil), content, head)...)
		h.seq++
		return p.last
	}
	p.last = p.seal(make([]byte, 0, headSize+len(content)+64), typ, content)
	return p.last
}

// Update replaces the keys with which the peer sends; if ask is set, the client is requested to do
// the same.
func (p *Peer) Update(ask bool) error {
	message := []byte{messageKeyUpdate, 0, 0, 1, 0}
	if ask {
		message[4] = 1
	}
	if err := p.Send(typeHandshake, message, 0); err != nil {
		return err
	}
	return p.NewKeys()
}

// NewKeys replaces the keys with which the peer sends, without notice to the client.
func (p *Peer) NewKeys() error { return p.out.update() }

// Last returns the record that was sealed last.
func (p *Peer) Last() []byte { return p.last }

// Ticket is a session ticket of so many bytes.
func Ticket(size int) []byte {
	body := append(make([]byte, 8), 1, 7)
	body = binary.BigEndian.AppendUint16(body, uint16(size))
	body = append(append(body, make([]byte, size)...), 0, 0)
	return append([]byte{messageTicket, 0, byte(len(body) >> 8), byte(len(body))}, body...)
}

// Serve has treat handle each connection to the returned port, until the test ends.
func Serve(t testing.TB, treat func(net.Conn)) (port uint16) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				treat(c)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return uint16(l.Addr().(*net.TCPAddr).Port)
}

// connect returns a client's connection to a port.
func connect(t testing.TB, d *tcp.Dialer, port uint16) *Conn {
	t.Helper()
	return connectWith(t, d, port, &Pool{})
}

func connectWith(t testing.TB, d *tcp.Dialer, port uint16, pool *Pool) *Conn {
	t.Helper()
	raw, err := d.Dial(context.Background(), "127.0.0.1", port, time.Now().Add(30*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Client(raw, ClientConfig(), pool)
	if err != nil {
		_ = raw.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func newDialer(t testing.TB) *tcp.Dialer {
	d := tcp.NewDialer(nil)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func ended(err error) bool { return err == nil || errors.Is(err, io.EOF) }
