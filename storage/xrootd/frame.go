package xrootd

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net/url"
	"strings"
	"unicode"

	"weir/storage"
	"weir/storage/wireclient"
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
		size:   int64(int32(binary.BigEndian.Uint32(b[4:]))),
	}
	switch {
	case f.size < 0 || f.size > maxFrame:
		return f, wireclient.ProtocolError("an answer of %d bytes", f.size)
	case f.status != stOK && (f.status < stOKSoFar || f.status > stStatus):
		return f, wireclient.ProtocolError("answer status %d", f.status)
	}
	return f, nil
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
		return status{}, wireclient.ProtocolError("a status of %d bytes", len(b))
	}
	if want, got := binary.BigEndian.Uint32(b), crc32.Checksum(b[4:], castagnoli()); want != got {
		return status{}, fmt.Errorf("%w: head of an answer has CRC32C %08x, not the %08x it says", storage.ErrChecksum, got, want)
	}
	if s := binary.BigEndian.Uint16(b[4:]); s != f.stream {
		return status{}, wireclient.ProtocolError("a status of stream %d inside one of stream %d", s, f.stream)
	}
	if b[7] > partialStatus {
		return status{}, wireclient.ProtocolError("a status of kind %d", b[7])
	}
	s := status{
		request: firstRequest + uint16(b[6]),
		partial: b[7] == partialStatus,
		size:    int64(int32(binary.BigEndian.Uint32(b[12:]))),
		offset:  int64(binary.BigEndian.Uint64(b[16:])),
	}
	if s.size < 0 || s.size > maxFrame || s.offset < 0 {
		return s, wireclient.ProtocolError("a status with %d bytes at %d", s.size, s.offset)
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
		return redirection{}, wireclient.ProtocolError("a redirect of %d bytes", len(b))
	}
	port := int32(binary.BigEndian.Uint32(b))
	text := string(bytes.TrimRight(b[4:], "\x00"))
	var r redirection
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return r, wireclient.ProtocolError("a redirect to %q", clip(text))
	}
	if port < 0 || strings.Contains(text, "://") {
		u, err := url.Parse(text)
		if err != nil {
			return r, wireclient.ProtocolError("a redirect to %q", clip(text))
		}
		s, err := serverOf(u)
		if err != nil {
			return r, wireclient.ProtocolError("a redirect to %q: %v", clip(text), err)
		}
		return redirection{s.host, s.port, u.RawQuery, s.secure}, nil
	}
	host, opaque, _ := strings.Cut(text, "?")
	opaque, _, _ = strings.Cut(opaque, "?") // what follows is for the login
	if port == 0 {
		port = defaultPort
	}
	host = strings.Trim(host, "[]")
	if err := wireclient.CheckHost(host); err != nil || port > 65535 {
		return r, wireclient.ProtocolError("a redirect to host %q, port %d", clip(host), port)
	}
	return redirection{host: host, port: uint16(port), opaque: strings.Trim(opaque, "&")}, nil
}
