package rigs

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A connection is one connection to the fault server.
type connection struct {
	*server
	conn net.Conn
	own  limiter
	lags bool // Lag applies to it: every second connection
}

// answer handles one request. It returns false if the connection is to end.
func (c *connection) answer(req *http.Request) bool {
	if req.URL.Path == statsPath {
		b, _ := json.Marshal(c.report())
		return c.say(req, 200, "Content-Type: application/json\r\n", b)
	}
	n, ok := c.number(req.URL.Path)
	switch {
	case req.Method == "PUT" || req.Method == "MKCOL":
		return c.say(req, 201, "", nil)
	case req.Method == "PROPFIND" || req.Method == "OPTIONS":
		return c.say(req, 405, "", nil)
	case !ok && req.Method == "HEAD":
		return c.headWritten(req)
	case !ok:
		return c.say(req, 404, "", nil)
	case req.Method == "HEAD":
		return c.head(req, n)
	case req.Method == "GET":
		return c.get(req, n)
	}
	return c.say(req, 405, "", nil)
}

func (c *connection) report() stats {
	s := stats{Gets: c.gets.Load(), Bytes: c.bytes.Load(), Failed: c.failed.Load(), Busy: c.busy.Load(), Sums: c.sumsFailed.Load(),
		Asked: c.asked.Load(), Conns: c.conns.Load()}
	if first := c.first.Load(); first > 0 {
		s.First = float64(c.start.Add(time.Duration(first)).UnixNano()) / 1e9
	}
	return s
}

// number returns the number of the file at a path.
func (c *connection) number(path string) (int, bool) {
	_, name, _ := strings.Cut(path, "/data/f")
	n, err := strconv.Atoi(name)
	return n, err == nil && n >= 0 && n < c.Files
}

// head responds to a HEAD request with the size and, if it was requested, the checksum.
func (c *connection) head(req *http.Request, n int) bool {
	wants := req.Header.Get("Want-Digest") != "" || req.Header.Get("Want-Repr-Digest") != ""
	fields := ""
	if wants {
		if k := c.sumAsks.Add(1); c.EverySum > 0 && k%int64(c.EverySum) == 0 {
			c.sumsFailed.Add(1)
			return c.say(req, 500, "", nil)
		}
		if !c.NoSums {
			fields = digests(c.sums[n])
		}
	}
	if c.NoSizes {
		return c.write(c.status(200)+fields+"Transfer-Encoding: chunked\r\n\r\n") && !c.HTTP10
	}
	return c.write(c.status(200)+fields+fmt.Sprintf("Content-Length: %d\r\n\r\n", c.Size)) && !c.HTTP10
}

// headWritten responds to a HEAD request for a file that was written.
func (c *connection) headWritten(req *http.Request) bool {
	c.mu.Lock()
	w, ok := c.kept[req.URL.Path]
	c.mu.Unlock()
	if !ok {
		return c.say(req, 404, "", nil)
	}
	return c.write(c.status(200) + digests(w.sum) + fmt.Sprintf("Content-Length: %d\r\n\r\n", w.size))
}

// digests returns the header fields that state an adler32.
func digests(sum string) string {
	raw, _ := hex.DecodeString(sum)
	return "Digest: adler32=" + sum + "\r\nRepr-Digest: adler=:" + base64.StdEncoding.EncodeToString(raw) + ":\r\n"
}

// get responds to a GET of file n, with all faults of the spec.
func (c *connection) get(req *http.Request, n int) bool {
	c.first.CompareAndSwap(0, max(1, int64(time.Since(c.start))))
	k := c.asked.Add(1)
	if k == int64(c.HangAt) {
		time.Sleep(time.Minute)
	}
	running := c.now.Add(1)
	defer c.now.Add(-1)
	if left := in(c.Stalls, c.since()); left > 0 {
		time.Sleep(left)
	}
	if c.slots != nil {
		c.slots <- struct{}{}
		defer func() { <-c.slots }()
		time.Sleep(time.Duration(c.Held))
	}
	c.wait(req.URL.Path)
	c.copies(n)
	switch {
	case c.Every > 0 && k%int64(c.Every) == 0:
		c.failed.Add(1)
		return c.say(req, 500, "", nil)
	case c.EveryBusy > 0 && k%int64(c.EveryBusy) == 0, c.Above > 0 && running > int64(c.Above):
		c.busy.Add(1)
		return c.say(req, 503, "Retry-After: 0\r\n", nil)
	case c.Redirect != "":
		return c.say(req, 302, "Location: "+c.Redirect+req.URL.Path+"\r\n", nil)
	}
	return c.send(req, n)
}

