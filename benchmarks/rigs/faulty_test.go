package rigs

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/adler32"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// faultyWord is the first argument of this program as a fault server.
const faultyWord = "fault-server"

// statsPath is the path of the fault server's statistics.
const statsPath = "/stats"

// stats are the statistics of the fault server, as JSON.
type stats struct {
	Gets   int64   // GETs of files with status 200 or 206
	Bytes  int64   // of their bodies
	Failed int64   // GETs with status 500
	Busy   int64   // GETs with status 503
	Sums   int64   // requests for checksums with status 500
	Asked  int64   // received GETs
	Conns  int64   // accepted connections
	First  float64 // Unix time of the first GET, seconds; 0 before it
}

// A server is a fault server with the faults of a spec.
type server struct {
	spec
	body  []byte // of the file with number 0; the body of number n begins n blocks later
	sums  []string
	first atomic.Int64 // time of the first GET in ns since start
	start time.Time
	slots chan struct{}
	lock  sync.Mutex // of Lock
	delay atomic.Int64
	total limiter

	now, gets, bytes, failed, busy, sumsFailed, asked, conns, sumAsks, puts atomic.Int64

	mu   sync.Mutex
	seen map[string]bool // files that were read
	open map[net.Conn]bool
	kept map[string]written // by path
}

// A written has the size and the adler32 of a file that was written.
type written struct {
	size int64
	sum  string
}

// put stores the size and the checksum of a file that was written, unless it is to be lost.
func (s *server) put(req *http.Request) {
	sum := adler32.New()
	size, _ := io.Copy(sum, req.Body) // a body that is cut off ends the connection
	if k := s.puts.Add(1); s.EveryLosing > 0 && k%int64(s.EveryLosing) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[req.URL.Path] = written{size, fmt.Sprintf("%08x", sum.Sum32())}
}

// The defaults of Files and Size of a spec.
const (
	defaultFiles = 16
	defaultSize  = 64 << 10
)

// block is the number of bytes by which the contents of neighboring files are displaced.
const block = 4096

// newServer makes the files of c.
func newServer(c spec) *server {
	c.Files, c.Size = cmp.Or(c.Files, defaultFiles), cmp.Or(c.Size, defaultSize)
	s := &server{spec: c, seen: map[string]bool{}, open: map[net.Conn]bool{}, kept: map[string]written{}, start: time.Now()}
	s.body = make([]byte, c.Size+c.LongBy+c.Files*block)
	random := rand.NewChaCha8([32]byte{7})
	_, _ = random.Read(s.body) // never fails
	if c.Gzip {
		for i := range s.body {
			s.body[i] = "weir "[i/7%5]
		}
	}
	for n := range c.Files {
		s.sums = append(s.sums, fmt.Sprintf("%08x", adler32.Checksum(s.content(n)[:c.Size])))
	}
	if c.Slots > 0 {
		s.slots = make(chan struct{}, c.Slots)
	}
	s.total.free = float64(c.Burst)
	return s
}

func (s *server) content(n int) []byte {
	return s.body[n*block : n*block+s.Size+s.LongBy]
}

// runFaulty runs a fault server with the spec in args[0] until its input ends. It writes its
// address to out first.
func runFaulty(args []string, out io.Writer) error {
	var c spec
	if err := json.Unmarshal([]byte(args[0]), &c); err != nil {
		return err
	}
	if c.Threads > 0 {
		runtime.GOMAXPROCS(c.Threads)
	}
	s := newServer(c)
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", cmp.Or(c.Address, "127.0.0.1:0"))
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, l.Addr()); err != nil {
		return err
	}
	go s.listen(l)
	_, err = io.Copy(io.Discard, os.Stdin) // the server ends with its input
	return err
}

// listen serves connections, and stops and resumes listening in the windows of the spec.
func (s *server) listen(l net.Listener) {
	address := l.Addr().String()
	for {
		stop := s.leave(l)
		for {
			conn, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				break
			}
			if err != nil {
				continue
			}
			lags := s.conns.Add(1)%2 == 0
			s.keep(conn, true)
			go s.serve(conn, lags)
		}
		back := <-stop
		time.Sleep(back)
		var err error
		for l, err = (&net.ListenConfig{}).Listen(context.Background(), "tcp", address); err != nil; {
			time.Sleep(time.Millisecond)
			l, err = (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
		}
	}
}

// leave closes l and all connections when the next window of Away begins. Just before that it sends
// the remaining time of the window to the returned channel.
func (s *server) leave(l net.Listener) <-chan time.Duration {
	stop := make(chan time.Duration, 1)
	if len(s.Away) == 0 {
		return stop
	}
	go func() {
		for {
			if left := in(s.Away, s.since()); left > 0 {
				stop <- left
				_ = l.Close()
				s.mu.Lock()
				for conn := range s.open {
					_ = conn.(*net.TCPConn).SetLinger(0) // a reset
					_ = conn.Close()
				}
				s.mu.Unlock()
				return
			}
			time.Sleep(2 * time.Millisecond)
		}
	}()
	return stop
}

func (s *server) keep(conn net.Conn, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if open {
		s.open[conn] = true
	} else {
		delete(s.open, conn)
	}
}

// since returns the time since the first GET, or a negative time before it.
func (s *server) since() time.Duration {
	first := s.first.Load()
	if first == 0 {
		return -1
	}
	return time.Since(s.start) - time.Duration(first)
}

// serve handles the requests of one connection.
func (s *server) serve(conn net.Conn, lags bool) {
	defer s.keep(conn, false)
	defer conn.Close()
	if s.Mute {
		_, _ = io.Copy(io.Discard, conn) // until the client leaves
		return
	}
	c := &connection{server: s, conn: conn, lags: lags}
	r := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		if req.Method == "PUT" {
			c.put(req)
		}
		_, _ = io.Copy(io.Discard, req.Body) // else the next request is not found
		if keep := c.answer(req); !keep || req.Close {
			return
		}
	}
}

// burn uses d of CPU time.
func burn(d time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for begin := threadTime(); threadTime()-begin < d; {
		for x := 0; x < 2000; x++ {
			_ = x * x
		}
	}
}

// A limiter limits the rate of bytes.
type limiter struct {
	mu   sync.Mutex
	free float64 // bytes that pass without a limit
	next time.Time
}

// wait waits until n more bytes may be sent at a rate.
func (l *limiter) wait(n int, rate float64) {
	if rate <= 0 {
		return
	}
	l.mu.Lock()
	if l.free > 0 {
		l.free -= float64(n)
		l.mu.Unlock()
		return
	}
	now := time.Now()
	if l.next.Before(now.Add(-20 * time.Millisecond)) {
		l.next = now
	}
	l.next = l.next.Add(time.Duration(float64(n) / rate * float64(time.Second)))
	left := l.next.Sub(now)
	l.mu.Unlock()
	time.Sleep(left)
}
