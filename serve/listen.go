package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/preauth"
	"weir/internal/trust"
)

// Listen opens the address of the Config, after checking that it is not more
// public than the Config allows. Serve closes the listener.
func (s *Server) Listen(ctx context.Context) (net.Listener, error) {
	if err := s.conf.checkPublic(); err != nil {
		return nil, err
	}
	l, err := (&net.ListenConfig{Control: unpaced}).Listen(ctx, "tcp", s.conf.Listen)
	if err != nil {
		return nil, err
	}
	s.setAddr(l.Addr())
	return l, nil
}

// checkPublic refuses to open files to a network by mistake.
func (c *Config) checkPublic() error {
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("address to listen on: %w: write it as host:port, such as 127.0.0.1:8080", err)
	}
	if c.Public || c.encrypted() && c.guarded() {
		return nil
	}
	if host == "localhost" {
		return nil
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("%s can be reached from elsewhere: listen on 127.0.0.1, or set TLS and credentials, or allow it (weir serve --public)",
		c.Listen)
}

// Serve serves connections of l, which it closes, until ctx ends. Then it gives the running
// requests the Config's Grace, aborts the requests that need more, and returns nil when the last
// request has ended. It can be called once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	s.mu.Lock()
	again := s.served
	s.served = true
	s.mu.Unlock()
	if again {
		return errors.Join(errors.New("a Server serves once"), l.Close())
	}
	s.setAddr(l.Addr())
	if s.conf.guarded() {
		l = preauth.Limit(l, s.conf.Unadmitted, s.conf.Unadmitted)
	}
	conns := &listener{Listener: l, s: s}
	var outer net.Listener = conns
	if s.conf.encrypted() {
		conf, err := s.tlsConfig()
		if err != nil {
			return errors.Join(err, l.Close())
		}
		outer = tls.NewListener(conns, conf)
	}
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	h := s.httpServer(base)
	failed := make(chan error, 1)
	go func() { failed <- h.Serve(outer) }()
	select {
	case err := <-failed:
		return errors.Join(err, s.end(h, cancel))
	case <-ctx.Done():
	}
	err := s.end(h, cancel)
	<-failed //nolint:errcheck // that it was told to end
	return err
}

func (s *Server) httpServer(base context.Context) *http.Server {
	only1 := new(http.Protocols)
	only1.SetHTTP1(true) // the protocol of data services; HTTP/2 would copy every byte
	return &http.Server{
		Handler:           s,
		Protocols:         only1,
		ReadHeaderTimeout: s.conf.HeaderTimeout,
		IdleTimeout:       s.conf.IdleTimeout,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          log.New(logWriter{s.conf.Log}, "", 0),
		BaseContext:       func(net.Listener) context.Context { return base },
		ConnContext:       withConn,
	}
}

// openFiles returns the number of files that this process may open.
func openFiles() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 1024
	}
	return int(min(limit.Cur, 1<<20))
}

// end ends h: gently for a while, then firmly.
func (s *Server) end(h *http.Server, cancel func()) error {
	grace, done := context.WithTimeout(context.Background(), s.conf.Grace)
	defer done()
	s.silent.end()
	err := h.Shutdown(grace)
	if err != nil { // the remaining requests are aborted
		s.conf.Log.Warn("requests broken off", "after", s.conf.Grace)
		err = h.Close()
	}
	cancel()
	s.ending.Do(func() { close(s.stop) })
	s.inFlight.Wait()
	return err
}

func (s *Server) tlsConfig() (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	if s.conf.Certificate != nil {
		conf.Certificates = []tls.Certificate{*s.conf.Certificate}
	} else {
		renewed, err := trust.NewRenewed(s.conf.CertFile, s.conf.KeyFile, s.conf.Log)
		if err != nil {
			return nil, fmt.Errorf("certificate: %w", err)
		}
		conf.GetCertificate = renewed.Certificate
	}
	if s.clients != nil {
		conf.ClientAuth, conf.ClientCAs = tls.RequestClientCert, s.clients
	}
	return conf, nil
}

func (s *Server) setAddr(a net.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addr = a
}

// Addr returns the address the Server listens on, nil before Listen or Serve.
func (s *Server) Addr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addr
}

// URL returns the URL of the top folder, "" before Listen or Serve.
func (s *Server) URL() string {
	a := s.Addr()
	if a == nil {
		return ""
	}
	if s.conf.encrypted() {
		return "https://" + a.String()
	}
	return "http://" + a.String()
}

// logWriter turns the lines of net/http into records.
type logWriter struct{ log *slog.Logger }

func (w logWriter) Write(p []byte) (int, error) {
	w.log.Debug("http", "message", string(p), "time", time.Now())
	return len(p), nil
}
