package ftp

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"time"

	"weir/internal/tcp"
	"weir/storage"
	"weir/storage/gridcert"
	"weir/storage/wireclient"
)

// A grid is the common state of logins with certificates.
type grid struct {
	source   *gridcert.Source
	trust    *gridcert.Trust
	names    *gridcert.Names
	delegate bool
	data     storage.DataChannel
}

// newGrid reads the proxy, so that mistakes are detected before a run begins.
func newGrid(t storage.Target) (*grid, error) {
	g := &grid{
		source: gridcert.NewSource(t.Cred.From), trust: gridcert.NewTrust(t.Cred.From), names: gridcert.NewNames("", "", false),
		delegate: t.Cred.From.Delegate, data: t.Cred.From.DataChannel,
	}
	switch g.data {
	case "":
		g.data = storage.ClearData
	case storage.ClearData:
	case storage.AuthenticatedData, storage.SafeData, storage.PrivateData:
		g.delegate = true // the data server presents the delegated proxy
	default:
		return nil, fmt.Errorf("auth.data_channel %q: use clear, authenticated, safe or private", g.data)
	}
	if _, err := g.source.Current(time.Now()); err != nil {
		return nil, err
	}
	return g, nil
}

// verify checks the certificate of the server at host.
func (g *grid) verify(shown [][]byte, host string) error {
	cert, err := x509.ParseCertificate(shown[0]) // package tls refuses a server without certificates
	if err != nil {
		return wireclient.ProtocolError("the server's certificate: %v", err)
	}
	now := time.Now()
	if err := g.trust.Verify(cert, now); err != nil || g.trust.Insecure {
		return err
	}
	return g.names.Check(cert, host, "", now)
}

// config returns a configuration that presents a proxy. The caller sets VerifyPeerCertificate:
// package x509 does not support proxies and folders of authorities.
//
// TLS 1.2 is the version that all versions of Globus support, and in it the last token of a
// handshake is the server's.
func config(id *gridcert.Identity) *tls.Config {
	shown := &tls.Certificate{PrivateKey: id.Key, Leaf: id.Chain[0]}
	for _, cert := range id.Chain {
		shown.Certificate = append(shown.Certificate, cert.Raw)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12, SessionTicketsDisabled: true,
		InsecureSkipVerify:   true, // see above
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return shown, nil },
	}
}

// encrypts reports whether data is encrypted, or at least signed.
func (g *grid) encrypts() bool { return g.data == storage.SafeData || g.data == storage.PrivateData }

// A channel is the security context of a session: commands and replies are TLS records in base64 (RFC 2228, GFD.20).
type channel struct {
	tls  *tls.Conn
	pipe tokens
	id   *gridcert.Identity // identity of the login
}

// authenticate secures the control connection: AUTH GSSAPI, then ADAT until both sides are
// authenticated.
func (x *control) authenticate() error {
	g := x.c.s.grid
	id, err := g.source.Current(time.Now())
	if err != nil {
		return err
	}
	if err := x.say("AUTH ", "GSSAPI"); err != nil {
		return err
	}
	if x.reply.code != 334 {
		err := x.refusal()
		if unknown(err) || x.reply.code == 504 || x.reply.code == 534 {
			return fmt.Errorf("the server admits no certificates (AUTH GSSAPI: %w): use an ftp:// URL, without auth.method x509", err)
		}
		return while("AUTH GSSAPI", err)
	}
	x.reply.limit = maxReply
	defer func() { x.reply.limit, x.reply.text = 0, x.reply.text[:0:min(cap(x.reply.text), keptText)] }()
	ch := &channel{id: id}
	ch.pipe.exchange = x.exchange
	conf := config(id)
	conf.VerifyPeerCertificate = func(shown [][]byte, _ [][]*x509.Certificate) error { return g.verify(shown, x.c.s.host) }
	ch.tls = tls.Client(&ch.pipe, conf)
	if err := ch.tls.Handshake(); err != nil {
		return handshakeError(err)
	}
	if err := x.delegate(ch); err != nil {
		return err
	}
	if err := x.lastToken(ch); err != nil {
		return err
	}
	ch.pipe.exchange, ch.pipe.out, ch.pipe.in = nil, nil, nil
	x.c.channel = ch
	return nil
}

// exchange sends a token and returns the server's.
func (x *control) exchange(token []byte) ([]byte, error) {
	if err := x.adat(token); err != nil {
		return nil, err
	}
	text, ok := bytes.CutPrefix(x.reply.line(0), []byte("ADAT="))
	if x.reply.code != 335 || !ok {
		return nil, wireclient.ProtocolError("unexpected reply %d %q to ADAT", x.reply.code, clip(x.reply.line(0), 60))
	}
	return appendToken(nil, text)
}

func (x *control) adat(token []byte) error {
	x.Hold()
	b := base64.StdEncoding.AppendEncode(append(x.Data[:0], "ADAT "...), token)
	if err := x.send(b); err != nil {
		return err
	}
	if x.reply.code >= 400 {
		return x.refusal()
	}
	return nil
}

// The bytes that the initiator of a GSI handshake sends at its end.
const delegateNothing, delegateProxy = '0', 'D'

// delegate sends the byte that indicates whether a proxy is delegated, and then signs a proxy for
// the key that the server has generated.
func (x *control) delegate(ch *channel) error {
	if !x.c.s.grid.delegate {
		_, err := ch.tls.Write([]byte{delegateNothing})
		return err
	}
	if _, err := ch.tls.Write([]byte{delegateProxy}); err != nil {
		return err
	}
	request, err := readDER(ch.tls.Read)
	if err != nil {
		return while("delegation", handshakeError(err))
	}
	proxy, err := ch.id.Delegate(request, time.Now())
	if err != nil {
		return while("delegation", err)
	}
	_, err = ch.tls.Write(proxy)
	return err
}

