package xrootd

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net/url"
	"strings"
	"unicode"

	"weir/storage"
	"weir/storage/wireclient"
)

// A frame is the header of a response: the stream of its request, the status, and the number of
// bytes that follow.
type frame struct {
	stream uint16
	status uint16
	size   int64
}

// maxFrame bounds the size that a server may announce: servers send file data in responses of the
// requested size, which is at most 1 GiB.
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

// clip shortens text from a server to the length that fits in a message, and replaces control
// characters, which a terminal would interpret.
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

// A status is the body of a response of kind kXR_status; the data follows it.
type status struct {
	request uint16
	partial bool
	size    int64 // bytes of data that follow
	offset  int64 // file offset of the data
}

// parseStatus reads the body of a kXR_status, its information included, and checks its own checksum.
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

// A redirection is the server to which a redirect leads.
type redirection struct {
	host   string
	port   uint16
	opaque string // appended to the path
	secure bool
}

// maxRedirect is the maximum size of a redirect, in bytes; its text becomes part of the next
// request.
const maxRedirect = 16 << 10

// parseRedirect reads the body of a redirect: a port and a host with opaque information for it, or,
// with a negative port, a URL.
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
	opaque, _, _ = strings.Cut(opaque, "?") // the text after it is for the login
	port = cmp.Or(port, defaultPort)
	host = strings.Trim(host, "[]")
	if err := wireclient.CheckHost(host); err != nil || port > 65535 {
		return r, wireclient.ProtocolError("a redirect to host %q, port %d", clip(host), port)
	}
	return redirection{host: host, port: uint16(port), opaque: strings.Trim(opaque, "&")}, nil
}

// collect reads all parts of the response to a request into x.data.
func (x *exchange) collect(l *link, stream uint16) (frame, error) {
	x.data = x.data[:0]
	for empty := 0; ; {
		f, err := x.next(l)
		if err != nil {
			return f, err
		}
		if f.stream != stream {
			return f, unexpectedFrame(f)
		}
		if err := x.gather(l, f.size); err != nil {
			return f, err
		}
		if f.status != stOKSoFar {
			return f, nil
		}
		if f.size > 0 {
			continue
		}
		if empty++; empty > maxEmpty {
			return f, endless()
		}
	}
}

//go:noinline
func endless() error {
	return wireclient.ProtocolError("more than %d parts of an answer with nothing in them", maxEmpty)
}

// maxEmpty is the number of parts of a response that may have no data.
const maxEmpty = 100

// unexpectedFrame returns the error of a response without a request.
//
//go:noinline
func unexpectedFrame(f frame) error {
	return wireclient.ProtocolError("an answer that was not asked for: stream %d, %s, %d bytes", f.stream, statusName(f.status), f.size)
}

// gather appends the next n bytes to x.data.
func (x *exchange) gather(l *link, n int64) error {
	most := int64(maxAnswer)
	if x.req.code == rqDirlist {
		most = maxListing
	}
	if int64(len(x.data))+n > most {
		return longAnswer(most)
	}
	for n > 0 {
		if err := l.need(1); err != nil {
			return err
		}
		b := l.take(int(min(n, int64(l.End-l.Pos))))
		x.data = append(x.data, b...)
		n -= int64(len(b))
	}
	l.Return()
	return nil
}

//go:noinline
func longAnswer(most int64) error {
	return wireclient.ProtocolError("an answer of more than %d bytes", most)
}

// next reads the header of the next response. Responses that were announced for later
// (kXR_waitresp) arrive as kXR_attn messages, with their own header inside.
func (x *exchange) next(l *link) (frame, error) {
	for {
		if err := l.need(headSize); err != nil {
			return frame{}, err
		}
		f, err := parseFrame(l.take(headSize))
		if err != nil {
			return f, err
		}
		switch f.status {
		default:
			return f, nil
		case stWaitResp:
			x.call.Result.Waits++
			err = x.skip(l, f.size)
		case stAttn:
			var inner frame
			if inner, err = x.attention(l, f); err == nil && inner.status != stAttn {
				return inner, nil
			}
		}
		if err != nil {
			return f, err
		}
	}
}

// attention reads a message that the server sends without a request. It returns the response that
// the message carries, or the message itself, read and discarded.
func (x *exchange) attention(l *link, f frame) (frame, error) {
	const inside = 8 + headSize
	if f.size < 4 {
		return f, wireclient.ProtocolError("an attention of %d bytes", f.size)
	}
	if f.size < inside {
		return f, x.skip(l, f.size)
	}
	if err := l.need(inside); err != nil {
		return f, err
	}
	b := l.take(inside)
	if binary.BigEndian.Uint32(b) != attnResponse {
		return f, x.skip(l, f.size-inside)
	}
	inner, err := parseFrame(b[8:])
	switch {
	case err != nil:
		return f, err
	case inner.status == stAttn || inner.size != f.size-inside:
		return f, wireclient.ProtocolError("%s of %d bytes in an attention of %d", statusName(inner.status), inner.size, f.size)
	}
	return inner, nil
}

// skip reads and discards n bytes of a small response.
func (x *exchange) skip(l *link, n int64) error {
	if n > maxKept {
		return wireclient.ProtocolError("%d bytes that were not asked for", n)
	}
	before := len(x.data)
	err := x.gather(l, n)
	x.data = x.data[:before]
	return err
}

// noData reads the rest of a response that has no data. After a kXR_wait it waits as requested and
// returns nil: the request has to be sent again.
func (x *exchange) noData(l *link, h frame, code uint16) error {
	x.data = x.data[:0]
	if err := x.gather(l, h.size); err != nil {
		return err
	}
	switch h.status {
	case stError:
		return unsigned(l, parseError(x.data))
	case stWait:
		return x.waitAsAsked()
	}
	return wireclient.ProtocolError("%s in answer to %s", statusName(h.status), requestName(code))
}
