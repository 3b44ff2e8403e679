package wireclient

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"weir/storage"
)

// MaxEntries is the largest number of entries that a listing may have.
const MaxEntries = 1 << 20

// ProtocolError returns an error that wraps storage.ErrProtocol.
func ProtocolError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", storage.ErrProtocol, fmt.Sprintf(format, args...))
}

// CheckEntry returns an error unless name is the name of an entry of a folder:
// anything else could lead out of the folder when it is used.
func CheckEntry(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return ProtocolError("entry named %q", name[:min(len(name), 200)])
	}
	return nil
}

// CheckHost returns an error unless host can be a host name or an address.
func CheckHost(host string) error {
	if host == "" {
		return errors.New("no host")
	}
	if strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`/\?#@<>"`, r) }) {
		return fmt.Errorf("host %q has characters that no host name has", host[:min(len(host), 300)])
	}
	return nil
}

// HostPort returns the host of u in lower case and its port, or standard if u
// names none.
func HostPort(u *url.URL, standard uint16) (host string, port uint16, err error) {
	host = strings.ToLower(u.Hostname())
	if err := CheckHost(host); err != nil {
		return "", 0, err
	}
	p := u.Port()
	if p == "" {
		return host, standard, nil
	}
	n, err := strconv.ParseUint(p, 10, 16)
	if err != nil || n == 0 {
		return "", 0, fmt.Errorf("port %q: use 1 to 65535", p)
	}
	return host, uint16(n), nil
}

// Decimal parses digits, and nothing else, as a number below 2^63.
func Decimal[T string | []byte](text T) (int64, bool) {
	if len(text) > 19 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text), 10, 63)
	return int64(n), err == nil
}

// Closed reports whether err is what a connection returns after the other side
// has closed it.
func Closed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// maxShared bounds a Shared: a service that names more servers is at fault.
const maxShared = 4096

// A Shared keeps one value for each key, such as the description of each data
// server, so that thousands of clients share its memory. It is safe for
// concurrent use; its zero value is empty.
type Shared[K comparable, V any] struct {
	mu     sync.RWMutex
	values map[K]V
}

// Get returns the value of key, which is made if there is none yet.
func (s *Shared[K, V]) Get(key K, value func() V) V {
	s.mu.RLock()
	v, ok := s.values[key]
	s.mu.RUnlock()
	if ok {
		return v
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok = s.values[key]; ok {
		return v
	}
	if s.values == nil {
		s.values = map[K]V{}
	}
	v = value()
	if len(s.values) < maxShared {
		s.values[key] = v
	}
	return v
}
