package tlsconn_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	. "weir/internal/tlsconn"
	"weir/storage"
	"weir/storage/webdav"
)

const (
	pieces    = 12
	pieceSize = 16 << 10
	fileSize  = pieces * pieceSize
)

// A hostile is a server with a fault: before, in or after the handshake.
type hostile struct {
	raw    func(net.Conn)
	under  func(net.Conn) net.Conn // the connection below the server's TLS
	conf   func(*tls.Config)       // of the client
	server func(*tls.Config)
	after  func(*Peer)
	first  bool // the fault is instead of an answer
	on12   bool // TLS 1.2
	verify bool
	size   int // of the file, if it is not fileSize
	class  storage.Class
	text   string
}

// inHandshake reports whether the fault does not depend on the cipher suite.
func (h *hostile) inHandshake() bool { return h.after == nil }

// head returns the bytes before a file of the given size.
func head(p *Peer, size int) []byte {
	if p.Asked != nil {
		return p.Asked(size)
	}
	return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", size)
}

// body sends the head and pieces of the body, the last of which is left to the fault.
func body(fault func(p *Peer)) func(*Peer) {
	return func(p *Peer) {
		_ = p.Send(23, head(p, fileSize), 0)
		for range pieces - 1 {
			_ = p.Send(23, make([]byte, pieceSize), 0)
		}
		fault(p)
	}
}

// begun sends the head and half of the body before the fault.
func begun(fault func(p *Peer)) func(*Peer) {
	return func(p *Peer) {
		_ = p.Send(23, head(p, fileSize), 0)
		for range pieces / 2 {
			_ = p.Send(23, make([]byte, pieceSize), 0)
		}
		fault(p)
	}
}

func reset(c net.Conn) {
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}

