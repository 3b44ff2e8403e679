package webdav

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"unsafe"

	"weir/storage/storagetest"
)

// TestMain lets the test's own binary be the sink, in another process.
func TestMain(m *testing.M) { os.Exit(storagetest.Main(m, sink)) }

// startSink starts a server that accepts uploads and drops them in the kernel, and returns its URL:
// with it, the client is the limit.
func startSink(t testing.TB) string { return "http://" + storagetest.StartElsewhere(t) }

func sink() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go swallowAll(c.(*net.TCPConn))
		}
	}()
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func swallowAll(c *net.TCPConn) {
	defer c.Close()
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	in := bufio.NewReader(c)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if r.Header.Get("Expect") != "" {
			_, _ = io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n")
		}
		left := int(max(r.ContentLength, 0))
		n, _ := in.Discard(min(left, in.Buffered()))
		left -= n
		err = raw.Read(func(fd uintptr) bool {
			for left > 0 {
				n, _, errno := syscall.Syscall6(syscall.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(nil)), uintptr(left),
					syscall.MSG_TRUNC|syscall.MSG_DONTWAIT, 0, 0)
				if errno == syscall.EAGAIN {
					return false
				}
				if errno != 0 || n == 0 {
					return true
				}
				left -= int(n)
			}
			return true
		})
		if err != nil || left > 0 {
			return
		}
		if _, err := io.WriteString(c, "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"); err != nil {
			return
		}
	}
}
