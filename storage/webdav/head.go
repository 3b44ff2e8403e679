package webdav

import (
	"bytes"
	"net/http"

	"weir/storage/wireclient"
)

// Limits of a header, beyond which a response is refused.
const (
	maxLine  = 8 << 10
	maxLines = 200
)

// A head holds the relevant parts of a response's status line and header. Its slices point into the
// buffer that it was parsed from.
type head struct {
	status   int
	reason   []byte
	length   int64 // Content-Length, negative if it is missing
	chunked  bool
	keep     bool // the connection may carry another request
	location []byte
	digest   []byte    // Digest (RFC 3230), all lines
	repr     []byte    // Repr-Digest (RFC 9530), all lines
	crange   []byte    // Content-Range
	ctype    []byte    // Content-Type
	retry    []byte    // Retry-After
	etag     []byte    // ETag
	crc32c   []byte    // x-amz-checksum-crc32c, in base64
	asks     [4][]byte // WWW-Authenticate, the first few
	encoding string    // Content-Encoding that was not requested
}

// ok reports whether the response is the complete result: 203 is the 200 of a server behind a proxy
// that transforms responses.
func (h *head) ok() bool {
	return h.status == http.StatusOK || h.status == http.StatusNonAuthoritativeInfo
}

// headEnd returns the number of bytes of b that the head occupies, its empty line included, or 0 if the head is
// incomplete. The first from bytes have been searched before.
func headEnd(b []byte, from int) int {
	from = max(0, from-3)
	for {
		i := bytes.IndexByte(b[from:], '\n')
		if i < 0 {
			return 0
		}
		from += i + 1
		rest := b[from:]
		if len(rest) > 0 && rest[0] == '\n' {
			return from + 1
		}
		if len(rest) > 1 && rest[0] == '\r' && rest[1] == '\n' {
			return from + 2
		}
	}
}

// parse reads a complete head.
func (h *head) parse(b []byte) error {
	*h = head{length: -1}
	line, rest, err := cutLine(b)
	if err != nil {
		return err
	}
	if err := h.parseStatus(line); err != nil {
		return err
	}
	for n := 0; ; n++ {
		if line, rest, err = cutLine(rest); err != nil {
			return err
		}
		if len(line) == 0 {
			return nil
		}
		if n == maxLines {
			return wireclient.ProtocolError("more than %d header lines", maxLines)
		}
		if err := h.parseLine(line); err != nil {
			return err
		}
	}
}

func cutLine(b []byte) (line, rest []byte, err error) {
	i := bytes.IndexByte(b, '\n')
	if i < 0 {
		return nil, nil, wireclient.ProtocolError("head without an end")
	}
	if i > maxLine {
		return nil, nil, wireclient.ProtocolError("header line of %d bytes", i)
	}
	line, rest = b[:i], b[i+1:]
	if i > 0 && line[i-1] == '\r' {
		line = line[:i-1]
	}
	return line, rest, nil
}

// parseStatus reads "HTTP/1.1 200 OK".
func (h *head) parseStatus(b []byte) error {
	if len(b) < 12 || string(b[:7]) != "HTTP/1." || b[7] != '0' && b[7] != '1' || b[8] != ' ' {
		return wireclient.ProtocolError("no HTTP/1.1 answer: it begins with %q", clip(b, 40))
	}
	for _, c := range b[9:12] {
		if c < '0' || c > '9' {
			return wireclient.ProtocolError("status line %q", clip(b, 80))
		}
		h.status = h.status*10 + int(c-'0')
	}
	if h.status < 100 || len(b) > 12 && b[12] != ' ' {
		return wireclient.ProtocolError("status line %q", clip(b, 80))
	}
	h.reason = bytes.TrimSpace(b[12:])
	h.keep = b[7] == '1'
	return nil
}

