package diagnosis

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"time"
)

// patience limits the time of one connection to a port.
const patience = 3 * time.Second

// secure reports whether connections of a scheme begin with TLS. Connections of roots:// start TLS
// later.
func secure(scheme string) bool { return scheme == "https" || scheme == "davs" }

// protocol returns the protocol of a scheme, in the words of Diagnosis.Speaks.
func protocol(scheme string) string {
	switch scheme {
	case "http", "https", "dav", "davs":
		return "http"
	case "ftp":
		return "ftp"
	case "root", "roots", "xroot", "xroots":
		return "root"
	}
	return scheme
}

// portOf returns host:port of a target.
func portOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "dav": "80", "https": "443", "davs": "443", "ftp": "21"}[u.Scheme]
	}
	port = cmp.Or(port, "1094")
	return net.JoinHostPort(u.Hostname(), port)
}

// probe detects the protocol at address, and sets Kind if it is not the target's protocol. right is
// true if it is.
func (d *Diagnosis) probe(ctx context.Context, address string) (right bool) {
	scheme := strings.ToLower(d.target.Scheme)
	if protocol(scheme) == "root" && speaksRoot(ctx, address) { // and perhaps http on the same port
		return true
	}
	encrypted, said := speaksTLS(ctx, address)
	if !encrypted && said == "" {
		said = speaks(ctx, address)
	}
	switch {
	case encrypted && protocol(scheme) == "root":
		d.Kind, d.Speaks = OtherProtocol, "TLS"
	case encrypted && !secure(scheme):
		d.Kind = SpeaksTLS
	case encrypted:
	case said != "" && said != protocol(scheme):
		d.Kind, d.Speaks = OtherProtocol, said
	case secure(scheme) && said != "":
		d.Kind = SpeaksNoTLS
	}
	return d.Kind == "" && (encrypted || said != "")
}

// speaksRoot reports whether a port completes the handshake of XRootD.
func speaksRoot(ctx context.Context, address string) bool {
	conn, err := connect(ctx, address)
	if err != nil {
		return false
	}
	defer conn.Close()
	if _, err := conn.Write([]byte{11: 0, 15: 4, 18: 0x07, 19: 0xdc}); err != nil { // 0, 0, 0, 4, 2012
		return false
	}
	first := make([]byte, 8) // stream 0, status 0, and the length of the rest
	_, err = io.ReadFull(conn, first)
	return err == nil && bytes.Equal(first, []byte{7: 8})
}

// speaksTLS reports whether a port responds to the beginning of TLS with TLS, be it an alert. If
// the response is not TLS, said is the name of its protocol.
func speaksTLS(ctx context.Context, address string) (encrypted bool, said string) {
	conn, err := connect(ctx, address)
	if err != nil {
		return false, ""
	}
	defer conn.Close()
	heard := &hearing{Conn: conn}
	host, _, _ := net.SplitHostPort(address)
	err = tls.Client(heard, &tls.Config{ServerName: host, InsecureSkipVerify: true}).HandshakeContext(ctx)
	var alert tls.AlertError
	if err == nil || errors.As(err, &alert) {
		return true, ""
	}
	first := heard.first
	if len(first) > 2 && (first[0] == 0x15 || first[0] == 0x16) && first[1] == 3 { // alert or handshake of TLS
		return true, ""
	}
	return false, named(first)
}

// speaks returns the protocol of a port without TLS, according to its greeting or its response to
// an HTTP request, or "".
func speaks(ctx context.Context, address string) string {
	conn, err := connect(ctx, address)
	if err != nil {
		return ""
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n"); err != nil {
		return ""
	}
	first := make([]byte, 64)
	n, _ := io.ReadAtLeast(conn, first, 8) // only the received bytes count
	return named(first[:n])
}

// named returns the protocol whose servers begin like that.
func named(first []byte) string {
	switch {
	case bytes.HasPrefix(first, []byte("HTTP/")), bytes.HasPrefix(bytes.ToLower(first), []byte("<!doctype html")),
		bytes.HasPrefix(bytes.ToLower(first), []byte("<html")):
		return "http"
	case bytes.HasPrefix(first, []byte("220")):
		return "ftp"
	case bytes.HasPrefix(first, []byte("SSH-")):
		return "ssh"
	}
	return ""
}

func connect(ctx context.Context, address string) (net.Conn, error) {
	deadline := time.Now().Add(patience)
	conn, err := (&net.Dialer{Deadline: deadline}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return conn, conn.SetDeadline(deadline)
}

// A hearing keeps the first bytes that come.
type hearing struct {
	net.Conn
	first []byte
}

// Read implements net.Conn.
func (h *hearing) Read(p []byte) (int, error) {
	n, err := h.Conn.Read(p)
	if room := 64 - len(h.first); room > 0 {
		h.first = append(h.first, p[:min(n, room)]...)
	}
	return n, err
}