// stall waits until the client has gone.
func stall(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

func last(p *Peer) []byte { return p.Seal(23, make([]byte, pieceSize), 0) }

func send(p *Peer, record []byte) { _, _ = p.Raw.Write(record) }

func hello(c net.Conn) { _, _ = c.Read(make([]byte, 4096)) }

// say answers the client's first message with text.
func say(text string) func(net.Conn) {
	return func(c net.Conn) {
		hello(c)
		_, _ = io.WriteString(c, text)
		_ = c.(*net.TCPConn).CloseWrite()
		stall(c)
	}
}

func record(typ byte, content string) func(*Peer) {
	return func(p *Peer) { _ = p.Send(typ, []byte(content), 0) }
}

// A meddler changes the first bytes that a server writes, or holds some of them back.
type meddler struct {
	net.Conn
	meddle func([]byte) []byte
}

func (m *meddler) Write(p []byte) (int, error) {
	if m.meddle == nil {
		return m.Conn.Write(p)
	}
	changed := m.meddle(bytes.Clone(p))
	m.meddle = nil
	if _, err := m.Conn.Write(changed); err != nil || len(changed) == len(p) {
		return len(p), err
	}
	_ = m.Close() // the rest is missing
	return 0, net.ErrClosed
}

func meddling(f func([]byte) []byte) func(net.Conn) net.Conn {
	return func(c net.Conn) net.Conn { return &meddler{c, f} }
}

// altering flips a bit of the first bytes that the server writes: of the byte at an index, counted
// from the end if it is negative.
func altering(at int) func(net.Conn) net.Conn {
	return meddling(func(b []byte) []byte {
		b[(at+len(b))%len(b)] ^= 1
		return b
	})
}

// with has the server present a certificate that is changed.
func with(change func(*x509.Certificate)) func(*tls.Config) {
	return func(c *tls.Config) { c.Certificates = []tls.Certificate{Certificate(change)} }
}

// hostiles returns all faults.
func hostiles() map[string]hostile {
	all := map[string]hostile{}
	for _, some := range []map[string]hostile{handshakes(), begins(), bodies(), messages(), verified()} {
		for name, h := range some {
			if h.class == 0 {
				h.class = storage.Other
			}
			if h.size == 0 {
				h.size = fileSize
			}
			if h.after != nil && begins()[name].after != nil {
				h.first = true
			}
			all[name] = h
			if h.on12 || h.inHandshake() || strings.HasPrefix(name, "1.3: ") {
				continue
			}
			h.on12 = true
			all["1.2: "+name] = h
		}
	}
	return all
}

// handshakes are faults before TLS has begun, and in its handshake.
func handshakes() map[string]hostile {
	expired := func(c *tls.Config) { c.Time = func() time.Time { return time.Now().Add(72 * time.Hour) } }
	asks := func(c *tls.Config) { c.ClientAuth = tls.RequireAnyClientCert }
	return map[string]hostile{
		"closes after the hello": {raw: say(""), class: storage.Short},
		"no TLS":                 {raw: say("HTTP/1.1 400 Bad Request\r\n\r\n"), text: "TLS handshake"},
		"other bytes":            {raw: say(strings.Repeat("\x16\x03\x03\x00\x04\xff\xff\xff\xff", 9))},
		"an alert":               {raw: say("\x15\x03\x03\x00\x02\x02\x28"), text: "handshake failure"},
		"half a hello":           {raw: say("\x16\x03\x03\x00\x7a\x02\x00\x00\x76\x03\x03"), class: storage.Short},
		"a hello without end":    {raw: say(strings.Repeat("\x16\x03\x03\x00\x06\x02\xff\xff\xff\x03\x03", 3000))},
		"resets the handshake":   {raw: func(c net.Conn) { hello(c); reset(c) }, class: storage.Reset},
		"stalls the handshake":   {raw: stall, class: storage.Timeout},

		"unknown authority":        {conf: func(c *tls.Config) { c.RootCAs = x509.NewCertPool() }, text: "unknown authority"},
		"another name":             {conf: func(c *tls.Config) { c.ServerName = "other.example" }, text: "other.example"},
		"expired certificate":      {conf: expired, text: "expired"},
		"not yet valid":            {server: with(future), text: "not yet valid"},
		"a certificate of clients": {server: with(clientsOnly), text: "incompatible key usage"},
		"no alternative name":      {server: with(func(c *x509.Certificate) { c.DNSNames, c.IPAddresses = nil, nil }), text: "Common Name"},
		"a key of another certificate": {text: "invalid signature", server: func(c *tls.Config) {
			c.Certificates[0].PrivateKey = Certificate(func(*x509.Certificate) {}).PrivateKey
		}},
		"an old version":              {server: old, text: "version"},
		"no common suite":             {server: rsaOnly, on12: true, text: "handshake failure"},
		"asks for a certificate":      {server: asks, text: "certificate required"},
		"1.2: asks for a certificate": {server: asks, on12: true, text: "handshake failure"},

		"hello altered":          {under: altering(20), text: "bad record MAC"},
		"Finished altered":       {under: altering(-1), text: "bad record MAC"},
		"1.2: signature altered": {under: altering(-20), on12: true, text: "invalid signature"},
		"half a flight":          {under: meddling(func(b []byte) []byte { return b[:len(b)/2] }), class: storage.Short},
	}
}

func old(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }

func rsaOnly(c *tls.Config) { c.CipherSuites = []uint16{tls.TLS_RSA_WITH_AES_128_GCM_SHA256} }

func future(c *x509.Certificate) { c.NotBefore = c.NotAfter.Add(-time.Second) }

func clientsOnly(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }

// begins are faults instead of an answer.
func begins() map[string]hostile {
	return map[string]hostile{
		"closes without an answer": {after: func(p *Peer) { _ = p.Raw.Close() }, class: storage.Reset},
		"says goodbye":             {after: record(21, "\x01\x00"), class: storage.Reset},
		"refuses by an alert":      {after: record(21, "\x02\x74"), text: "certificate required"},
		"stalls":                   {after: func(*Peer) {}, class: storage.Timeout},
		"answers in the clear":     {after: func(p *Peer) { send(p, head(p, fileSize)) }, text: "version"},
		"head altered": {text: "not authentic", after: func(p *Peer) {
			r := p.Seal(23, head(p, fileSize), 0)
			r[len(r)-9] ^= 1
			send(p, r)
		}},
		"head repeated": {text: "not authentic", after: func(p *Peer) {
			r := p.Seal(23, head(p, fileSize), 0)
			send(p, r)
			send(p, r)
		}},
	}
}

// bodies are faults in a body: of the connection, and of records that are cut off, altered, lost, added and too many.
func bodies() map[string]hostile {
	return map[string]hostile{
		"stalls in the body":  {after: begun(func(*Peer) {}), class: storage.Timeout},
		"stalls in a record":  {after: begun(func(p *Peer) { send(p, last(p)[:9000]) }), class: storage.Timeout},
		"stalls in a head":    {after: begun(func(p *Peer) { send(p, last(p)[:3]) }), class: storage.Timeout},
		"resets in the body":  {after: begun(func(p *Peer) { reset(p.Raw) }), class: storage.Reset},
		"closes in the body":  {after: begun(func(p *Peer) { _ = p.Raw.Close() }), class: storage.Short},
		"closes in a record":  {after: begun(func(p *Peer) { send(p, last(p)[:9000]); _ = p.Raw.Close() }), class: storage.Short},
		"closes in a head":    {after: begun(func(p *Peer) { send(p, last(p)[:3]); _ = p.Raw.Close() }), class: storage.Short},
		"goodbye in the body": {after: begun(record(21, "\x01\x00")), class: storage.Short},
		"alert in the body":   {after: begun(record(21, "\x02\x50")), text: "internal error"},
		"last record altered": {after: body(func(p *Peer) { r := last(p); r[99] ^= 1; send(p, r) }), text: "not authentic"},
		"last tag altered":    {after: body(func(p *Peer) { r := last(p); r[len(r)-1] ^= 1; send(p, r) }), text: "not authentic"},
		"record repeated":     {after: body(func(p *Peer) { r := last(p); send(p, r); send(p, r) })},
		"a record is lost":    {after: body(func(p *Peer) { last(p); send(p, last(p)) }), text: "not authentic"},
		"a record is added": {text: "not authentic", after: begun(func(p *Peer) {
			r := last(p)
			send(p, r)
			send(p, r)
			body(func(p *Peer) { send(p, last(p)) })(p)
		})},
		"a record too long":  {after: begun(func(p *Peer) { send(p, []byte{23, 3, 3, 0x48, 1}) }), text: "more than"},
		"content too long":   {after: begun(func(p *Peer) { send(p, p.Seal(23, make([]byte, pieceSize+1), 0)) }), text: "bytes of content"},
		"an empty record":    {after: begun(func(p *Peer) { send(p, []byte{23, 3, 3, 0, 0}) })},
		"a record too short": {after: begun(func(p *Peer) { send(p, []byte{23, 3, 3, 0, 3, 1, 2, 3}) })},
		"another version":    {after: begun(func(p *Peer) { send(p, append([]byte{23, 3, 4}, last(p)[3:]...)) }), text: "version"},
		"in the clear":       {after: begun(func(p *Peer) { send(p, bytes.Repeat([]byte("plain "), 999)) }), text: "version"},
		"more than announced": {after: body(func(p *Peer) {
			_ = p.Send(23, make([]byte, pieceSize), 0)
			_ = p.Send(23, []byte("x"), 0)
		})},
		"more in the last record": {text: "more payload than", after: func(p *Peer) {
			_ = p.Send(23, head(p, fileSize), 0)
			for range pieces + 1 {
				_ = p.Send(23, make([]byte, pieceSize-100), 0)
			}
		}},
		// 12 records of seemingly 16,000 bytes, one of them shorter.
		"1.3: padded here and there": {size: 12 * 16000, text: "more payload than", after: func(p *Peer) {
			_ = p.Send(23, head(p, 12*16000), 0)
			for i := range 11 {
				pad := 0
				if i == 5 {
					pad = 500
				}
				_ = p.Send(23, make([]byte, 16000-pad), pad)
			}
			end := append([]byte{}, p.Seal(23, make([]byte, 16000), 0)...)
			send(p, append(end, p.Seal(23, make([]byte, 500), 0)...))
		}},
	}
}

// messages are records within a body that are no payload.
func messages() map[string]hostile {
	repeated := func(n int, f func(*Peer)) func(*Peer) {
		return begun(func(p *Peer) {
			for range n {
				f(p)
			}
		})
	}
	return map[string]hostile{
		"an unknown type":           {after: begun(record(99, "x")), text: "type 99"},
		"an unknown message":        {after: begun(record(22, "\x0d\x00\x00\x00")), text: "type 13"},
		"a short alert":             {after: begun(record(21, "\x02")), text: "alert"},
		"nothing without end":       {after: repeated(20, func(p *Peer) { _ = p.Send(23, nil, 0) }), text: "without payload"},
		"a message too long":        {after: begun(record(22, "\x04\xff\xff\xff")), text: "bytes"},
		"an empty message":          {after: begun(record(22, "")), text: "type 22"},
		"1.3: a bad key update":     {after: begun(record(22, "\x18\x00\x00\x01\x07")), text: "type 24"},
		"1.3: an update in between": {after: begun(record(22, "\x18\x00\x00\x01\x00\x04")), text: "type 24"},
		"1.3: an update, but old keys": {text: "not authentic", after: body(func(p *Peer) {
			record(22, "\x18\x00\x00\x01\x00")(p)
			send(p, last(p))
		})},
		"1.3: new keys, but no update": {text: "not authentic", after: body(func(p *Peer) {
			_ = p.NewKeys()
			send(p, last(p))
		})},
		"1.3: updates without end":    {after: repeated(20, func(p *Peer) { _ = p.Update(false) }), text: "without payload"},
		"1.3: tickets without end":    {after: repeated(20, func(p *Peer) { _ = p.Send(22, Ticket(100), 0) }), text: "without payload"},
		"1.3: a bad change of cipher": {after: begun(func(p *Peer) { send(p, []byte{20, 3, 3, 0, 1, 2}) }), text: "change_cipher_spec"},
		"1.3: changes of cipher without end": {text: "without payload",
			after: repeated(20, func(p *Peer) { send(p, []byte{20, 3, 3, 0, 1, 1}) })},
		"1.3: an alert in the clear":   {after: begun(func(p *Peer) { send(p, []byte{21, 3, 3, 0, 2, 1, 0}) }), text: "not authentic"},
		"1.3: padding alone":           {after: begun(func(p *Peer) { send(p, p.Seal(0, nil, 100)) }), text: "padding"},
		"1.3: a message within a body": {after: begun(func(p *Peer) { record(22, "\x04\x00")(p); send(p, last(p)) }), text: "message"},
		"1.3: an alert within a message": {text: "message",
			after: begun(func(p *Peer) { record(22, "\x04\x00")(p); record(21, "\x01\x5a")(p) })},

		"1.2: renegotiation":        {after: begun(record(22, "\x00\x00\x00\x00")), on12: true, text: "renegotiation"},
		"1.2: a second handshake":   {after: begun(record(22, "\x02\x00\x00\x00")), on12: true, text: "type 2"},
		"1.2: a key update":         {after: begun(record(22, "\x18\x00\x00\x01\x00")), on12: true, text: "type 24"},
		"1.2: change of cipher":     {after: begun(record(20, "\x01")), on12: true, text: "type 20"},
		"1.2: warnings without end": {after: repeated(20, record(21, "\x01\x5a")), on12: true, text: "without payload"},
	}
}

// verified are faults while everything is decrypted.
func verified() map[string]hostile {
	all := map[string]hostile{
		"a record altered": {text: "not authentic", after: begun(func(p *Peer) {
			r := last(p)
			r[99] ^= 1
			send(p, r)
			stall(p.Raw)
		})},
		"a record is lost":   {after: begun(func(p *Peer) { last(p); send(p, last(p)); stall(p.Raw) }), text: "not authentic"},
		"a record is added":  {after: begun(func(p *Peer) { send(p, p.Last()); stall(p.Raw) }), text: "not authentic"},
		"closes in a record": {after: begun(func(p *Peer) { send(p, last(p)[:9000]); _ = p.Raw.Close() }), class: storage.Short},
		"stalls in a record": {after: begun(func(p *Peer) { send(p, last(p)[:9000]) }), class: storage.Timeout},
		"records change places": {text: "not authentic", after: begun(func(p *Peer) {
			one := bytes.Clone(last(p))
			send(p, last(p))
			send(p, one)
		})},
	}
	named := map[string]hostile{}
	for name, h := range all {
		h.verify = true
		named["verified, "+name] = h
	}
	return named
}

// TestHostileServers has servers with one fault each, with each suite. Each must end in one error of the expected class, in time.
func TestHostileServers(t *testing.T) {
	for i, s := range Settings() {
		if s.Whole {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			conf := s.ServerConfig(t)
			n := 0
			for name, h := range hostiles() {
				if h.on12 != (s.Version == tls.VersionTLS12) || h.inHandshake() && i != 0 && i != On12 {
					continue
				}
				n++
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					h.meet(t, s, conf)
				})
			}
			if n < 30 {
				t.Errorf("%d faults", n)
			}
		})
	}
}

