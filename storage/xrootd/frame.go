package xrootd

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"net"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"weir/storage"
)

// A frame is the head of an answer: of which request, what it is, and how
// many bytes follow.
type frame struct {
	stream uint16
	status uint16
	size   int64
}

// maxFrame bounds what a server may announce: servers send files in answers
// of the size that was asked for, which is at most 1 GiB.
const maxFrame = 1 << 30

func parseFrame(b []byte) (frame, error) {
	f := frame{
		stream: binary.BigEndian.Uint16(b),
		status: binary.BigEndian.Uint16(b[2:]),
		size:   int64(int32(binary.BigEndian.Uint32(b[4:]))), //nolint:gosec // a signed number, as the protocol has it
	}
	switch {
	case f.size < 0 || f.size > maxFrame:
		return f, protocolError("an answer of %d bytes", f.size)
	case f.status != stOK && (f.status < stOKSoFar || f.status > stStatus):
		return f, protocolError("answer status %d", f.status)
	}
	return f, nil
}

func protocolError(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{storage.ErrProtocol}, args...)...)
}

// clip cuts what a server sent to what fits in a message, and takes out what
// would command a terminal.
func clip[T string | []byte](text T) string {
	const most = 300
	short := strings.TrimRight(string(text[:min(len(text), most)]), "\x00")
	return strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, short), "?")
}

// A status is what stands in an answer of kind kXR_status before its data.
type status struct {
	request uint16
	partial bool
	size    int64 // bytes of data that follow
	offset  int64 // of the data in the file
}

// parseStatus reads the body of a kXR_status, its information included, and
// checks its own checksum.
func parseStatus(f frame, b []byte) (status, error) {
	if len(b) < statusSize+8 {
		return status{}, protocolError("a status of %d bytes", len(b))
	}
	if want, got := binary.BigEndian.Uint32(b), crc32.Checksum(b[4:], castagnoli()); want != got {
		return status{}, fmt.Errorf("%w: head of an answer has CRC32C %08x, not the %08x it says", storage.ErrChecksum, got, want)
	}
	if s := binary.BigEndian.Uint16(b[4:]); s != f.stream {
		return status{}, protocolError("a status of stream %d inside one of stream %d", s, f.stream)
	}
	if b[7] > partialStatus {
		return status{}, protocolError("a status of kind %d", b[7])
	}
	s := status{
		request: firstRequest + uint16(b[6]),
		partial: b[7] == partialStatus,
		size:    int64(int32(binary.BigEndian.Uint32(b[12:]))), //nolint:gosec // a signed number, as the protocol has it
		offset:  int64(binary.BigEndian.Uint64(b[16:])),        //nolint:gosec // likewise
	}
	if s.size < 0 || s.size > maxFrame || s.offset < 0 {
		return s, protocolError("a status with %d bytes at %d", s.size, s.offset)
	}
	return s, nil
}

// A redirection says where else to ask.
type redirection struct {
	host   string
	port   uint16
	opaque string // to be added to the path
	secure bool
}

// maxRedirect is how long a redirect may be; it goes into the next request.
const maxRedirect = 16 << 10

// parseRedirect reads where an answer sends us: a port and a host with what
// to tell it, or, with a negative port, a URL.
func parseRedirect(b []byte) (redirection, error) {
	if len(b) < 5 || len(b) > maxRedirect {
		return redirection{}, protocolError("a redirect of %d bytes", len(b))
	}
	port := int32(binary.BigEndian.Uint32(b)) //nolint:gosec // a signed number, as the protocol has it
	text := string(bytes.TrimRight(b[4:], "\x00"))
	var r redirection
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return r, protocolError("a redirect to %q", clip(text))
	}
	if port < 0 || strings.Contains(text, "://") {
		u, err := url.Parse(text)
		if err != nil {
			return r, protocolError("a redirect to %q", clip(text))
		}
		s, err := serverOf(u)
		if err != nil {
			return r, protocolError("a redirect to %q: %v", clip(text), err)
		}
		return redirection{s.host, s.port, u.RawQuery, s.secure}, nil
	}
	host, opaque, _ := strings.Cut(text, "?")
	opaque, _, _ = strings.Cut(opaque, "?") // what follows is for the login
	if port == 0 {
		port = defaultPort
	}
	host = strings.Trim(host, "[]")
	if err := checkHost(host); err != nil || port > 65535 {
		return r, protocolError("a redirect to host %q, port %d", clip(host), port)
	}
	return redirection{host: host, port: uint16(port), opaque: strings.Trim(opaque, "&")}, nil //nolint:gosec // checked above
}

// checkHost refuses what cannot be a host's name or address.
func checkHost(host string) error {
	if host == "" {
		return fmt.Errorf("no host")
	}
	if strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`/\?#@<>"`, r) }) {
		return fmt.Errorf("host %q has characters that no host name has", clip(host))
	}
	return nil
}

// parseStat reads "id size flags mtime ...".
func parseStat(b []byte) (size int64, flags int64, err error) {
	_, rest := word(b)
	first, rest := word(rest)
	second, rest := word(rest)
	third, _ := word(rest)
	size, ok := decimal(first)
	flags, too := decimal(second)
	if !ok || !too || len(third) == 0 {
		return 0, 0, protocolError("a file's state is %q, not id, size, flags and time", clip(b))
	}
	return size, flags, nil
}

