package security

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"weir/internal/token"
	"weir/storage"
)

const maxToken = 65534 // bytes; the message has 16 bits for the length of the token and a zero byte

// Token authenticates with a bearer token (ztn), over TLS only. A token from a file is read again
// when the file changes: long runs outlive tokens.
func Token(c storage.Credentials) (Method, error) {
	if c.Token == "" {
		return nil, errors.New("no token: set auth.token_file or auth.token_variable")
	}
	if err := storage.CheckToken(c.Token); err != nil {
		return nil, err
	}
	if len(c.Token) > maxToken {
		return nil, fmt.Errorf("the token has %d bytes: %d are the most that ztn carries", len(c.Token), maxToken)
	}
	return &bearer{c.Bearer()}, nil
}

// bearer is the method ztn.
type bearer struct{ token *storage.Renewable[string] }

// Renewals returns the number of renewals of the token since the last call.
func (b *bearer) Renewals() int { return b.token.Renewals() }

func (*bearer) Name() string { return "ztn" }

// NeedsTLS returns true: a token must not be sent in the clear.
func (*bearer) NeedsTLS() bool { return true }

// Begin sends the token unless it is longer than the server's limit.
func (b *bearer) Begin(_ context.Context, s Server) (Exchange, error) {
	if !s.Secure {
		return nil, fmt.Errorf("a token is sent over TLS only: use roots:// instead of root://: %w", fs.ErrPermission)
	}
	most, err := ztnParameters(s.Parameters)
	if err != nil {
		return nil, err
	}
	token := b.token.Current()
	if len(token) >= most {
		return nil, fmt.Errorf("the token has %d bytes and the server takes fewer than %d (sec.protocol ztn -maxsz): %w", len(token), most,
			fs.ErrPermission)
	}
	return &said{
		message: ztnMessage(token),
		hint:    func() string { return expiry(token, time.Now()) },
		stale:   func() bool { return b.token.Reread() != token },
	}, nil
}

// ztnParameters reads "<options and version>:<longest token>:" and returns the longest token's
// length, which includes the final zero.
func ztnParameters(s string) (int, error) {
	options, rest, ok := strings.Cut(strings.TrimPrefix(s, "TLS:"), ":")
	size, _, ended := strings.Cut(rest, ":")
	_, err := strconv.ParseUint(options, 10, 64)
	most, sizeErr := strconv.ParseUint(size, 10, 31)
	if !ok || !ended || err != nil || sizeErr != nil || most == 0 {
		return 0, fmt.Errorf("the server's parameters %s are malformed: want version:size: : %w", printable(s), storage.ErrProtocol)
	}
	return int(most), nil
}

// ztnMessage returns the token in the format of XrdSecztn: id, version 0, 'T', two spare bytes,
// length with a final zero, token, zero.
func ztnMessage(token string) []byte {
	m := make([]byte, 0, 8+2+len(token)+2)
	m = append(m, 'z', 't', 'n', 0, 0, 'T', 0, 0)
	m = binary.BigEndian.AppendUint16(m, uint16(len(token)+1))
	m = append(m, token...)
	return append(m, 0)
}

// expiry describes an expired token or a token that is not valid yet, if it is a JWT with these
// times. It does not reject a token: servers do.
func expiry(raw string, now time.Time) string {
	from, until := token.Times(raw)
	switch {
	case !until.IsZero() && until.Before(now):
		return "the token expired at " + until.UTC().Format(time.RFC3339)
	case from.After(now):
		return "the token is not valid before " + from.UTC().Format(time.RFC3339)
	}
	return ""
}
