package xrootd

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"

	"weir/storage"
	"weir/storage/wireclient"
)

// parseStat reads "id size flags mtime ...".
func parseStat(b []byte) (size int64, flags int64, err error) {
	_, rest := word(b)
	first, rest := word(rest)
	second, rest := word(rest)
	third, _ := word(rest)
	size, ok := wireclient.Decimal(first)
	flags, too := wireclient.Decimal(second)
	if !ok || !too || len(third) == 0 {
		return 0, 0, wireclient.ProtocolError("a file's state is %q, not id, size, flags and time", clip(b))
	}
	return size, flags, nil
}

// word returns the first word of b and the rest of b.
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

// isSpace reports whether c separates words; a zero byte ends the last word.
func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == 0 }

// parseLocate reads "Sr[::127.0.0.1]:1094 Mw[...]:1094": data servers and managers, each with the
// permitted access.
func parseLocate(b []byte) (servers, managers []string, err error) {
	for rest := b; ; {
		var w []byte
		if w, rest = word(rest); len(w) == 0 {
			return servers, managers, nil
		}
		if len(servers)+len(managers) == maxLocations {
			return nil, nil, wireclient.ProtocolError("more than %d locations", maxLocations)
		}
		f := string(w)
		if len(f) < 3 {
			return nil, nil, wireclient.ProtocolError("a location %q", clip(f))
		}
		name, err := normalAddress(f[2:])
		if err != nil {
			return nil, nil, wireclient.ProtocolError("a location %q", clip(f))
		}
		switch f[0] {
		case 'S', 's':
			servers = append(servers, name)
		case 'M', 'm':
			managers = append(managers, name)
		default:
			return nil, nil, wireclient.ProtocolError("a location %q", clip(f))
		}
	}
}

// maxLocations is the maximum number of servers in a response to kXR_locate.
const maxLocations = 1 << 14

// normalAddress turns [::ffff:127.0.0.1]:1094 or [::127.0.0.1]:1094 into 127.0.0.1:1094.
func normalAddress(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", err
	}
	if err := wireclient.CheckHost(host); err != nil {
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

// parseList reads the names of a folder, one a line, or with listWithStat two lines each. The first entry is then
// "." with zeros.
func parseList(b []byte) ([]storage.Entry, error) {
	b = bytes.TrimRight(b, "\x00\n")
	if len(b) == 0 {
		return nil, nil
	}
	if bytes.Count(b, []byte{'\n'}) >= 2*(wireclient.MaxEntries+1) {
		return nil, wireclient.ProtocolError("a listing of more than %d entries", wireclient.MaxEntries)
	}
	lines := strings.Split(string(b), "\n")
	if lines[0] != "." || len(lines) < 2 || !strings.HasPrefix(lines[1], "0 0 0 0") {
		entries := make([]storage.Entry, 0, min(len(lines), wireclient.MaxEntries))
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
		return nil, wireclient.ProtocolError("a listing of %d lines, names and states", len(lines))
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

const (
	maxName   = 4096 // bytes of a name in a folder
	maxDigits = 128  // digits of a checksum
)

// checkName refuses names that would lead out of the folder when they are used; . and .. denote the
// folder itself and its parent, and are omitted later.
func checkName(name string, before int) error {
	if name == "" || len(name) > maxName || strings.ContainsAny(name, "/\x00") {
		return wireclient.ProtocolError("an entry named %q in a listing", clip(name))
	}
	if before == wireclient.MaxEntries {
		return wireclient.ProtocolError("a listing of more than %d entries", wireclient.MaxEntries)
	}
	return nil
}

// otherSum reports whether a response is a checksum of another kind.
func otherSum(b []byte, alg string) bool {
	name, rest := word(b)
	_, err := parseChecksum(b, string(name))
	return err == nil && len(rest) > 0 && !strings.EqualFold(string(name), alg)
}

// parseChecksum reads "adler32 1a2b3c4d" and returns "adler32:1a2b3c4d".
func parseChecksum(b []byte, alg string) (string, error) {
	name, rest := word(b)
	digitsOf, _ := word(rest)
	if len(digitsOf) == 0 || len(digitsOf) > maxDigits || !strings.EqualFold(string(name), alg) {
		return "", wireclient.ProtocolError("a checksum %q where %s was asked for", clip(b), alg)
	}
	digits := map[string]int{"adler32": 8, "crc32": 8, "crc32c": 8, "md5": 32, "sha256": 64}[alg]
	sum := strings.ToLower(string(digitsOf))
	if len(sum) < digits {
		sum = strings.Repeat("0", digits-len(sum)) + sum
	}
	if strings.Trim(sum, "0123456789abcdef") != "" || digits > 0 && len(sum) != digits {
		return "", wireclient.ProtocolError("a checksum %q", clip(b))
	}
	return alg + ":" + sum, nil
}

// Error codes that are handled separately.
const (
	erIsDirectory = 3016
	erNotFile     = 3015
	erFSError     = 3005
	erSigVer      = 3022
	erTLSRequired = 3028
	erFileNotOpen = 3004
)

// A refusal is a response of kind kXR_error.
type refusal struct {
	code int32
	text string
	is   error // sentinel
}

func (e *refusal) Error() string {
	name, _ := meaning(e.code)
	if e.text == "" {
		return name
	}
	return fmt.Sprintf("%s (%s)", e.text, name)
}

func (e *refusal) Unwrap() error { return e.is }

// parseError reads the body of kXR_error.
func parseError(b []byte) error {
	if len(b) < 4 {
		return wireclient.ProtocolError("an error of %d bytes", len(b))
	}
	e := &refusal{code: int32(binary.BigEndian.Uint32(b))}
	e.text = strings.TrimSpace(clip(bytes.TrimRight(b[4:], "\x00")))
	_, e.is = meaning(e.code)
	if e.code == erFSError && strings.Contains(strings.ToLower(e.text), "not a directory") {
		e.is = syscall.ENOTDIR
	}
	if e.code == erTLSRequired {
		e.text += "; use roots://"
		e.is = errors.Join(storage.ErrNeedsTLS, e.is)
	}
	return e
}

// meaning returns an error code's name and the sentinel of the same meaning.
func meaning(code int32) (string, error) {
	if name, is := storage.XRootDError(int(code)); name != "" {
		return name, is
	}
	return fmt.Sprintf("kXR error %d", code), syscall.EIO
}

// broken reports whether err means that the other side closed the connection or that no connection
// was established.
func broken(err error) bool {
	return refused(err) == 0 && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EHOSTUNREACH))
}

// refused returns the code of a refusal, 0 for any other error.
func refused(err error) int32 {
	if e, ok := errors.AsType[*refusal](err); ok {
		return e.code
	}
	return 0
}
