package security

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"weir/storage"
)

const (
	maxToken = 65534       // bytes; the message has 16 bits for them and a zero
	look     = time.Second // how often the token's file is looked at
)

// Token proves with a bearer token (ztn), over TLS only. If it came from a file, the file is looked at once a
// second while clients log in, and read again when it changed: long runs outlive tokens.
func Token(c storage.Credentials) (Method, error) {
	if c.Token == "" {
		return nil, errors.New("no token: set auth.token_file or auth.token_variable")
	}
	if err := usable(c.Token); err != nil {
		return nil, err
	}
	b := &bearer{current: c.Token, last: time.Now()}
	if c.From.TokenVariable == "" && c.From.TokenFile != "" {
		b.file = c.From.TokenFile // read once more at the first look: it may have changed since c was read
	}
	return b, nil
}

// usable says what is wrong with a token.
func usable(token string) error {
	if len(token) > maxToken {
		return fmt.Errorf("the token has %d bytes: %d are the most that ztn carries", len(token), maxToken)
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return errors.New("the token has characters that no token has: is it one line, and nothing else?")
	}
	return nil
}

// bearer is the method ztn.
type bearer struct {
	file string // "" if the token stays as it is

	mu      sync.Mutex
	current string
	seen    stamp     // of the file when current was read
	last    time.Time // when the file was looked at
}

// A stamp reports whether a file is still the same.
type stamp struct {
	modified time.Time
	size     int64
}

func stampOf(i os.FileInfo) stamp { return stamp{i.ModTime(), i.Size()} }

func (*bearer) Name() string { return "ztn" }

// NeedsTLS tells Pick that a token must not be sent in the clear.
func (*bearer) NeedsTLS() bool { return true }

// Begin sends the token unless the server says that it is too long for it.
func (b *bearer) Begin(_ context.Context, s Server) (Exchange, error) {
	if !s.Secure {
		return nil, fmt.Errorf("a token is sent over TLS only: use roots:// instead of root://: %w", fs.ErrPermission)
	}
	most, err := ztnParameters(s.Parameters)
	if err != nil {
		return nil, err
	}
	token := b.token(time.Now())
	if len(token) >= most {
		return nil, fmt.Errorf("the token has %d bytes and the server takes fewer than %d (sec.protocol ztn -maxsz): %w", len(token), most,
			fs.ErrPermission)
	}
	return &said{message: ztnMessage(token), hint: func() string { return expiry(token, time.Now()) }}, nil
}

// token returns the token, read again if its file changed. What cannot be used leaves the old one: a file may be
// half written.
func (b *bearer) token(now time.Time) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.file == "" || now.Sub(b.last) < look {
		return b.current
	}
	b.last = now
	info, err := os.Stat(b.file)
	if err != nil || stampOf(info) == b.seen || info.Size() > maxToken+1024 {
		return b.current
	}
	text, err := os.ReadFile(b.file)
	fresh := strings.TrimSpace(string(text))
	if err != nil || fresh == "" || usable(fresh) != nil {
		return b.current
	}
	b.current, b.seen = fresh, stampOf(info)
	return b.current
}

// ztnParameters reads "<options and version>:<longest token>:" and returns the latter, which counts the token's
// final zero.
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

// ztnMessage is the token as XrdSecztn sends it: id, version 0, 'T', two spare bytes, length with a final zero,
// token, zero.
func ztnMessage(token string) []byte {
	m := make([]byte, 0, 8+2+len(token)+2)
	m = append(m, 'z', 't', 'n', 0, 0, 'T', 0, 0)
	m = binary.BigEndian.AppendUint16(m, uint16(len(token)+1))
	m = append(m, token...)
	return append(m, 0)
}

// expiry tells when a token expired or is not valid yet, if it is a JWT that says so. It judges nothing: servers
// do.
func expiry(token string, now time.Time) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	body, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return ""
	}
	var claims struct{ Exp, Nbf float64 }
	if json.Unmarshal(body, &claims) != nil {
		return ""
	}
	if t, ok := moment(claims.Exp); ok && t.Before(now) {
		return "the token expired at " + t.UTC().Format(time.RFC3339)
	}
	if t, ok := moment(claims.Nbf); ok && t.After(now) {
		return "the token is not valid before " + t.UTC().Format(time.RFC3339)
	}
	return ""
}

// moment is a claim as a time, if it is a sane one.
func moment(seconds float64) (time.Time, bool) {
	if !(seconds > 0 && seconds < 1<<40) {
		return time.Time{}, false
	}
	return time.Unix(int64(seconds), 0), true
}