// serve has the fault on each connection.
func (h *hostile) serve(t *testing.T, s Setting, conf *tls.Config) (port uint16) {
	conf = h.configured(conf)
	return Serve(t, func(raw net.Conn) {
		defer stall(raw)
		p := h.accept(s, raw, conf)
		if p == nil {
			return
		}
		if _, err := p.TLS.Read(make([]byte, 4096)); err == nil {
			h.after(p)
		}
	})
}

// configured returns the server's configuration.
func (h *hostile) configured(conf *tls.Config) *tls.Config {
	conf = conf.Clone()
	conf.Certificates = slices.Clone(conf.Certificates)
	if h.server != nil {
		h.server(conf)
	}
	return conf
}

// accept performs the handshake, or has the fault before or in it and returns nil.
func (h *hostile) accept(s Setting, raw net.Conn, conf *tls.Config) *Peer {
	if h.raw != nil {
		h.raw(raw)
		return nil
	}
	under := raw
	if h.under != nil {
		under = h.under(raw)
	}
	p, err := s.Accept(under, conf)
	if err != nil || h.after == nil {
		return nil
	}
	return p
}

// meet has a client read from the server.
func (h *hostile) meet(t *testing.T, s Setting, conf *tls.Config) {
	h.meetAt(t, webdav.Driver(), fmt.Sprintf("https://127.0.0.1:%d", h.serve(t, s, conf)), false)
}

