package stomp

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/trust"
	"weir/lab"
	"weir/lab/labtest"
)

func at(b *lab.Broker) Broker {
	return Broker{Address: b.Address("stomp"), Host: "/", User: b.Settings[lab.BrokerUser], Password: b.Settings[lab.BrokerPassword]}
}

func dial(t *testing.T, b Broker) *Conn {
	t.Helper()
	c, err := Dial(t.Context(), b)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func numbered(destination string, from, to int) (all []Message) {
	for i := from; i < to; i++ {
		all = append(all, Message{Destination: destination, Body: fmt.Appendf(nil, "message %d\x00\n", i),
			Header: map[string]string{"persistent": "true", "odd": "a:b\\c\nd"}})
	}
	return all
}

// A real broker confirms messages in their order, and a real client gets them as they were sent,
// headers with special characters included. Persistent messages survive the broker.
func TestBroker(t *testing.T) {
	t.Parallel()
	b := labtest.Start(t, lab.RabbitMQConfig{Config: lab.Config{TLS: true}})
	const queue = "/queue/it"
	s := labtest.Subscribe(t, b, queue)
	c := dial(t, at(b))
	for i := range 3 { // a connection has many batches
		if n, err := c.Send(t.Context(), numbered(queue, 500*i, 500*(i+1))); n != 500 || err != nil {
			t.Fatal(n, err)
		}
	}
	for i := range 1500 {
		m := s.Next()
		if m.Body != fmt.Sprintf("message %d\x00\n", i) || m.Header["odd"] != "a:b\\c\nd" {
			t.Fatalf("message %d: %+v", i, m)
		}
	}
	const other = "/queue/other"
	if n, err := c.Send(t.Context(), numbered(other, 0, 10)); n != 10 || err != nil {
		t.Fatal(n, err)
	}
	b.Kill()
	if n, err := c.Send(t.Context(), numbered(other, 10, 20)); err == nil {
		t.Errorf("%d messages were confirmed by no broker", n)
	}
	if _, err := Dial(t.Context(), at(b)); err == nil {
		t.Error("no broker, and no error")
	}
	require.NoError(t, b.Restart(t.Context()))
	s = labtest.Subscribe(t, b, other)
	for i := range 10 {
		if m := s.Next(); m.Body != fmt.Sprintf("message %d\x00\n", i) {
			t.Fatalf("message %d: %+v", i, m)
		}
	}

	for name, change := range map[string]func(*Broker){
		"password":     func(b *Broker) { b.Password = "hush-hush" },
		"virtual host": func(b *Broker) { b.Host = "nowhere" },
		"line break":   func(b *Broker) { b.Password = "hush-hush\nhost:/" },
		"address":      func(b *Broker) { b.Address = "nowhere" },
	} {
		wrong := at(b)
		change(&wrong)
		if c, err := Dial(t.Context(), wrong); err == nil {
			t.Errorf("a wrong %s is admitted: %v", name, c.Close())
		} else if strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: a secret in %v", name, err)
		}
	}

	pool, err := trust.Authorities(b.CAFile)
	require.NoError(t, err)
	secure := at(b)
	secure.Address, secure.TLS = b.Address("stomp+ssl"), &tls.Config{RootCAs: pool}
	if n, err := dial(t, secure).Send(t.Context(), numbered(queue, 0, 1)); n != 1 || err != nil {
		t.Error(n, err)
	}
	secure.TLS = &tls.Config{RootCAs: x509.NewCertPool()}
	if _, err := Dial(t.Context(), secure); err == nil {
		t.Error("a broker of an unknown authority is accepted")
	}
}

// scripted returns a broker that sends the given frames, one after each frame that it gets.
func scripted(t *testing.T, answers ...string) Broker {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		in := bufio.NewReader(conn)
		for _, a := range answers {
			if _, err := in.ReadString(0); err != nil {
				return
			}
			if _, err := io.WriteString(conn, a); err != nil {
				return
			}
		}
		_, _ = io.Copy(io.Discard, in) // until the client leaves
	}()
	t.Cleanup(func() { _ = l.Close() })
	return Broker{Address: l.Addr().String()}
}

// Only the messages up to the first unconfirmed message count as sent, with any receipts, and Send
// does not wait after ctx for a broker that does not respond.
func TestReceipts(t *testing.T) {
	t.Parallel()
	const hello = "CONNECTED\nversion:1.2\n\n\x00\n"
	receipt := func(n int) string { return fmt.Sprintf("RECEIPT\nreceipt-id:%d\n\n\x00", n) }
	for name, c := range map[string]struct {
		answers []string
		n       int
		text    string
	}{
		"all":     {[]string{hello, "", "", receipt(2) + receipt(1) + receipt(3)}, 3, ""},
		"holes":   {[]string{hello, receipt(3), receipt(1), "ERROR\nmessage:full\n\nno\\cspace\x00"}, 1, "full"},
		"unknown": {[]string{hello, receipt(4)}, 0, "not sent"},
		"other":   {[]string{hello, "MESSAGE\n\nx\x00"}, 0, "MESSAGE"},
		"silent":  {[]string{hello, receipt(1)}, 1, context.DeadlineExceeded.Error()},
		"version": {[]string{"CONNECTED\nversion:1.0\n\n\x00"}, -1, "1.0"},
		"refused": {[]string{"ERROR\nmessage:Bad CONNECT\n\nAccess refused\x00"}, -1, "Access refused"},
		"garbage": {[]string{"HTTP/1.1 400 Bad Request\r\n\r\n\x00"}, -1, "HTTP"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := Dial(t.Context(), scripted(t, c.answers...))
			n := -1
			if err == nil {
				defer conn.Close()
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				n, err = conn.Send(ctx, numbered("/queue/x", 0, 3))
			}
			if n != c.n || (err == nil) != (c.text == "") || err != nil && !strings.Contains(err.Error(), c.text) {
				t.Errorf("%d, %v", n, err)
			}
		})
	}
}

// No bytes of a broker crash the client or make it take much memory.
func FuzzFrame(f *testing.F) {
	for _, text := range []string{"CONNECTED\nversion:1.2\n\n\x00", "\n\r\nRECEIPT\r\nreceipt-id:a\\cb\r\n\r\n\x00",
		"ERROR\ncontent-length:3\n\na\x00b\x00", "ERROR\ncontent-length:-1\n\n\x00", "ERROR\na\\x:b\n\n\x00", "ERROR\nno colon\n\n\x00"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		in := bufio.NewReaderSize(strings.NewReader(string(data)), longestLine)
		for {
			frame, err := readFrame(in)
			if err != nil {
				if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && frame.command != "" {
					t.Errorf("a frame %q without an end is no error", frame.command)
				}
				return
			}
			if frame.command == "" || len(frame.body) > longestBody || len(frame.header) > mostHeaders {
				t.Errorf("%+v", frame)
			}
		}
	})
}
