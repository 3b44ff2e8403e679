package tlsconn

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"weir/internal/require"
)

// TestResumption connects several times, with one store for tickets and with another. After a
// resumed handshake the connection behaves as after a full handshake.
func TestResumption(t *testing.T) {
	const bulk = 3<<20 + 5
	data := content(bulk)
	for _, s := range Settings() {
		t.Run(s.Name, func(t *testing.T) {
			conf := s.ServerConfig(t)
			conf.SessionTicketsDisabled = false
			port := Serve(t, func(raw net.Conn) {
				c := tls.Server(raw, conf)
				hello := make([]byte, 5)
				if _, err := io.ReadFull(c, hello); err != nil {
					return // a client without tickets may be gone
				}
				_, _ = c.Write(hello)
				_, _ = c.Write(data)
				_, _ = c.Write(data)
				_ = c.CloseWrite()
			})
			d, pool := newDialer(t), &Pool{}
			var one, two Tickets
			for i, step := range []struct {
				tickets *Tickets
				server  string
				resumed bool
			}{
				{&one, "a", false}, {&one, "a", true}, {&one, "a", true}, {&one, "b", false}, {&two, "a", false}, {nil, "a", false},
				{&one, "a", true},
			} {
				raw, err := d.Dial(context.Background(), "127.0.0.1", port, time.Now().Add(30*time.Second))
				require.NoError(t, err)
				mine := ClientConfig()
				mine.ClientSessionCache = step.tickets.For(step.server)
				c, err := Client(raw, mine, pool)
				require.NoError(t, err)
				defer c.Close()
				if c.Resumed() != step.resumed || (c.through == nil) == s.Whole {
					t.Errorf("connection %d: resumed %v, undecrypted %v, want %v, %v", i, c.Resumed(), c.through == nil, step.resumed, !s.Whole)
				}
				got := make([]byte, 5+bulk)
				if _, err = c.Write([]byte("hello")); err == nil {
					_, err = io.ReadFull(c, got)
				}
				if err != nil || string(got[:5]) != "hello" || !bytes.Equal(got[5:], data) {
					t.Fatalf("connection %d: received something else: %v", i, err)
				}
				if c.tickets != nil {
					t.Errorf("connection %d: crypto/tls is kept after the first payload", i)
				}
				moved, dropped := 0, 0
				n, err := c.Discard(bulk, func(n int) { moved += n }, func(n int) { dropped += n })
				if n != bulk || err != nil || (dropped < bulk*9/10) != s.Whole {
					t.Errorf("connection %d: %d bytes discarded, %d decrypted, %d not: %v", i, n, moved, dropped, err)
				}
			}
		})
	}
}

// TestOddTickets has servers that send, before the payload, invalid tickets and other messages that
// are allowed there: the payload arrives in any case.
func TestOddTickets(t *testing.T) {
	data := content(5000)
	long := Ticket(100)
	copy(long[4:], "\xff\xff\xff\xff") // seconds
	for name, script := range map[string]func(p *Peer) error{
		"for no time": func(p *Peer) error { return p.Send(typeHandshake, Ticket(100), 0) },
		"for ages":    func(p *Peer) error { return p.Send(typeHandshake, long, 0) },
		"garbage":     func(p *Peer) error { return p.Send(typeHandshake, []byte{messageTicket, 0, 0, 3, 1, 2, 3}, 0) },
		"large":       func(p *Peer) error { return p.Send(typeHandshake, Ticket(15_000), 100) },
		"in parts": func(p *Peer) error {
			return errors.Join(p.Send(typeHandshake, long[:50], 0), p.Send(typeHandshake, long[50:], 7))
		},
		"after new keys":  func(p *Peer) error { return errors.Join(p.Update(true), p.Send(typeHandshake, Ticket(10), 0)) },
		"before new keys": func(p *Peer) error { return errors.Join(p.Send(typeHandshake, Ticket(10), 0), p.Update(false)) },
		"after payload":   func(p *Peer) error { return errors.Join(p.Send(typeData, data[:1], 0), p.Send(typeHandshake, long, 0)) },
	} {
		t.Run(name, func(t *testing.T) {
			conf := Settings()[0].ServerConfig(t)
			port := Serve(t, func(raw net.Conn) {
				p, err := Settings()[0].Accept(raw, conf)
				if err != nil {
					t.Error(err)
					return
				}
				rest := data
				if name == "after payload" {
					rest = data[1:]
				}
				if err := errors.Join(script(p), p.Send(typeData, rest, 0)); err != nil {
					t.Error(err)
				}
				_, _ = p.TLS.Read(make([]byte, 1)) // until the client has gone
			})
			raw, err := newDialer(t).Dial(context.Background(), "127.0.0.1", port, time.Now().Add(30*time.Second))
			require.NoError(t, err)
			mine := ClientConfig()
			mine.ClientSessionCache = new(Tickets).For("a")
			c, err := Client(raw, mine, &Pool{})
			require.NoError(t, err)
			defer c.Close()
			got := make([]byte, len(data))
			if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, data) || c.tickets != nil {
				t.Errorf("the payload is right: %v, crypto/tls is kept: %v, %v", bytes.Equal(got, data), c.tickets != nil, err)
			}
		})
	}
}

// TestTicketsAreBounded has more servers than there is room for.
func TestTicketsAreBounded(t *testing.T) {
	var all Tickets
	for i := range 2 * maxSessions {
		all.For(string(rune('a'+i))).Put("", &tls.ClientSessionState{})
	}
	first := all.For("a")
	if _, ok := first.Get(""); len(all.sessions) != maxSessions || !ok {
		t.Errorf("%d sessions, the first is there: %v", len(all.sessions), ok)
	}
	first.Put("", nil)
	if _, ok := first.Get(""); ok {
		t.Error("a removed session is there")
	}
}
