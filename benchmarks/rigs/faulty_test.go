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

// statsPath is where the fault server says what it did.
const statsPath = "/stats"

// stats are what the fault server did, as JSON.
type stats struct {
	Gets   int64   // of files that were answered with 200 or 206
	Bytes  int64   // of their bodies
	Failed int64   // GETs answered with 500
	Busy   int64   // GETs answered with 503
	Sums   int64   // questions for checksums that were answered with 500
	Asked  int64   // GETs that came in
	Conns  int64   // connections that came in
	First  float64 // Unix time of the first GET, seconds; 0 before it
}

// A server is one that serves by a spec.
type server struct {
	spec
	body  []byte // of a file with number 0; that of number n begins n blocks later
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

// A written file is known by its size and its adler32.
type written struct {
	size int64
	sum  string
}

// put keeps what is known of a file that was written, unless it is to be lost.
func (s *server) put(req *http.Request) {
	sum := adler32.New()
	size, _ := io.Copy(sum, req.Body) // what is cut off ends the connection
	if k := s.puts.Add(1); s.EveryLosing > 0 && k%int64(s.EveryLosing) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[req.URL.Path] = written{size, fmt.Sprintf("%08x", sum.Sum32())}
}

// What a fault server has where its spec does not say.
const (
	defaultFiles = 16
	defaultSize  = 64 << 10
)

// block is by how many bytes the content of neighboring files is displaced.
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

// runFaulty serves by the spec in args[0] until its input ends. It writes its
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
	_, err = io.Copy(io.Discard, os.Stdin) // its end is ours
	return err
}

// listen serves connections, and goes away and comes back as the spec has it.
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

// leave closes l and all connections when the next window of Away begins, and
// then sends for how long the server stays away.
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

// since is the time since the first GET, below 0 before it.
func (s *server) since() time.Duration {
	first := s.first.Load()
	if first == 0 {
		return -1
	}
	return time.Since(s.start) - time.Duration(first)
}

// serve answers the requests of one connection.
func (s *server) serve(conn net.Conn, lags bool) {
	defer s.keep(conn, false)
	defer conn.Close()
	if s.Mute {
		_, _ = io.Copy(io.Discard, conn) // until the client leaves
		return
	}
	c := &link{server: s, conn: conn, lags: lags}
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

// A limiter lets bytes through at a rate.
type limiter struct {
	mu   sync.Mutex
	free float64 // bytes that are let through at once
	next time.Time
}

// wait waits until n more bytes may go at a rate.
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
