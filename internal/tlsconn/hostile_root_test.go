package tlsconn_test

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	. "weir/internal/tlsconn"
	"weir/storage"
	"weir/storage/xrootd"
)

// Numbers of XRootD's protocol.
const (
	rootProtocol = 0x511
	rootServer   = 1
	rootGoToTLS  = 0xc0000000 // and has it
	rootLogin    = 3007
	rootOpen     = 3010
	rootRead     = 3013
	rootRedirect = 4004
)

// A rootRequest is a request of XRootD's protocol.
type rootRequest struct {
	stream, code uint16
	count        int // of a read
}

func readRoot(c io.Reader) (rootRequest, error) {
	b := make([]byte, 24)
	if _, err := io.ReadFull(c, b); err != nil {
		return rootRequest{}, err
	}
	_, err := io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(b[20:])))
	return rootRequest{binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:]), int(binary.BigEndian.Uint32(b[16:]))}, err
}

// rootHead is the head of an answer.
func rootHead(stream, status uint16, size int) []byte {
	b := binary.BigEndian.AppendUint16(nil, stream)
	b = binary.BigEndian.AppendUint16(b, status)
	return binary.BigEndian.AppendUint32(b, uint32(size))
}

func rootAnswer(q rootRequest, status uint16, body []byte) []byte {
	return append(rootHead(q.stream, status, len(body)), body...)
}

// upgrade answers the handshake of XRootD and agrees on TLS.
func upgrade(c net.Conn) bool {
	if _, err := io.ReadFull(c, make([]byte, 20)); err != nil {
		return false
	}
	q, err := readRoot(c)
	if err != nil {
		return false
	}
	numbers := binary.BigEndian.AppendUint32(nil, rootProtocol)
	first := binary.BigEndian.AppendUint32(numbers, rootServer)
	answer := append(rootHead(0, 0, len(first)), first...)
	answer = append(answer, rootAnswer(q, 0, binary.BigEndian.AppendUint32(numbers, rootServer|rootGoToTLS))...)
	_, err = c.Write(answer)
	return err == nil
}

// serveRoot has the fault on each connection after XRootD's upgrade to TLS: in the handshake, or instead of the answer to a read or to the
// login.
func (h *hostile) serveRoot(t *testing.T, s Setting, conf *tls.Config, atLogin bool) (port uint16) {
	conf = h.configured(conf)
	return Serve(t, func(raw net.Conn) {
		defer stall(raw)
		if !upgrade(raw) {
			return
		}
		p := h.accept(s, raw, conf)
		for p != nil {
			q, err := readRoot(p.TLS)
			if err != nil {
				return
			}
			p.Asked = func(size int) []byte { return rootHead(q.stream, 0, min(size, q.count)) }
			var body []byte
			switch {
			case q.code == rootRead || atLogin:
				h.after(p)
				return
			case q.code == rootLogin:
				body = make([]byte, 16)
			case q.code == rootOpen:
				body = fmt.Appendf(make([]byte, 12), "1 %d 16 1700000000\x00", h.size)
			}
			if p.Send(23, rootAnswer(q, 0, body), 0) != nil {
				return
			}
		}
	})
}

// redirectRoot sends clients to the server at another port.
func redirectRoot(t *testing.T, conf *tls.Config, to uint16) (port uint16) {
	return Serve(t, func(raw net.Conn) {
		if !upgrade(raw) {
			return
		}
		c := tls.Server(raw, conf)
		for {
			q, err := readRoot(c)
			if err != nil {
				return
			}
			answer := rootAnswer(q, 0, make([]byte, 16))
			if q.code != rootLogin {
				answer = rootAnswer(q, rootRedirect, append(binary.BigEndian.AppendUint32(nil, uint32(to)), "127.0.0.1"...))
			}
			if _, err := c.Write(answer); err != nil {
				return
			}
		}
	})
}

// TestHostileRootServers has XRootD servers with the faults of TestHostileServers. Each must end in
// one error of the expected class, in time. If a redirector sends the client to such a server, the
// client may request the rest of the file there, but not without end, and its counts are right.
func TestHostileRootServers(t *testing.T) {
	for i, s := range Settings() {
		if i != 0 && i != On12 {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			conf, n := s.ServerConfig(t), 0
			for name, h := range hostiles() {
				if h.on12 != (s.Version == tls.VersionTLS12) {
					continue
				}
				n++
				h.late(name)
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					h.meetAt(t, xrootd.Driver(), fmt.Sprintf("roots://127.0.0.1:%d//", h.serveRoot(t, s, conf, false)), false)
				})
				if h.first {
					t.Run(name+", at the login", func(t *testing.T) {
						t.Parallel()
						h.meetAt(t, xrootd.Driver(), fmt.Sprintf("roots://127.0.0.1:%d//", h.serveRoot(t, s, conf, true)), false)
					})
				}
				if h.conf == nil {
					t.Run(name+", behind a redirector", func(t *testing.T) {
						t.Parallel()
						to := redirectRoot(t, conf, h.serveRoot(t, s, conf, false))
						h.meetAt(t, xrootd.Driver(), fmt.Sprintf("roots://127.0.0.1:%d//", to), true)
					})
				}
			}
			if n < 30 {
				t.Errorf("%d faults", n)
			}
		})
	}
}

// late adapts the expectations if a fault is detected later than in HTTP: bytes after a response
// belong to another response.
func (h *hostile) late(name string) {
	switch {
	case strings.HasSuffix(name, "more than announced"):
		h.class = storage.Timeout
	case h.text == "more payload than":
		h.text = "not asked for"
	}
}
