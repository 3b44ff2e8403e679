package relay

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"
)

// A parser reads the bytes that one client sends. It keeps no more than a head.
type parser struct {
	state func(*parser, []byte) (used int, name string)
	head  []byte // the beginning of a head that is not whole
	skip  int64  // bytes of a body that are still to come
	lost  bool   // the bytes cannot be parsed
	found map[string]int64
}

// Sizes of XRootD's protocol and bounds of this package.
const (
	handshakeSize = 20 // the handshake
	head          = 24 // of a request
	mostHead      = 64 << 10
)

// feed parses the next bytes and returns the requests that began in them.
func (p *parser) feed(b []byte) map[string]int64 {
	p.found = nil
	for len(b) > 0 && !p.lost {
		if p.skip > 0 {
			n := min(p.skip, int64(len(b)))
			p.skip -= n
			b = b[n:]
			continue
		}
		before := len(p.head)
		p.head = append(p.head, b[:min(len(b), mostHead-before)]...)
		used, name := p.step()
		if used == 0 {
			if len(p.head) >= mostHead {
				p.lost = true
			}
			return p.found // more has to come
		}
		b = b[max(used-before, 0):]
		p.head = p.head[:0]
		if name != "" {
			if p.found == nil {
				p.found = map[string]int64{}
			}
			p.found[name]++
		}
	}
	return p.found
}

// step parses the head: it returns the number of bytes that it has parsed, 0 if there are not
// enough yet, and the name of the request that began.
func (p *parser) step() (used int, name string) {
	if p.state == nil {
		switch {
		case p.head[0] >= 'A' && p.head[0] <= 'Z':
			p.state = (*parser).http
		case p.head[0] != 0:
			p.lost = true
			return 0, ""
		case len(p.head) < handshakeSize:
			return 0, ""
		case binary.BigEndian.Uint32(p.head[12:]) == 4 && binary.BigEndian.Uint32(p.head[16:]) == 2012:
			p.state = (*parser).xrootd
			return handshakeSize, "handshake"
		default:
			p.lost = true
			return 0, ""
		}
	}
	return p.state(p, p.head)
}

// requests are the names of XRootD's requests, from the first number on.
func requests() []string {
	return []string{"authentication", "query", "chmod", "close", "list", "gpfile", "protocol", "login", "mkdir", "move", "open", "ping",
		"checkpoint", "read", "remove", "rmdir", "sync", "stat", "set", "write", "attributes", "prepare", "stat of many", "end session", "bind",
		"vector read", "page write", "locate", "truncate", "signature", "page read", "vector write"}
}

const (
	firstRequest = 3000
	vectorWrite  = 3031
	openFile     = 3010
	async        = 0x40 // option of an open
)

// Async is the suffix of the name of an open that allows the server asynchronous I/O on the file,
// if the server is configured for it.
const Async = ", async"

// xrootd reads the head of a request: stream, number, 16 bytes of its own, length of the body.
func (p *parser) xrootd(b []byte) (int, string) {
	if len(b) < head {
		return 0, ""
	}
	code := int(binary.BigEndian.Uint16(b[2:]))
	size := int64(int32(binary.BigEndian.Uint32(b[20:])))
	names := requests()
	if code < firstRequest || code >= firstRequest+len(names) || size < 0 {
		p.lost = true // TLS, or nonsense
		return 0, ""
	}
	if code == vectorWrite {
		p.lost = true // the body contains its own length
	}
	p.skip = size
	name := names[code-firstRequest]
	if code == openFile && binary.BigEndian.Uint16(b[6:])&async != 0 {
		name += Async
	}
	return head, name
}

// http reads the head of a request, or one line between the chunks of its body.
func (p *parser) http(b []byte) (int, string) {
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 0 {
		return 0, ""
	}
	first, fields, _ := strings.Cut(string(b[:end]), "\r\n")
	method, rest, ok := strings.Cut(first, " ")
	if !ok || !strings.Contains(rest, " HTTP/1") || len(method) > 20 {
		p.lost = true
		return 0, ""
	}
	for line := range strings.SplitSeq(fields, "\r\n") {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch strings.ToLower(key) {
		case "content-length":
			n, err := strconv.ParseInt(value, 10, 64)
			p.lost = p.lost || err != nil || n < 0
			p.skip = n
		case "transfer-encoding":
			p.state = (*parser).chunk
		case "upgrade":
			p.lost = true
		}
	}
	if p.lost {
		p.skip = 0
	}
	return end + 4, method
}

// chunk reads the line before a chunk of a body, or the lines behind the last.
func (p *parser) chunk(b []byte) (int, string) {
	end := bytes.Index(b, []byte("\r\n"))
	if end < 0 {
		return 0, ""
	}
	text, _, _ := strings.Cut(string(b[:end]), ";")
	n, err := strconv.ParseInt(strings.TrimSpace(text), 16, 62)
	if err != nil || n < 0 {
		p.lost = true
		return 0, ""
	}
	if n == 0 {
		p.state = (*parser).trailer
	} else {
		p.skip = n + 2
	}
	return end + 2, ""
}

// trailer reads the lines behind the last chunk, up to an empty line.
func (p *parser) trailer(b []byte) (int, string) {
	end := bytes.Index(b, []byte("\r\n"))
	if end < 0 {
		return 0, ""
	}
	if end == 0 {
		p.state = (*parser).http
	}
	return end + 2, ""
}
