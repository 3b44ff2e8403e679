package tlsconn

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
)

func TestMain(m *testing.M) { os.Exit(tier.Main(m)) }

func content(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(b)
	return b
}

// TestAgainstCryptoTLS has crypto/tls as the server: it echoes, and sends bulk.
func TestAgainstCryptoTLS(t *testing.T) {
	const bulk = 5<<20 + 123
	data := content(bulk)
	for _, s := range Settings() {
		t.Run(s.Name, func(t *testing.T) {
			conf := s.ServerConfig(t)
			conf.SessionTicketsDisabled = false
			port := Serve(t, func(raw net.Conn) {
				c := tls.Server(raw, conf)
				got := make([]byte, bulk)
				if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, data) {
					t.Errorf("the server received something else: %v", err)
					return
				}
				for range 3 {
					_, _ = c.Write([]byte("head"))
					_, _ = c.Write(data)
				}
				_ = c.CloseWrite()
			})
			c := connect(t, newDialer(t), port)
			if (c.through == nil) == s.Whole {
				t.Errorf("undecrypted is %v", c.through == nil)
			}
			for at := 0; at < bulk; at += 100_000 {
				if _, err := c.WriteMore(data[at:min(bulk, at+100_000)]); err != nil {
					t.Fatal(err)
				}
			}
			for round := range 3 {
				head := make([]byte, 4)
				if _, err := io.ReadFull(c, head); err != nil || string(head) != "head" {
					t.Fatalf("round %d: out of step: %q, %v", round, head, err)
				}
				if round == 1 {
					got := make([]byte, bulk)
					if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, data) {
						t.Fatalf("received something else: %v", err)
					}
					continue
				}
				var moved, dropped int
				n, err := c.Discard(bulk, func(n int) { moved += n }, func(n int) { dropped += n })
				if n != bulk || err != nil || moved+dropped != bulk {
					t.Fatalf("%d bytes discarded, %d decrypted, %d not: %v", n, moved, dropped, err)
				}
				if (dropped < bulk*9/10) != s.Whole {
					t.Errorf("%d bytes of %d were not decrypted", dropped, bulk)
				}
			}
			if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
				t.Errorf("%d bytes and %v after the end", n, err)
			}
		})
	}
}

// TestNothingIsHeldWhileWaiting looks for buffers of a connection that waits.
func TestNothingIsHeldWhileWaiting(t *testing.T) {
	go1 := make(chan struct{})
	conf := Settings()[0].ServerConfig(t)
	port := Serve(t, func(raw net.Conn) {
		p, err := Settings()[0].Accept(raw, conf)
		if err != nil {
			return
		}
		<-go1
		_ = p.Send(typeData, content(5000), 0)
	})
	c := connect(t, newDialer(t), port)
	_ = c.conn.SetDeadline(time.Now().Add(10 * time.Millisecond))
	if _, err := c.Read(make([]byte, 1)); err == nil || c.held != nil {
		t.Errorf("%v, and a buffer is held: %v", err, c.held != nil)
	}
	_ = c.conn.SetDeadline(time.Time{})
	close(go1)
	if _, err := io.ReadFull(c, make([]byte, 5000)); err != nil || c.held != nil {
		t.Errorf("%v, and a buffer is held: %v", err, c.held != nil)
	}
}

// TestDiscardAllocatesNothing checks the hot path. The server only writes, which does not allocate
// memory either.
func TestDiscardAllocatesNothing(t *testing.T) {
	const size = 1 << 20
	data, conf := content(size), Settings()[0].ServerConfig(t)
	port := Serve(t, func(raw net.Conn) {
		c := tls.Server(raw, conf)
		for err := error(nil); err == nil; {
			_, err = c.Write(data)
		}
	})
	c := connect(t, newDialer(t), port)
	none := func(int) {}
	got := testing.AllocsPerRun(50, func() {
		if _, err := c.Discard(size, none, none); err != nil {
			t.Fatal(err)
		}
	})
	if got >= 1 {
		t.Errorf("%v allocations", got)
	}
}