// copies writes copies of file n to disk.
func (c *connection) copies(n int) {
	for range c.Copies {
		f, err := os.CreateTemp("", "weir-rig-copy-")
		if err != nil {
			return
		}
		_, _ = f.Write(c.content(n))
		_ = f.Close()
		_ = os.Remove(f.Name())
	}
}

// wait waits for the delays of a response before it begins.
func (c *connection) wait(path string) {
	d := time.Duration(float64(c.Delay) * (1 + c.Ages*c.since().Seconds()))
	if c.lags {
		d += time.Duration(c.Lag)
	}
	if c.Grow > 0 {
		d += time.Duration(c.delay.Add(int64(c.Grow)))
	}
	if c.Cold > 0 {
		c.mu.Lock()
		if !c.seen[path] {
			c.seen[path] = true
			d += time.Duration(c.Cold)
		}
		c.mu.Unlock()
	}
	if d > 0 {
		time.Sleep(d)
	}
	if c.Lock > 0 {
		c.lock.Lock()
		time.Sleep(time.Duration(c.Lock))
		c.lock.Unlock()
	}
	if c.Burn > 0 {
		burn(time.Duration(c.Burn))
	}
}

// send sends the content of file n, or a part of it.
func (c *connection) send(req *http.Request, n int) bool {
	body, code, fields := c.content(n)[:c.Size-c.CutBy+c.LongBy], 200, ""
	if from, to, ok := rangeOf(req, len(body)); ok {
		fields = fmt.Sprintf("Content-Range: bytes %d-%d/%d\r\n", from, to-1, len(body))
		body, code = body[from:to], 206
	}
	if c.WrongBytes {
		body = bytes.Clone(body)
		body[len(body)/2] ^= 1
	}
	if c.Gzip {
		var b bytes.Buffer
		w, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
		_, _ = w.Write(body) // to memory
		_ = w.Close()
		body, fields = b.Bytes(), fields+"Content-Encoding: gzip\r\n"
	}
	if c.Chunked {
		fields += "Transfer-Encoding: chunked\r\n"
	} else {
		fields += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	if !c.write(c.status(code) + fields + "\r\n") {
		return false
	}
	ok := c.stream(body[:len(body)-c.ShortBy])
	c.gets.Add(1)
	return ok && c.ShortBy == 0 && !c.HTTP10
}

// piece is the number of bytes that are sent at once.
const piece = 16 << 10

// stream sends a body at the rate that the limits allow.
func (c *connection) stream(body []byte) bool {
	step := len(body)
	if c.PerConn > 0 || c.Total > 0 || c.Chunked {
		step = piece
	}
	for len(body) > 0 {
		n := min(step, len(body))
		c.own.wait(n, c.PerConn)
		c.total.wait(n, c.rate(c.since()))
		text := body[:n]
		if c.Chunked {
			text = append(append([]byte(fmt.Sprintf("%x\r\n", n)), text...), '\r', '\n')
		}
		if _, err := c.conn.Write(text); err != nil {
			return false
		}
		c.bytes.Add(int64(n))
		body = body[n:]
	}
	return !c.Chunked || c.write("0\r\n\r\n")
}

// rangeOf returns the single range that a request contains.
func rangeOf(req *http.Request, size int) (from, to int, ok bool) {
	first, last, ok := strings.Cut(strings.TrimPrefix(req.Header.Get("Range"), "bytes="), "-")
	if !ok {
		return 0, 0, false
	}
	from, err := strconv.Atoi(first)
	if err != nil || from >= size {
		return 0, 0, false
	}
	to, err = strconv.Atoi(last)
	if err != nil || to >= size {
		to = size - 1
	}
	return from, to + 1, true
}

func (c *connection) status(code int) string {
	version := "HTTP/1.1"
	if c.HTTP10 {
		version = "HTTP/1.0"
	}
	text := fmt.Sprintf("%s %d %s\r\n", version, code, http.StatusText(code))
	if !c.HTTP10 {
		text += "Connection: keep-alive\r\n" // ab, which uses HTTP/1.0, requires it
	}
	return text
}

// say sends a short response.
func (c *connection) say(req *http.Request, code int, fields string, body []byte) bool {
	text := c.status(code) + fields + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body))
	if req.Method != "HEAD" {
		text += string(body)
	}
	return c.write(text) && !c.HTTP10
}

func (c *connection) write(text string) bool {
	_, err := c.conn.Write([]byte(text))
	return err == nil
}

// threadTime returns the CPU time of this thread.
func threadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // always there
	return time.Duration(t.Nano())
}
