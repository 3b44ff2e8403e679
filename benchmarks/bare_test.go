package bench

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// bareSide runs this program's own barest loop, over a number of connections, in a process of its
// own.
func (r *rig) bareSide(srv server, op string, connections int, args ...string) side {
	return side{"bare", func() (figures, error) {
		argv := append([]string{self(), bareWord, "-op", op, "-connections", strconv.Itoa(connections)}, args...)
		u, err := r.child(append(argv, srv.url+"/"+theFile)...)
		if err != nil {
			return nil, err
		}
		done, err := number(`([0-9]+) operations`, u.out)
		if err != nil {
			return nil, err
		}
		took, err := number(`in ([0-9.]+) s`, u.out)
		if err != nil {
			return nil, err
		}
		return figures{rate: done / took, requestCPU: u.cpu.Seconds() / done}, nil
	}}
}

// bareWord makes this program run the barest loop instead of the comparison.
const bareWord = "bare-loop"

// runBare is the barest loop: connections that log in, open a file, and then send the same request
// repeatedly, or request page after page.
func runBare(args []string, out io.Writer) error {
	flags := flag.NewFlagSet(bareWord, flag.ContinueOnError)
	op := flags.String("op", "read", "read, stat, page or whole")
	connections := flags.Int("connections", 1, "how many")
	long := flags.Duration("for", 2*time.Minute, "how long")
	count := flags.Int64("count", math.MaxInt64, "operations of a connection, after which it ends before")
	if err := flags.Parse(args); err != nil {
		return err
	}
	u, err := url.Parse(flags.Arg(0))
	if err != nil {
		return err
	}
	path := "/" + strings.TrimLeft(u.Path, "/")
	loop := bareLoop
	if u.Scheme == "http" {
		loop = bareHTTP
	}
	var all sync.WaitGroup
	var done atomic.Int64
	errs := make([]error, *connections)
	begin := time.Now()
	for i := range *connections {
		all.Go(func() {
			var n int64
			n, errs[i] = loop(u.Host, path, *op, bareEnd{*count, begin.Add(*long)})
			done.Add(n)
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%d operations in %s s\n", done.Load(), strconv.FormatFloat(time.Since(begin).Seconds(), 'f', 6, 64))
	return err
}

// bareRequest builds a request of the XRootD protocol: stream 1, a code, 16
// bytes of parameters, arguments.
func bareRequest(code uint16, params [16]byte, args string) []byte {
	b := binary.BigEndian.AppendUint16([]byte{0, 1}, code)
	b = append(b, params[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(args)))
	return append(b, args...)
}

// bareAnswer reads one response, which must have the status kXR_ok, and returns its data.
func bareAnswer(c io.Reader, buf []byte) ([]byte, error) {
	n, err := io.ReadAtLeast(c, buf, 8)
	if err != nil {
		return nil, err
	}
	size := 8 + int(binary.BigEndian.Uint32(buf[4:]))
	if status := binary.BigEndian.Uint16(buf[2:]); status != 0 || size > len(buf) {
		return nil, fmt.Errorf("status %d, %d bytes: %q", status, size, buf[8:n])
	}
	if n < size {
		_, err = io.ReadFull(c, buf[n:size])
	}
	return buf[8:size], err
}

// bareEnd is the condition that ends a loop: a number of operations, or a time.
type bareEnd struct {
	count int64
	at    time.Time
}

func (e *bareEnd) reached(n int64) bool { return n >= e.count || n%64 == 0 && time.Now().After(e.at) }

func bareLoop(address, path, op string, end bareEnd) (int64, error) {
	c, err := (&net.Dialer{Deadline: end.at.Add(time.Minute)}).Dial("tcp", address)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	handle, err := bareOpen(c, path)
	if err != nil {
		return 0, err
	}
	buf := make([]byte, 8+barePage)
	request := bareRequest(3017, [16]byte{}, path) // kXR_stat
	if op == "read" {
		read := [16]byte{14: 0x10} // 4096 bytes at 0
		copy(read[:4], handle)
		request = bareRequest(3013, read, "")
	}
	if op == "page" {
		binary.BigEndian.PutUint32(request[16:], barePage)
	}
	for n := int64(0); ; n++ {
		if end.reached(n) {
			return n, nil
		}
		if op == "page" {
			binary.BigEndian.PutUint64(request[8:], uint64(bareOffset(n)))
		}
		if _, err := c.Write(request); err != nil {
			return n, err
		}
		if _, err := bareAnswer(c, buf); err != nil {
			return n, err
		}
	}
}

// bareOpen logs in and opens a file, and returns its handle.
func bareOpen(c io.ReadWriter, path string) (handle []byte, err error) {
	buf := make([]byte, 1<<10)
	hello := make([]byte, 20)
	binary.BigEndian.PutUint32(hello[12:], 4)
	binary.BigEndian.PutUint32(hello[16:], 2012)
	login := [16]byte{14: 5}
	copy(login[4:], "bench")
	open := [16]byte{3: 0x10} // kXR_open_read
	for _, b := range [][]byte{hello, bareRequest(3007, login, ""), bareRequest(3010, open, path)} {
		if _, err := c.Write(b); err != nil {
			return nil, err
		}
		if handle, err = bareAnswer(c, buf); err != nil {
			return nil, err
		}
	}
	return handle[:4], nil
}

// Pages are read one after the other, from bareFrom on: offsets have eight digits there, so that
// neither a request nor the head of a response ever changes its length.
const (
	barePage  = pageSize
	bareFrom  = 1221 * barePage
	barePages = 10_900
)

func bareOffset(n int64) int64 { return bareFrom + n%barePages*barePage }

// bareHTTP requests page after page, or the whole file repeatedly. It parses the head of a response
// only once, to determine its length.
func bareHTTP(address, path, op string, end bareEnd) (int64, error) {
	body, status := barePage, "206"
	if op == "whole" {
		body, status = smallFile, "200"
	}
	c, err := (&net.Dialer{Deadline: end.at.Add(time.Minute)}).Dial("tcp", address)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	request := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: weir\r\n", path, address)
	at := len(request) + len("Range: bytes=")
	if op != "whole" {
		request = append(request, "Range: bytes=00000000-00000000\r\n"...)
	}
	request = append(request, "\r\n"...)
	buf := make([]byte, body+1<<10)
	size := 0
	for n := int64(0); ; n++ {
		if end.reached(n) {
			return n, nil
		}
		if offset := bareOffset(n); op != "whole" {
			strconv.AppendInt(request[at:at], offset, 10)
			request[at+8] = '-'
			strconv.AppendInt(request[at+9:at+9], offset+barePage-1, 10)
		}
		if _, err := c.Write(request); err != nil {
			return n, err
		}
		for got := 0; got == 0 || got < size; {
			more, err := c.Read(buf[got:])
			if err != nil {
				return n, err
			}
			got += more
			if size == 0 {
				head := bytes.Index(buf[:got], []byte("\r\n\r\n"))
				if head < 0 || !bytes.HasPrefix(buf, []byte("HTTP/1.1 "+status+" ")) {
					return n, fmt.Errorf("answer %q", buf[:min(got, 200)])
				}
				size = head + 4 + body
			}
		}
	}
}
