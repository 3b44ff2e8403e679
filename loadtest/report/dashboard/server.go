package dashboard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"weir/internal/pause"
)

// A Server serves the live page until Close. Its methods may be called by several goroutines at
// once.
type Server struct {
	hub      *hub
	guard    guard
	ctx      context.Context // ends with Close
	stop     context.CancelFunc
	http     http.Server
	listener net.Listener
	wait     sync.WaitGroup
	streams  atomic.Int64
	log      *slog.Logger
	url      string
}

// Open begins to serve the page that conf describes. If the address in conf is in use, Open returns
// an error; without an address it tries other ports. understand analyzes runs; nil means
// [UnderstandHere]. The caller closes the server.
func Open(ctx context.Context, conf Config, understand Understand) (*Server, error) {
	l, err := listen(ctx, conf.Listen)
	if err != nil {
		return nil, err
	}
	if understand == nil {
		understand = UnderstandHere
	}
	address, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return nil, errors.Join(fmt.Errorf("%v is no TCP address", l.Addr()), l.Close())
	}
	s := &Server{listener: l, log: conf.Log}
	s.guard = guard{token: conf.Token, cookie: "weir-" + strconv.Itoa(address.Port), loopback: address.IP.IsLoopback()}
	if s.guard.token == "" && !s.guard.loopback {
		s.guard.token = newToken()
	}
	s.url = s.address(address)
	s.ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.hub = newHub(clean(conf.Dir), understand, &s.wait)
	s.hub.scan(s.ctx)
	s.http = http.Server{Handler: s.guard.wrap(s.routes()), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(discardUnless(conf.Log), slog.LevelDebug)}
	s.wait.Go(func() { s.hub.run(s.ctx) })
	s.wait.Go(func() {
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.debug("the live page ended", err)
		}
	})
	return s, nil
}

// URL returns the address of the page, with the token if a token is required.
func (s *Server) URL() string { return s.url }

// Show switches to the runs in another folder, with the meaning of Config.Dir.
func (s *Server) Show(dir string) { s.hub.show(s.ctx, dir) }

// Pages returns the number of open pages.
func (s *Server) Pages() int { return int(s.streams.Load()) }

// Settle waits until open pages have received the end of the newest run with its result, or ctx
// ends; it returns at once if no page is open. The analysis has its usual priority from then on,
// because no measurement is in progress any more.
func (s *Server) Settle(ctx context.Context) {
	for s.Pages() > 0 && ctx.Err() == nil {
		_, _, newest, _ := s.hub.choice()
		next := newest.next()
		if newest.settled() {
			pause.For(ctx, pollEvery) // for the network
			return
		}
		newest.await()
		select {
		case <-next:
		case <-ctx.Done():
		}
	}
}

// Close ends the server at once, and waits for all its goroutines. Pages keep their content, and
// try to reconnect.
func (s *Server) Close() error {
	s.stop()
	err := s.http.Close()
	s.wait.Wait()
	return err
}

func (s *Server) debug(what string, err error) {
	if s.log != nil {
		s.log.Debug(what, "error", err)
	}
}

// clean is filepath.Clean, except that an empty name stays empty.
func clean(dir string) string {
	if dir == "" {
		return ""
	}
	return filepath.Clean(dir)
}

// discardUnless returns the handler of the HTTP server's own error messages.
func discardUnless(log *slog.Logger) slog.Handler {
	if log == nil {
		return slog.DiscardHandler
	}
	return log.Handler()
}

// address returns the URL under which a browser reaches the page.
func (s *Server) address(a *net.TCPAddr) string {
	host := a.IP.String()
	if a.IP.IsUnspecified() {
		if name, err := os.Hostname(); err == nil {
			host = name
		}
	}
	u := url.URL{Scheme: "http", Host: net.JoinHostPort(host, strconv.Itoa(a.Port)), Path: "/"}
	if s.guard.token != "" {
		u.RawQuery = url.Values{tokenQuery: {s.guard.token}}.Encode()
	}
	return u.String()
}

// tries is the number of ports that are tried if no port was chosen.
const tries = 20

// listen listens at the chosen address, or at the first free port from defaultPort on.
func listen(ctx context.Context, address string) (net.Listener, error) {
	var conf net.ListenConfig
	if address != "" {
		l, err := conf.Listen(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		return l, nil
	}
	for port := defaultPort; port < defaultPort+tries; port++ {
		if l, err := conf.Listen(ctx, "tcp", netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port)).String()); err == nil {
			return l, nil
		}
	}
	l, err := conf.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return l, nil
}

// ParseAddress reads an address to listen at: HOST:PORT, :PORT, HOST, or PORT alone, which is a
// port on the loopback interface. Without a port the system chooses a port.
func ParseAddress(text string) (string, error) {
	if n, err := strconv.ParseUint(text, 10, 16); err == nil {
		return fmt.Sprintf("127.0.0.1:%d", n), nil
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		host, port = strings.Trim(text, "[]"), "0"
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil || strings.ContainsAny(host, "/ ") || text == "" {
		return "", fmt.Errorf("%q is no address: use HOST:PORT, as in 127.0.0.1:%d, or :%d for every address of this machine", text,
			defaultPort, defaultPort)
	}
	return net.JoinHostPort(host, port), nil
}
