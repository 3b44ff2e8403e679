package main

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// bareClients is how many connections the barest loop has.
const bareClients = 100

// bareSide runs this program's own barest loop in a process of its own.
func (r *rig) bareSide(op string, srv server) side {
	return side{"bare", func(ctx context.Context) (figures, error) {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		u, err := runChild(ctx, nil, nil, self, bareWord, "-op", op, "-for", r.hold.String(), srv.url+"/"+theFile)
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

// bareWord makes this program the barest loop instead of the comparison.
const bareWord = "bare-loop"

// runBare is the barest loop: connections that log in, open a file, and then
// send the same request again and again.
func runBare(args []string, out io.Writer) error {
	flags := flag.NewFlagSet(bareWord, flag.ContinueOnError)
	op := flags.String("op", "read", "read or stat")
	long := flags.Duration("for", time.Second, "how long")
	if err := flags.Parse(args); err != nil {
		return err
	}
	u, err := url.Parse(flags.Arg(0))
	if err != nil {
		return err
	}
	path := "/" + strings.TrimLeft(u.Path, "/")
	var all sync.WaitGroup
	var done atomic.Int64
	errs := make([]error, bareClients)
	begin := time.Now()
	for i := range bareClients {
		all.Go(func() {
			var n int64
			n, errs[i] = bareLoop(u.Host, path, *op, begin.Add(*long))
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
	b = binary.BigEndian.AppendUint32(b, uint32(len(args))) //nolint:gosec // a path
	return append(b, args...)
}

// bareAnswer reads one answer, which must be a good one, and returns its data.
func bareAnswer(c net.Conn, buf []byte) ([]byte, error) {
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

func bareLoop(address, path, op string, until time.Time) (int64, error) {
	c, err := (&net.Dialer{Deadline: until.Add(time.Minute)}).Dial("tcp", address) //nolint:noctx // it has a deadline
	if err != nil {
		return 0, err
	}
	defer c.Close() //nolint:errcheck // nothing was written that matters
	buf := make([]byte, 8<<10)
	hello := make([]byte, 20)
	binary.BigEndian.PutUint32(hello[12:], 4)
	binary.BigEndian.PutUint32(hello[16:], 2012)
	login := [16]byte{14: 5}
	copy(login[4:], "bench")
	open := [16]byte{2: 0, 3: 0x10} // kXR_open_read
	for _, b := range [][]byte{hello, bareRequest(3007, login, ""), bareRequest(3010, open, path)} {
		if _, err := c.Write(b); err != nil {
			return 0, err
		}
		data, err := bareAnswer(c, buf)
		if err != nil {
			return 0, err
		}
		copy(open[:4], data) // the last of them is the file's handle
	}
	request := bareRequest(3017, [16]byte{}, path) // kXR_stat
	if op == "read" {
		read := [16]byte{14: 0x10} // 4096 bytes at 0
		copy(read[:4], open[:4])
		request = bareRequest(3013, read, "")
	}
	for n := int64(0); ; n++ {
		if n%64 == 0 && time.Now().After(until) {
			return n, nil
		}
		if _, err := c.Write(request); err != nil {
			return n, err
		}
		if _, err := bareAnswer(c, buf); err != nil {
			return n, err
		}
	}
}