func (h *head) parseLine(b []byte) error {
	colon := bytes.IndexByte(b, ':')
	if colon <= 0 || b[0] == ' ' || b[0] == '\t' || b[colon-1] == ' ' || b[colon-1] == '\t' {
		return wireclient.ProtocolError("header line %q", clip(b, 80))
	}
	name, value := b[:colon], trim(b[colon+1:])
	switch {
	case is(name, "digest"):
		h.digest = joined(h.digest, value)
	case is(name, "location"):
		h.location = value
	case is(name, "connection"):
		h.parseConnection(value)
	case is(name, "repr-digest"):
		h.repr = joined(h.repr, value)
	case is(name, "content-type"):
		h.ctype = value
	case is(name, "retry-after"):
		h.retry = value
	case is(name, "etag"):
		h.etag = value
	case is(name, "x-amz-checksum-crc32c"):
		h.crc32c = value
	case is(name, "content-range"):
		h.crange = value
	case is(name, "content-encoding"):
		if !is(value, "identity") {
			h.encoding = printable(value, 60)
		}
	case is(name, "content-length"):
		return h.parseLength(value)
	case is(name, "www-authenticate"):
		h.ask(value)
	case is(name, "transfer-encoding"):
		return h.parseEncoding(value)
	}
	return nil
}

// joined returns the value of a field that is a list with another line of it (RFC 9110, section 5.3).
func joined(value, line []byte) []byte {
	if len(value) == 0 {
		return line
	}
	return append(append(value[:len(value):len(value)], ','), line...)
}

// ask stores a value of WWW-Authenticate.
func (h *head) ask(value []byte) {
	for i := range h.asks {
		if h.asks[i] == nil {
			h.asks[i] = value
			return
		}
	}
}

// offers returns the first scheme of each WWW-Authenticate line (RFC 9110, 11.6.1).
func (h *head) offers() []string {
	all := []string{}
	for _, value := range h.asks {
		scheme, _, _ := bytes.Cut(value, []byte{' '})
		if name := printable(bytes.TrimRight(scheme, ","), 40); name != "" {
			all = append(all, name)
		}
	}
	return all
}

// parseConnection parses a list, in which "close" prevails over "keep-alive".
func (h *head) parseConnection(value []byte) {
	for len(value) > 0 {
		var word []byte
		word, value, _ = bytes.Cut(value, []byte{','})
		switch word = trim(word); {
		case is(word, "close"):
			h.keep = false
			return
		case is(word, "keep-alive"):
			h.keep = true
		}
	}
}

func (h *head) parseLength(value []byte) error {
	n, ok := wireclient.Decimal(value)
	if !ok {
		return wireclient.ProtocolError("Content-Length %q", clip(value, 40))
	}
	if h.length >= 0 && h.length != n {
		return wireclient.ProtocolError("two lengths, %d and %d", h.length, n)
	}
	h.length = n
	return nil
}

func (h *head) parseEncoding(value []byte) error {
	if !is(value, "chunked") || h.chunked {
		return wireclient.ProtocolError("Transfer-Encoding %q was not asked for", clip(value, 40))
	}
	h.chunked = true
	return nil
}

// parseContentRange reads "bytes 0-99/1000"; total is negative if it is "*".
func parseContentRange(b []byte) (first, last, total int64, ok bool) {
	if len(b) < 6 || !is(b[:6], "bytes ") {
		return 0, 0, 0, false
	}
	span, size, found := bytes.Cut(b[6:], []byte{'/'})
	from, to, dashed := bytes.Cut(span, []byte{'-'})
	if !found || !dashed {
		return 0, 0, 0, false
	}
	first, okFirst := wireclient.Decimal(from)
	last, okLast := wireclient.Decimal(to)
	total, okTotal := wireclient.Decimal(size)
	if string(size) == "*" {
		total, okTotal = -1, true
	}
	ok = okFirst && okLast && okTotal && first <= last
	return first, last, total, ok
}

// parseUnsatisfied reads the size of the file from "bytes */1000", which comes with status 416 (RFC 9110, 14.4).
func parseUnsatisfied(b []byte) (size int64, ok bool) {
	rest, found := bytes.CutPrefix(b, []byte("bytes */"))
	if !found {
		return 0, false
	}
	return wireclient.Decimal(rest)
}

// is reports whether b, regardless of its case, is a word in lower case.
func is(b []byte, lower string) bool { return len(b) == len(lower) && sameFold(b, lower) }

func sameFold(b []byte, lower string) bool {
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

func trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// clip shortens hostile text for an error.
func clip(b []byte, n int) []byte { return b[:min(len(b), n)] }