// TestForeseenRecords has a service whose records were regular and then change: the client reports
// one error, counts no bytes that were not received, and predicts no more records.
func TestForeseenRecords(t *testing.T) {
	const records = 100
	for _, s := range []Setting{Settings()[0], Settings()[On12]} {
		conf := s.ServerConfig(t)
		for odd := range 12 {
			pool, d := &Pool{}, newDialer(t)
			pool.checked.Store(regular)
			port := Serve(t, func(raw net.Conn) {
				p, err := s.Accept(raw, conf)
				if err != nil {
					return
				}
				for i := range records {
					n := maxPlain
					if odd > 0 && i == 50+odd {
						n = 5000
					}
					if err = p.Send(typeData, content(n), 0); err != nil {
						return
					}
				}
				_, _ = io.Copy(io.Discard, raw)
			})
			total := int64(records * maxPlain)
			if odd > 0 {
				total -= maxPlain - 5000
			}
			for try := range 2 {
				c := connectWith(t, d, port, pool)
				var moved int64
				count := func(n int) { moved += int64(n) }
				n, err := c.Discard(total, count, count)
				if n != moved || n > total {
					t.Fatalf("%s: %d bytes of %d, %d counted", s.Name, n, total, moved)
				}
				switch {
				case (odd == 0 || try == 1) && (err != nil || n != total || c.foreseen != (odd == 0)):
					t.Errorf("%s, record %d, try %d: %d of %d bytes, foreseen %v: %v", s.Name, odd, try, n, total, c.foreseen, err)
				case err != nil && !errors.Is(err, ErrRecord):
					t.Errorf("%s: %v", s.Name, err)
				case odd > 0 && !pool.irregular.Load():
					t.Errorf("%s: the service is still taken for a regular one", s.Name)
				}
			}
		}
	}
}

// A step is the next action of a peer; its kind is a byte of the fuzzer, and its size two more
// bytes.
type step struct {
	what byte
	size int
}

func steps(script []byte) (all []step) {
	for ; len(script) >= 3 && len(all) < 40; script = script[3:] {
		all = append(all, step{script[0] % 18, int(script[1])<<8 | int(script[2])})
	}
	return all
}

// play performs the steps of the script. It returns the errors of a client that has disconnected.
func (p *Peer) play(all []step) error {
	for i, s := range all {
		var err error
		data := content(s.size % (maxPlain + 1))
		switch s.what {
		default: // the most frequent
			err = p.Send(typeData, data, 0)
		case 1:
			err = p.Send(typeData, data, min(s.size%300+1, maxPlain-len(data)))
		case 2:
			for range 5 {
				err = errors.Join(err, p.Send(typeData, content(maxPlain), 0))
			}
		case 3:
			ticket := Ticket(s.size % 3000)
			if cut := s.size % 50; cut > 0 && p.is13() { // in two records
				err = p.Send(typeHandshake, ticket[:cut], 0)
				ticket = ticket[cut:]
			}
			err = errors.Join(err, p.Send(typeHandshake, ticket, 0))
		case 4:
			if p.is13() {
				err = p.Update(s.size%2 == 1)
			}
		case 5:
			err = p.Send(typeAlert, []byte{byte(s.size >> 8), byte(s.size)}, 0)
		case 6:
			_, err = p.Raw.Write([]byte{typeChangeCipherSpec, 3, 3, 0, 1, byte(s.size)})
		case 7: // altered
			record := p.Seal(typeData, data, 0)
			record[s.size%len(record)] ^= byte(1 << (i % 8))
			_, err = p.Raw.Write(record)
		case 8: // repeated
			_, err = p.Raw.Write(p.last)
		case 9: // lost
			p.Seal(typeData, data, 0)
		case 10: // cut off
			record := p.Seal(typeData, data, 0)
			_, err = p.Raw.Write(record[:s.size%len(record)])
			return err
		case 11:
			err = p.Send(typeData, nil, 0)
		case 12:
			err = p.Send(byte(s.size), data[:min(len(data), 100)], 0)
		case 13:
			_, err = p.Raw.Write(content(s.size % 100))
		case 14: // all records of one length, padded differently
			n := s.size%5000 + 5000
			for pad := range 4 {
				err = errors.Join(err, p.Send(typeData, content(n-pad), pad))
			}
		}
		if err != nil {
			return err
		}
	}
	return p.Send(typeAlert, []byte{1, 0}, 0)
}

