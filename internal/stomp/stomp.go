// Package stomp sends messages to a broker by STOMP 1.2 (https://stomp.github.io/stomp-specification-1.2.html).
//
// Many messages are on their way at once, and each is confirmed by a receipt of the broker. The package has no subscriptions and no
// heart-beats: a caller closes a connection that it does not use for a while.
package stomp

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Broker is the address of a broker and the credentials for it.
type Broker struct {
	Address  string      // HOST:PORT
	TLS      *tls.Config // nil: without TLS
	Host     string      // virtual host; "": the host of Address
	User     string      // "": no login
	Password string
}

// A Message is one message for Send.
type Message struct {
	Destination string            // as the broker names it, such as /topic/NAME or /queue/NAME
	Header      map[string]string // headers besides destination, receipt and content-length; values have no NUL
	Body        []byte
}

// A Conn is a connection to a broker. It is for one goroutine. Its owner closes it.
type Conn struct {
	conn net.Conn
	in   *bufio.Reader
	last int // number of the last requested receipt
}

// Dial connects to a broker and logs in. ctx bounds only this.
func Dial(ctx context.Context, b Broker) (_ *Conn, err error) {
	host, _, err := net.SplitHostPort(b.Address)
	if err != nil {
		return nil, fmt.Errorf("broker %s: %w", b.Address, err)
	}
	var conn net.Conn
	if b.TLS != nil {
		conn, err = (&tls.Dialer{Config: b.TLS}).DialContext(ctx, "tcp", b.Address)
	} else {
		conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", b.Address)
	}
	if err != nil {
		return nil, fmt.Errorf("broker %s: %w", b.Address, err)
	}
	c := &Conn{conn: conn, in: bufio.NewReaderSize(conn, longestLine)}
	if err := c.login(ctx, b, host); err != nil {
		_ = conn.Close() // the first error has the cause
		return nil, fmt.Errorf("broker %s: %w", b.Address, err)
	}
	return c, nil
}

// login sends CONNECT and reads the answer. Its headers are not escaped.
func (c *Conn) login(ctx context.Context, b Broker, host string) error {
	defer c.bound(ctx)()
	if b.Host != "" {
		host = b.Host
	}
	headers := []string{"accept-version:1.2", "heart-beat:0,0", "host:" + host}
	if b.User != "" {
		headers = append(headers, "login:"+b.User, "passcode:"+b.Password)
	}
	for _, h := range headers {
		if strings.ContainsAny(h, "\r\n\x00") {
			name, _, _ := strings.Cut(h, ":")
			return fmt.Errorf("%s: line breaks are not possible", name)
		}
	}
	if _, err := c.conn.Write([]byte("CONNECT\n" + strings.Join(headers, "\n") + "\n\n\x00")); err != nil {
		return because(ctx, err)
	}
	f, err := readFrame(c.in)
	switch {
	case err != nil:
		return because(ctx, err)
	case f.command == "ERROR":
		return f.refusal()
	case f.command != "CONNECTED":
		return fmt.Errorf("it answers CONNECT with %.40q", f.command)
	case f.header["version"] != "1.2":
		return fmt.Errorf("it speaks STOMP %.40q, not 1.2", f.header["version"])
	}
	return nil
}

// Send sends messages in their order and waits for their receipts, until ctx ends. n is the number
// of messages, from the first message on, that the broker has confirmed. After an error the
// connection is of no use, and the broker may have more of the messages than n.
func (c *Conn) Send(ctx context.Context, all []Message) (n int, err error) {
	defer c.bound(ctx)()
	first := c.last + 1
	var out bytes.Buffer
	for _, m := range all {
		c.last++
		m.write(&out, c.last)
	}
	_, writeErr := c.conn.Write(out.Bytes())
	confirmed := make([]bool, len(all))
	for n < len(all) {
		f, err := readFrame(c.in) // a broker sends the reason before it closes the connection
		switch {
		case err != nil:
			return n, because(ctx, errors.Join(writeErr, err))
		case f.command == "ERROR":
			return n, f.refusal()
		case f.command != "RECEIPT":
			return n, fmt.Errorf("the broker answers SEND with %.40q", f.command)
		}
		i, err := strconv.Atoi(f.header["receipt-id"])
		if i -= first; err != nil || i < 0 || i >= len(all) {
			return n, fmt.Errorf("the broker confirms %.40q, which was not sent", f.header["receipt-id"])
		}
		confirmed[i] = true
		for n < len(all) && confirmed[n] {
			n++
		}
	}
	return n, writeErr
}

// Close closes the connection. All that was confirmed stays with the broker.
func (c *Conn) Close() error { return c.conn.Close() }

// bound lets reads and writes fail when ctx ends, until the function that it returns is called.
func (c *Conn) bound(ctx context.Context) (end func()) {
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) }) // connections of this package can
	return func() { stop() }
}

// because returns the error of a context that ended an operation, else err.
func because(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (m *Message) write(out *bytes.Buffer, receipt int) {
	out.WriteString("SEND\ndestination:" + escape(m.Destination) + "\n")
	for _, name := range slices.Sorted(maps.Keys(m.Header)) {
		out.WriteString(escape(name) + ":" + escape(m.Header[name]) + "\n")
	}
	fmt.Fprintf(out, "receipt:%d\ncontent-length:%d\n\n", receipt, len(m.Body))
	out.Write(m.Body)
	out.WriteByte(0)
}

func escape(text string) string {
	if !strings.ContainsAny(text, "\\\r\n:\x00") {
		return text
	}
	return strings.NewReplacer(`\`, `\\`, "\r", `\r`, "\n", `\n`, ":", `\c`, "\x00", "").Replace(text)
}
