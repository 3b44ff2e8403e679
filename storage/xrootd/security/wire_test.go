package security_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/trust"
	"weir/lab"
	"weir/storage"
	"weir/storage/xrootd/security"
)

// The numbers of the protocol that a login needs.
const (
	kXRAuth, kXRProtocol, kXRLogin = 3000, 3006, 3007
	kXROK, kXRAuthMore, kXRError   = 0, 4002, 4003
)

// A wire is a connection for one login, without the driver.
type wire struct{ net.Conn }

// ask sends a request and returns status and body of the response.
func (w wire) ask(id uint16, parameters [16]byte, data []byte) (uint16, []byte, error) {
	b := binary.BigEndian.AppendUint16([]byte{0, 1}, id)
	b = append(b, parameters[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(data)))
	if _, err := w.Write(append(b, data...)); err != nil {
		return 0, nil, err
	}
	return w.answer()
}

func (w wire) answer() (uint16, []byte, error) {
	var head [8]byte
	if _, err := io.ReadFull(w, head[:]); err != nil {
		return 0, nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(head[4:])&0xffff)
	_, err := io.ReadFull(w, body)
	return binary.BigEndian.Uint16(head[2:]), body, err
}

// connect sends the handshake to the server, with TLS if the system has it.
func connect(ctx context.Context, s *lab.System) (wire, error) {
	c, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", s.Servers[0].Address)
	if err != nil {
		return wire{}, err
	}
	w := wire{c}
	if err := w.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return w, err
	}
	if _, err := w.Write([]byte("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00\x00\x07\xdc")); err != nil {
		return w, err
	}
	if _, _, err := w.answer(); err != nil {
		return w, err
	}
	version := [16]byte{0, 0, 5, 0x11, 0x02, 0x03} // able to do TLS; a login comes next
	secure := s.CAFile != ""
	if secure {
		version[4] |= 0x04 // requests TLS
	}
	status, _, err := w.ask(kXRProtocol, version, nil)
	if err == nil && status != kXROK {
		err = fmt.Errorf("protocol: status %d", status)
	}
	if err != nil || !secure {
		return w, err
	}
	pool, err := trust.Authorities(s.CAFile)
	return wire{tls.Client(c, &tls.Config{RootCAs: pool, ServerName: "localhost"})}, err
}

// login does a whole login like the drivers, and returns the method's hint about a refusal.
func login(ctx context.Context, s *lab.System, methods []security.Method) (string, error) {
	w, err := connect(ctx, s)
	if w.Conn != nil {
		defer w.Close()
	}
	if err != nil {
		return "", err
	}
	status, body, err := w.ask(kXRLogin, [16]byte{0, 0, 0, 1, 't', 'e', 's', 't', 0, 0, 0, 0, 0, 0, 0x05}, nil)
	if err != nil {
		return "", err
	}
	if status != kXROK || len(body) < 16 {
		return "", fmt.Errorf("login: status %d", status)
	}
	_, secure := w.Conn.(*tls.Conn)
	m, parameters, err := security.Pick(string(body[16:]), secure, methods)
	if err != nil {
		return "", err
	}
	if m == nil {
		return "", fmt.Errorf("the server asks for no proof: %q", body[16:])
	}
	e, err := m.Begin(ctx, security.Server{Host: "localhost", Parameters: parameters, Secure: secure})
	if err != nil {
		return "", err
	}
	return security.Hint(e), w.prove(m.Name(), e)
}

func (w wire) prove(name string, e security.Exchange) error {
	var kind [16]byte
	copy(kind[12:], name)
	var challenge []byte
	for range 5 {
		message, err := e.Next(challenge)
		if err != nil {
			return err
		}
		status, body, err := w.ask(kXRAuth, kind, message)
		switch {
		case err != nil:
			return err
		case status == kXROK:
			return nil
		case status == kXRError && len(body) > 4:
			return fmt.Errorf("the server says %d: %s", binary.BigEndian.Uint32(body), strings.TrimRight(string(body[4:]), "\x00"))
		case status != kXRAuthMore:
			return fmt.Errorf("auth: status %d", status)
		}
		challenge = body
	}
	return errors.New("the server never has enough")
}

// credentials returns the credentials of the lab's settings, after change.
func credentials(t *testing.T, s *lab.System, change func(*storage.Auth)) storage.Credentials {
	t.Helper()
	b, err := json.Marshal(s.Settings)
	require.NoError(t, err)
	var a storage.Auth
	require.NoError(t, json.Unmarshal(b, &a))
	if change != nil {
		change(&a)
	}
	cred, err := a.Read()
	require.NoError(t, err)
	return cred
}

// methods returns the methods for credentials.
func methods(t *testing.T, cred storage.Credentials) []security.Method {
	t.Helper()
	m, err := security.New(cred)
	require.NoError(t, err)
	return m
}
