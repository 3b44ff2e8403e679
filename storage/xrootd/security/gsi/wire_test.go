package gsi

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"weir/storage/xrootd/security"
)

// Numbers of XProtocol.hh.
const (
	kxrAuth     = 3000
	kxrProtocol = 3006
	kxrLogin    = 3007
	kxrStat     = 3017
	kxrOK       = 0
	kxrAuthMore = 4002
	kxrError    = 4003
)

// A session is the minimal part of the XRootD protocol for a login.
type session struct {
	conn net.Conn
	took []byte // the server's last message of the login
}

func dial(address string) (*session, error) {
	conn, err := net.DialTimeout("tcp", address, 10*time.Second)
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	hello := binary.BigEndian.AppendUint64(make([]byte, 12), 4<<32|2012)
	if _, err := conn.Write(hello); err != nil {
		return nil, err
	}
	s := &session{conn: conn}
	if _, _, err := s.receive(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *session) receive() (status uint16, body []byte, err error) {
	var head [8]byte
	if _, err := io.ReadFull(s.conn, head[:]); err != nil {
		return 0, nil, err
	}
	body = make([]byte, binary.BigEndian.Uint32(head[4:]))
	_, err = io.ReadFull(s.conn, body)
	status = binary.BigEndian.Uint16(head[2:])
	if status == kxrError && len(body) > 4 {
		err = fmt.Errorf("server: %s", bytes.TrimRight(body[4:], "\x00"))
	}
	return status, body, err
}

func (s *session) call(request uint16, parameters [16]byte, data []byte) (uint16, []byte, error) {
	out := binary.BigEndian.AppendUint16([]byte{0, 1}, request)
	out = append(out, parameters[:]...)
	out = binary.BigEndian.AppendUint32(out, uint32(len(data)))
	if _, err := s.conn.Write(append(out, data...)); err != nil {
		return 0, nil, err
	}
	return s.receive()
}

// greet sends kXR_protocol and kXR_login; it returns the server's parameters of GSI.
func (s *session) greet() (string, error) {
	if _, _, err := s.call(kxrProtocol, [16]byte{0, 0, 5, 0x20}, nil); err != nil {
		return "", err
	}
	_, body, err := s.call(kxrLogin, [16]byte{0, 0, 0, 1, 'w', 'e', 'i', 'r', 0, 0, 0, 0, 0, 0, 5, 0}, nil)
	if err != nil {
		return "", err
	}
	if len(body) < 16 {
		return "", fmt.Errorf("the server wants no authentication")
	}
	for p := range strings.SplitSeq(strings.TrimRight(string(body[16:]), "\x00"), "&P=") {
		if own, ok := strings.CutPrefix(p, "gsi,"); ok {
			return own, nil
		}
	}
	return "", fmt.Errorf("the server does not take gsi but %q", body[16:])
}

// authenticate runs an exchange to its end. Each message of the server passes through change,
// unless change is nil.
func (s *session) authenticate(e security.Exchange, change func([]byte) []byte) error {
	var challenge []byte
	for range 5 {
		out, err := e.Next(challenge)
		if err != nil {
			return err
		}
		status, body, err := s.call(kxrAuth, [16]byte{12: 'g', 13: 's', 14: 'i'}, out)
		if err != nil {
			return err
		}
		if status == kxrOK {
			return nil
		}
		if status != kxrAuthMore {
			return fmt.Errorf("status %d during authentication", status)
		}
		s.took = bytes.Clone(body)
		if challenge = body; change != nil {
			challenge = change(body)
		}
	}
	return fmt.Errorf("the server does not stop asking")
}

// stat returns the size of a file that the server reports.
func (s *session) stat(path string) (string, error) {
	_, body, err := s.call(kxrStat, [16]byte{}, []byte(path))
	if err != nil {
		return "", err
	}
	fields := strings.Fields(string(body))
	if len(fields) < 2 {
		return "", fmt.Errorf("stat answered %q", body)
	}
	return fields[1], nil
}

// login runs a whole session: greeting, authentication, one stat.
func login(m *Method, address, host string, adapt func(string) string) (*session, error) {
	s, err := dial(address)
	if err != nil {
		return nil, err
	}
	offer, err := s.greet()
	if err != nil {
		return s, err
	}
	if adapt != nil {
		offer = adapt(offer)
	}
	e, err := m.Begin(context.Background(), security.Server{Host: host, Address: "127.0.0.1", Parameters: offer})
	if err != nil {
		return s, err
	}
	return s, s.authenticate(e, nil)
}
