package lab_test

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/lab"
)

// answer returns a response of a server: status and body after their length.
func answer(status uint16, body string) string {
	b := binary.BigEndian.AppendUint16([]byte{0, 1}, status)
	return string(binary.BigEndian.AppendUint32(b, uint32(len(body)))) + body
}

// located returns the result of lab.DataServers for a server that sends these bytes.
func located(t testing.TB, said string) (map[string]bool, error) {
	t.Helper()
	ours, theirs := net.Pipe()
	require.NoError(t, ours.SetDeadline(time.Now().Add(10*time.Second)))
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		_, _ = io.Copy(io.Discard, theirs)
	}()
	go func() {
		_, _ = io.WriteString(theirs, said)
		_ = theirs.Close()
	}()
	found, err := lab.DataServers(ours)
	_ = ours.Close()
	<-heard
	return found, err
}

// hello is the response of a server without TLS to the handshake and the protocol request.
var hello = "\x00\x00\x00\x00\x00\x00\x00\x08\x00\x00\x05\x11\x00\x00\x00\x00" +
	answer(0, "\x00\x00\x05\x11\x00\x00\x00\x01")

func TestDataServers(t *testing.T) {
	login := answer(0, strings.Repeat("s", 16))
	for _, c := range []struct {
		name, said, want string
		ports            int
	}{
		{"three", hello + login + answer(0, "Sw127.0.0.1:1000 Sr[::127.0.0.1]:1001 Swlocalhost:1002\x00"), "", 3},
		{"one of two", hello + login + answer(0, "sr[::127.0.0.1]:1000 Sr[::127.0.0.1]:1001 \x00"), "", 1},
		{"none", hello + login + answer(0, "\x00"), "", 0},
		{"wait", hello + login + answer(4005, "\x00\x00\x00\x02"), "status 4005", 0},
		{"an error", hello + login + answer(4003, "\x00\x00\x0b\xc3no"), "status 4003", 0},
		{"credentials", hello + answer(0, strings.Repeat("s", 16)+"&P=gsi"), "wants credentials", 0},
		{"endless", hello + login + "\x00\x01\x00\x00\xff\xff\xff\xff", "answers request 3027", 0},
		{"cut off", hello + login[:9], "EOF", 0},
		{"another protocol", "HTTP/1.1 400 Bad Request\r\n", "answers the XRootD handshake", 0},
	} {
		found, err := located(t, c.said)
		if len(found) != c.ports || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want %d ports, %q", c.name, found, err, c.ports, c.want)
		}
	}
}

func FuzzDataServers(f *testing.F) {
	login := answer(0, strings.Repeat("s", 16))
	f.Add(hello + login + answer(0, "Sw127.0.0.1:1000 Sr[::127.0.0.1]:1001\x00"))
	f.Add(hello + login + answer(4005, "\x00\x00\x00\x02"))
	f.Add(hello + login + "\x00\x01\x00\x00\xff\xff\xff\xff")
	f.Add("HTTP/1.1 400 Bad Request\r\n\r\n")
	f.Fuzz(func(t *testing.T, said string) {
		if found, err := located(t, said); err != nil && found != nil {
			t.Errorf("%v and %v", found, err)
		}
	})
}
