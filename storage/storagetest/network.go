package storagetest

import (
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"weir/storage"
)

// testNetwork puts hosts in the place of the target's that do not behave.
func (s *suite) testNetwork(t *testing.T) {
	if !s.o.Network {
		t.Skip("declared: the target is not reached over TCP")
	}
	t.Run("nobody listens", func(t *testing.T) {
		host := listen(t, nil)
		// A program that is started for each operation may be late to say so.
		s.failsAs(t, host, s.o.Bound*2/3, storage.Refused)
	})
	t.Run("silent", func(t *testing.T) {
		host := listen(t, func(c net.Conn, end <-chan struct{}) { <-end })
		s.failsAs(t, host, time.Second, storage.Timeout)
	})
	t.Run("hangs up", func(t *testing.T) {
		host := listen(t, func(net.Conn, <-chan struct{}) {})
		s.failsAs(t, host, time.Second, storage.Reset, storage.Short, storage.Refused)
	})
	t.Run("talks nonsense", func(t *testing.T) {
		host := listen(t, func(c net.Conn, end <-chan struct{}) {
			for range 64 {
				if _, err := c.Write(slices.Repeat([]byte("blah\x00\xff\n"), 100)); err != nil {
					return
				}
			}
			<-end
		})
		s.failsAs(t, host, time.Second, storage.Other, storage.Timeout, storage.Reset, storage.Short)
	})
}

// failsAs reads from host with a timeout and wants one of classes.
func (s *suite) failsAs(t *testing.T, host string, timeout time.Duration, classes ...storage.Class) {
	t.Helper()
	url := *s.target.URL
	url.Host = host
	target := s.target
	target.URL = &url
	c := s.of(t, s.service(t, target))
	start := time.Now()
	out := s.do(t, c, storage.Op{Kind: s.driver.Kinds[0], Path: "x", Size: -1, Sum: "", Timeout: timeout})
	if took := time.Since(start); took > s.o.Bound {
		t.Errorf("a timeout of %v took %v", timeout, took)
	}
	if out.heard.moved > 0 && s.driver.Kinds[0] == storage.Read {
		t.Errorf("%d bytes of payload from a host that has none", out.heard.moved)
	}
	switch class := storage.Classify(out.err); {
	case out.err == nil:
		t.Error("no error")
	case s.lacks(NetworkFailure):
	case !slices.Contains(classes, class):
		t.Errorf("class %q, want one of %q: %v", class, classes, out.err)
	}
}

// listen returns the address of a listener that treats its connections as
// told until the test ends, or where nobody listens.
func listen(t *testing.T, treat func(c net.Conn, end <-chan struct{})) string {
	t.Helper()
	var conf net.ListenConfig
	l, err := conf.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if treat == nil {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		return l.Addr().String()
	}
	end := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // closed below
			}
			all.Go(func() {
				defer func() { _ = c.Close() }() // it does not behave anyway
				treat(c, end)
			})
		}
	})
	t.Cleanup(func() {
		close(end)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		all.Wait()
	})
	return l.Addr().String()
}
