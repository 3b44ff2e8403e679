package security

import (
	"fmt"
	"strings"

	"weir/storage"
	"weir/storage/xrootd/security/krb5"
)

// New returns the methods that credentials allow, without gsi, which package
// gsi has. Files are read now, so that mistakes show before a run begins;
// their errors say what is missing. The network is not touched.
func New(c storage.Credentials) ([]Method, error) {
	switch c.Method {
	case "none", "x509":
		return nil, nil
	case "unix", "":
		if err := nameable(c.User); err != nil {
			return nil, err
		}
	}
	switch c.Method {
	case "unix":
		return []Method{Unix(c.User)}, nil
	case "token":
		m, err := Token(c)
		return one(c.Method, m, err)
	case "krb5":
		m, err := Kerberos(krb5.Config{User: c.User, KeytabFile: c.From.KeytabFile, TicketFile: c.From.TicketFile, Krb5File: c.From.Krb5File})
		return one(c.Method, m, err)
	case "":
		all := []Method{Unix(c.User)}
		if c.Token == "" {
			return all, nil
		}
		m, err := Token(c)
		if err != nil {
			return nil, fmt.Errorf("auth: %w", err)
		}
		return append(all, m), nil
	}
	return nil, fmt.Errorf("auth: root:// has no method %s: use none, unix, krb5, x509 or token", c.Method)
}

// nameable says what is wrong with a user's name for unix.
func nameable(user string) error {
	if len(user) > 255 || strings.ContainsFunc(user, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return fmt.Errorf("auth: user %s: want a name of at most 255 bytes without spaces", printable(user))
	}
	return nil
}

func one(name string, m Method, err error) ([]Method, error) {
	if err != nil {
		return nil, fmt.Errorf("auth: method %s: %w", name, err)
	}
	return []Method{m}, nil
}

// A said exchange is one of a single message.
type said struct {
	message []byte
	hint    func() string
}

// Next returns the message once.
func (s *said) Next(challenge []byte) ([]byte, error) {
	if s.message == nil {
		return nil, fmt.Errorf("the server asks for more than the protocol has: %s: %w", printable(string(challenge)), storage.ErrProtocol)
	}
	m := s.message
	s.message = nil
	return m, nil
}

// Hint returns what might explain a refusal.
func (s *said) Hint() string {
	if s.hint == nil {
		return ""
	}
	return s.hint()
}