// word returns the first word of b and what follows it.
func word(b []byte) (first, rest []byte) {
	i := 0
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	end := i
	for end < len(b) && !isSpace(b[end]) {
		end++
	}
	return b[i:end], b[end:]
}

// isSpace tells what separates words: a zero ends them all.
func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == 0 }

// decimal reads a number that is not negative and fits in 63 bits.
func decimal(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 19 {
		return 0, false
	}
	n := uint64(0)
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return int64(n), n <= math.MaxInt64 //nolint:gosec // 19 digits fit
}

// parseLocate reads "Sr[::127.0.0.1]:1094 Mw[...]:1094": data servers and
// managers, and what they let us do.
func parseLocate(b []byte) (servers, managers []string, err error) {
	for rest := b; ; {
		var w []byte
		if w, rest = word(rest); len(w) == 0 {
			return servers, managers, nil
		}
		if len(servers)+len(managers) == maxLocations {
			return nil, nil, protocolError("more than %d locations", maxLocations)
		}
		f := string(w)
		if len(f) < 3 {
			return nil, nil, protocolError("a location %q", clip(f))
		}
		name, err := normalAddress(f[2:])
		if err != nil {
			return nil, nil, protocolError("a location %q", clip(f))
		}
		switch f[0] {
		case 'S', 's':
			servers = append(servers, name)
		case 'M', 'm':
			managers = append(managers, name)
		default:
			return nil, nil, protocolError("a location %q", clip(f))
		}
	}
}

// maxLocations is how many servers may have a file.
const maxLocations = 1 << 14

// normalAddress turns [::ffff:127.0.0.1]:1094 or [::127.0.0.1]:1094 into
// 127.0.0.1:1094.
func normalAddress(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", err
	}
	if err := checkHost(host); err != nil {
		return "", err
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("port %q", clip(port))
	}
	if i := strings.LastIndexByte(host, ':'); i >= 0 && strings.Contains(host[i:], ".") {
		host = host[i+1:]
	}
	return net.JoinHostPort(host, port), nil
}

// parseList reads the names of a folder, one a line, or with listWithStat two
// lines each. The first entry is then "." with zeros.
func parseList(b []byte) ([]storage.Entry, error) {
	b = bytes.TrimRight(b, "\x00\n")
	if len(b) == 0 {
		return nil, nil
	}
	if bytes.Count(b, []byte{'\n'}) >= 2*(maxEntries+1) {
		return nil, protocolError("a listing of more than %d entries", maxEntries)
	}
	lines := strings.Split(string(b), "\n")
	if lines[0] != "." || len(lines) < 2 || !strings.HasPrefix(lines[1], "0 0 0 0") {
		entries := make([]storage.Entry, 0, min(len(lines), maxEntries))
		for _, name := range lines {
			if err := checkName(name, len(entries)); err != nil {
				return nil, err
			}
			entries = append(entries, storage.Entry{Name: name, Size: -1})
		}
		return entries, nil
	}
	lines = lines[2:]
	if len(lines)%2 != 0 {
		return nil, protocolError("a listing of %d lines, names and states", len(lines))
	}
	entries := make([]storage.Entry, 0, len(lines)/2)
	for i := 0; i < len(lines); i += 2 {
		if err := checkName(lines[i], len(entries)); err != nil {
			return nil, err
		}
		size, flags, err := parseStat([]byte(lines[i+1]))
		if err != nil {
			return nil, err
		}
		e := storage.Entry{Name: lines[i], Size: size, Dir: flags&statIsDir != 0}
		if e.Dir {
			e.Size = -1
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// How much a listing may hold, and how long a name is at most that a file
// system knows.
const (
	maxEntries = 1 << 20
	maxName    = 4096
)

// maxDigits is how long a checksum may be.
const maxDigits = 128

// checkName refuses names that would lead out of the folder when they are
// used; . and .. are the folder's own and left out later.
func checkName(name string, before int) error {
	if name == "" || len(name) > maxName || strings.ContainsAny(name, "/\x00") {
		return protocolError("an entry named %q in a listing", clip(name))
	}
	if before == maxEntries {
		return protocolError("a listing of more than %d entries", maxEntries)
	}
	return nil
}

// parseChecksum reads "adler32 1a2b3c4d" and returns "adler32:1a2b3c4d".
func parseChecksum(b []byte, alg string) (string, error) {
	name, rest := word(b)
	digitsOf, _ := word(rest)
	if len(digitsOf) == 0 || len(digitsOf) > maxDigits || !strings.EqualFold(string(name), alg) {
		return "", protocolError("a checksum %q where %s was asked for", clip(b), alg)
	}
	digits := map[string]int{"adler32": 8, "crc32": 8, "crc32c": 8, "md5": 32, "sha256": 64}[alg]
	sum := strings.ToLower(string(digitsOf))
	if len(sum) < digits {
		sum = strings.Repeat("0", digits-len(sum)) + sum
	}
	if strings.Trim(sum, "0123456789abcdef") != "" || digits > 0 && len(sum) != digits {
		return "", protocolError("a checksum %q", clip(b))
	}
	return alg + ":" + sum, nil
}