// FuzzRecords plays a script to crypto/tls and to this package, which must read the same payload
// and end alike. Then the payload is discarded, at a new service and at a service with regular
// records so far: as many bytes must be counted, or padding be noticed.
func FuzzRecords(f *testing.F) {
	suites := Settings()
	suites = slices.DeleteFunc(suites, func(s Setting) bool { return s.Whole })
	for what := range byte(18) {
		for suite := range suites {
			f.Add(byte(suite), []byte{0, 0x10, 0, 2, 0, 0, what, 0x12, 0x34, 0, 1, 2, what, 0, 1, 2, 0, 0, 0, 0, 9})
		}
	}
	f.Add(byte(0), bytes.Repeat([]byte{11, 0, 0}, 20))
	f.Add(byte(0), bytes.Repeat([]byte{2, 0, 0}, 12))
	d := newDialer(f)
	f.Fuzz(func(t *testing.T, suite byte, script []byte) {
		s, all := suites[int(suite)%len(suites)], steps(script)
		if len(all) == 0 {
			return
		}
		conf := s.ServerConfig(t)
		port := Serve(t, func(raw net.Conn) {
			p, err := s.Accept(raw, conf)
			if err != nil {
				return
			}
			_ = p.play(all) // a client that has had enough
			_ = raw.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, raw)
		})
		raw, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		require.NoError(t, err)
		oracle := tls.Client(raw, ClientConfig())
		want, wantErr := io.ReadAll(oracle)
		_ = raw.Close()

		c := connect(t, d, port)
		got, err := readAll(c, len(script))
		_ = c.Close()
		if !bytes.Equal(got, want) || ended(err) != ended(wantErr) {
			t.Fatalf("%s: %d bytes and %v, crypto/tls reads %d bytes and %v", s.Name, len(got), err, len(want), wantErr)
		}
		if err != nil && wantErr != nil && errors.Is(err, io.ErrUnexpectedEOF) != errors.Is(wantErr, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v, crypto/tls has %v", s.Name, err, wantErr)
		}
		for _, checked := range []int64{0, regular} {
			pool := &Pool{}
			pool.checked.Store(checked)
			c := connectWith(t, d, port, pool)
			var moved int64
			count := func(n int) { moved += int64(n) }
			n, err := c.Discard(int64(len(want)), count, count)
			surprised := errors.Is(err, ErrRecord) && c.foreseen // records were not as long as those before
			if n != moved || n > int64(len(want)) || wantErr == nil && err != nil && !padded(all) && !surprised {
				t.Fatalf("%s: discarded %d and counted %d of %d bytes: %v", s.Name, n, moved, len(want), err)
			}
			if surplus, err := rest(c); n == int64(len(want)) && wantErr == nil && surplus && !padded(all) {
				t.Errorf("%s: payload is left over: %v", s.Name, err)
			}
			_ = c.Close()
		}
	})
}

// padded reports whether records of equal length may contain different amounts of payload.
func padded(all []step) bool {
	for _, s := range all {
		if s.what == 1 || s.what == 14 {
			return true
		}
	}
	return false
}

// rest waits for the end and reports whether payload came before.
func rest(c *Conn) (bool, error) {
	n, err := c.Read(make([]byte, 1))
	return n > 0, err
}

// readAll reads in pieces of various sizes, so that records are decrypted in place and not.
func readAll(c *Conn, seed int) (all []byte, err error) {
	buf := make([]byte, 40_000)
	for i := seed; ; i++ {
		n, err := c.Read(buf[:[...]int{1, 100, 16_000, 40_000}[i%4]])
		all = append(all, buf[:n]...)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
	}
}

// TestPaddingIsNoticed has records of one length, of which some are padded: surplus payload is
// reported.
func TestPaddingIsNoticed(t *testing.T) {
	const unit, records = 10_000, 20
	conf := Settings()[0].ServerConfig(t)
	port := Serve(t, func(raw net.Conn) {
		p, err := Settings()[0].Accept(raw, conf)
		if err != nil {
			return
		}
		var all []byte
		for i := range records + 1 {
			pad := 0
			if i == records/2 {
				pad = 1000
			}
			all = append(all, p.Seal(typeData, content(unit-pad), pad)...)
		}
		_, _ = raw.Write(all)
		_, _ = io.Copy(io.Discard, raw)
	})
	c := connect(t, newDialer(t), port)
	var dropped int
	n, err := c.Discard(records*unit, func(int) {}, func(n int) { dropped += n })
	if n != records*unit || err != nil || dropped < unit*(records-3) {
		t.Fatalf("%d bytes, %d of them dropped: %v", n, dropped, err)
	}
	// The padded record lacked 1000 bytes, which the last one brings.
	for surplus := false; !surplus; {
		if surplus, err = c.Surplus(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestKeysChangeOnTheWay updates keys in the midst of discarded payload.
func TestKeysChangeOnTheWay(t *testing.T) {
	conf := Settings()[0].ServerConfig(t)
	port := Serve(t, func(raw net.Conn) {
		p, err := Settings()[0].Accept(raw, conf)
		if err != nil {
			t.Error(err)
			return
		}
		for i := range 40 {
			if i%10 == 5 {
				err = errors.Join(err, p.Update(i%20 == 5))
			}
			err = errors.Join(err, p.Send(typeData, content(maxPlain), 0))
		}
		b := make([]byte, 3)
		if _, got := io.ReadFull(p.TLS, b); got != nil || string(b) != "bye" {
			t.Errorf("the client says %q: %v", b, errors.Join(err, got))
		}
	})
	c := connect(t, newDialer(t), port)
	var moved, dropped int
	n, err := c.Discard(40*maxPlain, func(n int) { moved += n }, func(n int) { dropped += n })
	if n != 40*maxPlain || err != nil || dropped < 30*maxPlain {
		t.Fatalf("%d bytes, %d of them dropped: %v", n, dropped, err)
	}
	if _, err := c.Write([]byte("bye")); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}