// maxRequest is more than the number of bytes of a certificate request.
const maxRequest = 16 << 10

// readDER reads one element of DER.
func readDER(read func([]byte) (int, error)) ([]byte, error) {
	var all []byte
	buf := make([]byte, 4<<10)
	for len(all) < maxRequest {
		n, err := read(buf)
		if err != nil {
			return nil, err
		}
		all = append(all, buf[:n]...)
		var one asn1.RawValue
		if rest, err := asn1.Unmarshal(all, &one); err == nil && len(rest) == 0 {
			return all, nil
		}
	}
	return nil, wireclient.ProtocolError("a request for a proxy of more than %d bytes", maxRequest)
}

// lastToken sends the last token, with which the server can authenticate the client.
func (x *control) lastToken(ch *channel) error {
	if err := x.adat(ch.pipe.out); err != nil {
		return err
	}
	if x.reply.code != 235 {
		return wireclient.ProtocolError("unexpected reply %d %q to the last ADAT", x.reply.code, clip(x.reply.line(0), 60))
	}
	return nil
}

// handshakeError assigns a class to an error of package tls: malformed data of a server is a
// protocol error.
func handshakeError(err error) error {
	var alert *net.OpError
	var refused *replyError
	switch {
	case errors.As(err, &refused), errors.Is(err, fs.ErrPermission), errors.Is(err, storage.ErrProtocol),
		storage.Classify(err) != storage.Other:
		return err
	case errors.As(err, &alert) && alert.Op == "remote error": // an alert of TLS
		return fmt.Errorf("the server ends the TLS handshake: %w: %w", err, fs.ErrPermission)
	}
	return wireclient.ProtocolError("TLS handshake: %v", err)
}

// account logs in to the account mapped to the certificate, or to the account auth.user, and
// configures the security of data connections.
func (x *control) account() error {
	s := x.c.s
	if err := x.say("USER ", s.user); err != nil {
		return err
	}
	if x.reply.code == 331 {
		if err := x.say("PASS ", s.pass); err != nil {
			return err
		}
	}
	if x.reply.code/100 != 2 {
		return x.refusal()
	}
	mode, level := "N", ""
	switch s.grid.data {
	case storage.AuthenticatedData:
		mode, level = "A", "C"
	case storage.SafeData:
		mode, level = "A", "S"
	case storage.PrivateData:
		mode, level = "A", "P"
	}
	if err := x.done(x.say("DCAU ", mode)); err != nil && (mode != "N" || !unknown(err)) {
		return while("DCAU "+mode, err)
	}
	if level == "" {
		return nil
	}
	if err := x.done(x.say("PBSZ ", "1048576")); err != nil {
		return while("PBSZ", err)
	}
	if err := x.done(x.say("PROT ", level)); err != nil {
		return while("PROT "+level, err)
	}
	return nil
}

// protect encrypts a command.
func (ch *channel) protect(b, command []byte) ([]byte, error) {
	ch.pipe.out = ch.pipe.out[:0]
	if _, err := ch.tls.Write(command); err != nil {
		return b, err
	}
	b = base64.StdEncoding.AppendEncode(append(b, "ENC "...), ch.pipe.out)
	ch.pipe.out = nil // idle clients hold no buffer
	return b, nil
}

// unprotect appends the text of a reply to plain. token is the buffer in which the reply is
// decoded.
func (ch *channel) unprotect(plain, token []byte) ([]byte, error) {
	ch.pipe.in, ch.pipe.limit = token, recordLimit{}
	defer func() { ch.pipe.in = nil }()
	for len(ch.pipe.in) > 0 {
		plain = slices.Grow(plain, len(token))
		n, err := ch.tls.Read(plain[len(plain):cap(plain)])
		if err != nil {
			return plain, handshakeError(while("a protected reply", err))
		}
		plain = plain[:len(plain)+n]
	}
	return plain, nil
}

// securesData reports whether data connections are secured.
func (s *service) securesData() bool { return s.grid != nil && s.grid.data != storage.ClearData }

// secure secures a data connection that the client opened: both sides present the proxy or a proxy
// delegated from it. It returns nil if the data that follows is in the clear.
func (g *grid) secure(conn *tcp.Conn, id *gridcert.Identity) (*tls.Conn, error) {
	conf := config(id)
	conf.VerifyPeerCertificate = func(shown [][]byte, _ [][]*x509.Certificate) error { return derived(shown, id) }
	secured := tls.Client(&dataRecords{Conn: conn}, conf)
	err := secured.Handshake()
	if err == nil && !g.encrypts() { // Globus expects the end of GSI's handshake, but not if TLS continues
		_, err = secured.Write([]byte{delegateNothing})
		secured = nil
	}
	if err != nil {
		return nil, while("data connection", handshakeError(err))
	}
	return secured, nil
}

// derived returns an error unless certificates lead to the proxy of id: its own key has signed the
// last certificate before it.
func derived(shown [][]byte, id *gridcert.Identity) error {
	signer := id.Chain[0]
	at := 0
	for at < len(shown) && !bytes.Equal(shown[at], signer.Raw) {
		at++
	}
	if at == len(shown) {
		return gridcert.Refuse("the data server has another identity than the proxy that was delegated to it")
	}
	for at--; at >= 0; at-- {
		cert, err := x509.ParseCertificate(shown[at])
		if err != nil {
			return wireclient.ProtocolError("the data server's certificate: %v", err)
		}
		if err := signer.CheckSignature(cert.SignatureAlgorithm, cert.RawTBSCertificate, cert.Signature); err != nil {
			return gridcert.Refuse("the data server's certificate is not signed by the proxy that was delegated to it: %v", err)
		}
		signer = cert
	}
	return nil
}
