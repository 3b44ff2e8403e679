package ftp

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"weir/storage/storagetest"
)

// TestMain lets the test's own binary be a server, in another process.
func TestMain(m *testing.M) { os.Exit(storagetest.Main(m, serve)) }

// startSink starts a lean server whose files have their sizes as names, and returns its address.
func startSink(t testing.TB) string { return storagetest.StartElsewhere(t) }

func serve() error {
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
			go session(c)
		}
	}()
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// session is one control connection.
func session(c net.Conn) {
	defer c.Close()
	in := bufio.NewReaderSize(c, 512)
	var data net.Listener
	_, _ = io.WriteString(c, "220 ready\r\n")
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		verb, arg, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch verb {
		case "USER":
			_, err = io.WriteString(c, "331 password\r\n")
		case "PASV":
			if data, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
				return
			}
			p := data.Addr().(*net.TCPAddr).Port
			_, err = fmt.Fprintf(c, "227 Entering Passive Mode (127,0,0,1,%d,%d)\r\n", p>>8, p&255)
		case "RETR":
			err = transferFile(c, data, strings.TrimPrefix(arg, "/"))
		case "QUIT":
			return
		default:
			_, err = io.WriteString(c, "230 fine\r\n")
		}
		if err != nil {
			return
		}
	}
}

func transferFile(c net.Conn, l net.Listener, name string) error {
	defer l.Close()
	size, err := strconv.ParseInt(name, 10, 64)
	if err != nil {
		_, err = io.WriteString(c, "550 No such file\r\n")
		return err
	}
	d, err := l.Accept()
	if err != nil {
		return err
	}
	if _, err := io.WriteString(c, "150 here it comes\r\n"); err != nil {
		return err
	}
	block := make([]byte, min(size, 64<<10))
	for ; size > 0 && err == nil; size -= int64(len(block)) {
		_, err = d.Write(block[:min(size, int64(len(block)))])
	}
	_ = d.Close() // the client counts the bytes
	_, err = io.WriteString(c, "226 done\r\n")
	return err
}
