package tlsconn

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"

	"weir/internal/tcp"
)

// A Setting is a version of TLS with a cipher suite.
type Setting struct {
	Name    string
	Version uint16
	Suite   uint16 // of TLS 1.2
	Whole   bool   // crypto/tls does everything
}

// Settings returns all versions and suites; crypto/tls chooses the suite of TLS 1.3 itself, so only its choice on this
// machine is tested here, and the other suites with nginx.
func Settings() []Setting {
	return []Setting{
		{Name: "1.3", Version: tls.VersionTLS13},
		{Name: "1.2 AES-128-GCM", Version: tls.VersionTLS12, Suite: tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
		{Name: "1.2 AES-256-GCM", Version: tls.VersionTLS12, Suite: tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384},
		{Name: "1.2 ChaCha20", Version: tls.VersionTLS12, Suite: tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256},
		{Name: "1.2 AES-CBC", Version: tls.VersionTLS12, Suite: tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, Whole: true},
	}
}

// certificate is the server's, for localhost and 127.0.0.1, and a pool that trusts it.
var certificate = sync.OnceValues(func() (tls.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		panic(err)
	}
	pool := x509.NewCertPool()
	if c, err = x509.ParseCertificate(der); err != nil {
		panic(err)
	}
	pool.AddCert(c)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
})

// ClientConfig returns what a client of a Peer needs.
func ClientConfig() *tls.Config {
	_, pool := certificate()
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12, ServerName: "localhost"}
}

// ServerConfig returns the configuration of a server; tickets are sent only by scripts.
func (s Setting) ServerConfig() *tls.Config {
	cert, _ := certificate()
	conf := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: s.Version, MaxVersion: s.Version, SessionTicketsDisabled: true}
	if s.Suite != 0 {
		conf.CipherSuites = []uint16{s.Suite}
	}
	return conf
}

// A Peer is the server's side of a connection after crypto/tls has done the handshake. It sends any records.
type Peer struct {
	*Conn // out: what it seals with; its conn is nil
	Raw   net.Conn
	TLS   *tls.Conn // reads what the client sends; writes nothing
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

// Accept performs the server's handshake.
func (s Setting) Accept(raw net.Conn) (*Peer, error) {
	from := &secrets{}
	conf := s.ServerConfig()
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

// Update replaces the keys with which the peer sends; ask asks the client to do the same.
func (p *Peer) Update(ask bool) error {
	message := []byte{messageKeyUpdate, 0, 0, 1, 0}
	if ask {
		message[4] = 1
	}
	if err := p.Send(typeHandshake, message, 0); err != nil {
		return err
	}
	return p.out.update()
}

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
