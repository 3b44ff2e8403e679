package lab

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// asker is the address from which lab sends its own requests to a redirector.
const asker = "127.0.0.2"

// dial connects to address until ctx is over or a second has passed.
func dial(ctx context.Context, address string, from net.Addr) (net.Conn, error) {
	conn, err := (&net.Dialer{LocalAddr: from}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(time.Second)
	}
	return conn, conn.SetDeadline(deadline)
}

// askListener returns a question that succeeds when a server listens at all of these addresses:
// paths of Unix sockets or host:port.
func askListener(addresses ...string) question {
	return func(ctx context.Context) error {
		for _, address := range addresses {
			if filepath.IsAbs(address) {
				if err := listens(address); err != nil {
					return err
				}
				continue
			}
			conn, err := dial(ctx, address, nil)
			if err != nil {
				return err
			}
			_ = conn.Close()
		}
		return nil
	}
}

// askGreeting returns a question that succeeds when the server at address greets with a line that
// begins with prefix. It leaves with the words of goodbye.
func askGreeting(address, prefix, goodbye string) question {
	return func(ctx context.Context) error {
		conn, err := dial(ctx, address, nil)
		if err != nil {
			return err
		}
		defer conn.Close()
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err == nil && !strings.HasPrefix(line, prefix) {
			err = fmt.Errorf("%s greets with %q", address, line)
		}
		if err == nil {
			_, err = io.WriteString(conn, goodbye)
		}
		return err
	}
}

// listens returns nil if a server listens at a Unix socket. It does not connect to find out: cmsd
// takes any connection for its xrootd. On a busy machine it may detect the end of the test
// connection after xrootd has connected, and suspends the server.
func listens(path string) error {
	table, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(table)) { // Num RefCount Protocol Flags Type St Inode Path
		f := strings.Fields(line)
		if len(f) == 8 && f[7] == path {
			if flags, err := strconv.ParseUint(f[3], 16, 32); err == nil && flags&unixAccepts != 0 {
				return nil
			}
		}
	}
	return fmt.Errorf("nothing listens at %s: %w", path, syscall.ECONNREFUSED)
}

// unixAccepts is a flag in /proc/net/unix: __SO_ACCEPTCON of linux/net.h.
const unixAccepts = 1 << 16

// askXRootD returns a question that succeeds when the server at address completes the initial
// handshake of the XRootD protocol.
func askXRootD(address string) question {
	return func(ctx context.Context) error {
		conn, err := dial(ctx, address, nil)
		if err != nil {
			return err
		}
		defer conn.Close()
		return greet(conn)
	}
}

// greet makes the initial handshake of the XRootD protocol.
func greet(conn net.Conn) error {
	hello := binary.BigEndian.AppendUint64(make([]byte, 12, 20), 4<<32|2012)
	if _, err := conn.Write(hello); err != nil {
		return err
	}
	answer := make([]byte, 16) // stream 0, status 0, 8 bytes: version, kind of server
	if _, err := io.ReadFull(conn, answer); err != nil {
		return err
	}
	if !bytes.Equal(answer[:8], []byte{0, 0, 0, 0, 0, 0, 0, 8}) {
		return fmt.Errorf("%s answers the XRootD handshake with % x", conn.RemoteAddr(), answer)
	}
	return nil
}

// Requests of the XRootD protocol.
const (
	xrdProtocol = 3006
	xrdLogin    = 3007
	xrdLocate   = 3027
)

// locate requests from the redirector at address the data servers to which it can send clients, and
// returns their ports.
func locate(ctx context.Context, address string) (map[string]bool, error) {
	conn, err := dial(ctx, address, &net.TCPAddr{IP: net.ParseIP(asker)})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return dataServers(conn)
}

// dataServers logs in without a credential and requests the list of all data servers: over TLS if
// the redirector supports it, since it may demand it.
func dataServers(conn net.Conn) (map[string]bool, error) {
	if err := greet(conn); err != nil {
		return nil, err
	}
	able := [16]byte{2: 0x05, 3: 0x11, 4: 0x02 | 0x04, 5: 0x03} // version 5.1.1, TLS is supported, a login follows
	said, err := xrdRequest(conn, xrdProtocol, able, "")
	if err != nil {
		return nil, err
	}
	if len(said) >= 8 && said[4]&0x40 != 0 { // kXR_gotoTLS
		secure := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
		if err := secure.Handshake(); err != nil {
			return nil, err
		}
		conn = secure
	}
	login := [16]byte{4: 'w', 'e', 'i', 'r', 14: 4} // process 0, name, version
	session, err := xrdRequest(conn, xrdLogin, login, "")
	if err != nil {
		return nil, err
	}
	if len(session) > 16 {
		return nil, fmt.Errorf("%s wants credentials: %q", conn.RemoteAddr(), session[16:])
	}
	list, err := xrdRequest(conn, xrdLocate, [16]byte{}, "*")
	if err != nil {
		return nil, err
	}
	ports := map[string]bool{}
	for _, word := range strings.Fields(strings.TrimRight(string(list), "\x00")) {
		if word[0] != 'S' { // "s" marks a server that is gone, but not forgotten
			continue
		}
		ports[word[strings.LastIndexByte(word, ':')+1:]] = true
	}
	return ports, nil
}

// xrdRequest sends one request and returns its answer, which must be right.
func xrdRequest(conn net.Conn, code uint16, fields [16]byte, body string) ([]byte, error) {
	req := binary.BigEndian.AppendUint16([]byte{0, 1}, code)
	req = append(req, fields[:]...)
	req = binary.BigEndian.AppendUint32(req, uint32(len(body)))
	if _, err := conn.Write(append(req, body...)); err != nil {
		return nil, err
	}
	var head [8]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[4:])
	if size > 1<<16 {
		return nil, fmt.Errorf("%s answers request %d with % x", conn.RemoteAddr(), code, head)
	}
	answer := make([]byte, size)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return nil, err
	}
	if status := binary.BigEndian.Uint16(head[2:]); status != 0 {
		return nil, fmt.Errorf("%s answers request %d with status %d: %q", conn.RemoteAddr(), code, status, answer)
	}
	return answer, nil
}