// meetAt has a client of a driver read from the server at a URL. If it mends, the client may get all of the file in spite of the fault.
func (h *hostile) meetAt(t *testing.T, d storage.Driver, target string, mends bool) {
	trust := ClientConfig()
	if h.conf != nil {
		h.conf(trust)
	}
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	service, err := d.Open(t.Context(), storage.Target{URL: u, Cred: storage.Credentials{TLS: trust}})
	if err != nil {
		t.Fatal(err)
	}
	client := service.Client()
	op := &storage.Op{Kind: storage.Read, Path: "file", Size: -1, Plain: true, Timeout: 20 * time.Second}
	if h.class == storage.Timeout {
		op.Timeout = 300 * time.Millisecond
	}
	if h.verify {
		op.Sum = "adler32"
	}
	seen := &counter{}
	res, err := client.Do(t.Context(), op, seen)
	got := storage.Classify(err)
	switch {
	case mends && err == nil:
		if seen.moved != int64(h.size) {
			t.Errorf("%d bytes counted, the file has %d", seen.moved, h.size)
		}
	case mends, got == h.class && strings.Contains(fmt.Sprint(err), h.text):
	default:
		// More may come too late to be noticed by this operation; the next one fails then.
		if _, err2 := client.Do(t.Context(), op, &counter{}); err != nil || h.text != "" || err2 == nil {
			t.Errorf("class %v, expected %v and %q: %v", got, h.class, h.text, err)
		}
	}
	if seen.moved > int64(h.size) || res.Discarded > seen.moved || h.verify && res.Discarded > 0 {
		t.Errorf("%d bytes counted and %d discarded, the file has %d", seen.moved, res.Discarded, h.size)
	}
	if err := errors.Join(client.Close(), service.Close()); err != nil {
		t.Error(err)
	}
}

type counter struct{ moved int64 }

func (*counter) Reached(storage.Phase) {}
func (c *counter) Moved(n int)         { c.moved += int64(n) }
func (*counter) ServedBy(string)       {}
