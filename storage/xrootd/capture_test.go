package xrootd

import (
	"bytes"
	"flag"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
	"weir/storage"
)

var update = flag.Bool("update", false, "rewrite the recorded conversations in testdata")

const captured = 5000 // bytes of the file

// captures returns the operations whose responses from a real server are stored in testdata, by
// file name.
func captures() map[string]storage.Op {
	ops := reads(captured)
	for name, k := range map[string]storage.Kind{
		"stat": storage.Stat, "list": storage.List, "locate": storage.Locate, "checksum": storage.Checksum, "ping": storage.Ping,
		"write": storage.Write, "write plainly": storage.Write, "mkdir": storage.Mkdir, "remove": storage.Remove, "move": storage.Move,
		"not there": storage.Stat,
	} {
		op := storage.Op{Kind: k, Path: "x", Size: captured, Timeout: 20 * time.Second}
		switch name {
		case "list":
			op.Path = ""
		case "checksum":
			op.Sum = "adler32"
		case "write plainly":
			op.Plain, op.Path = true, name
		case "move":
			op.Source, op.Path = "old", "moved"
		case "write", "mkdir", "remove", "not there":
			op.Path = name
		}
		ops[name] = op
	}
	for name, op := range ops {
		if op.Kind == storage.Read {
			op.Chunk, op.Ahead = 2048, 2
			if len(op.Ranges) > 1 {
				op.Ranges = []storage.Range{{Offset: 4000, Length: 1000}, {Offset: 10, Length: 3}}
			}
			ops[name] = op
		}
	}
	return ops
}

// A recorder forwards connections to a server and stores the server's responses.
type recorder struct {
	url string
	mu  sync.Mutex
	got bytes.Buffer
}

func record(t *testing.T, address string) *recorder {
	t.Helper()
	var conf net.ListenConfig
	l, err := conf.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &recorder{url: "root://" + l.Addr().String() + "//data"}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			var d net.Dialer
			to, err := d.DialContext(t.Context(), "tcp", address)
			if err != nil {
				t.Error(err)
				return
			}
			all.Go(func() { _, _ = io.Copy(to, c); _ = to.Close() })
			all.Go(func() { _, _ = io.Copy(io.MultiWriter(r, c), to); _ = c.Close() })
		}
	})
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	return r
}

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got.Write(b)
}

func captureFile(name string) string {
	return filepath.Join("testdata", "captures", strings.NewReplacer(", ", "-", " ", "-").Replace(name)+".bin")
}

// TestCaptures runs one operation per conversation with a server that sends the stored bytes. With
// -update it first records the responses of a real server again.
func TestCaptures(t *testing.T) {
	if *update {
		recordAll(t)
	}
	for name, op := range captures() {
		t.Run(name, func(t *testing.T) {
			said := require.File(t, captureFile(name))
			var e events
			res, err := clientAt(t, parrot(t, func() []byte { return said }), storage.Credentials{}).Do(t.Context(), &op, &e)
			switch {
			case name == "not there":
				if storage.Classify(err) != storage.NotFound {
					t.Errorf("error %v", err)
				}
			case op.Kind == storage.Read && len(op.Ranges) < 2:
				right(t, &op, res, &e, err)
			case err != nil:
				t.Error(err)
			case op.Kind == storage.Read && e.moved != 1003, op.Kind == storage.Stat && res.Size != captured,
				op.Kind == storage.List && len(res.Entries) == 0, op.Kind == storage.Checksum && len(res.Sum) != len("adler32:12345678"),
				op.Kind == storage.Locate && len(res.Servers) != 1:
				t.Errorf("moved %d, result %+v", e.moved, res)
			}
		})
	}
}

func recordAll(t *testing.T) {
	xr := labtest.Start(t, lab.XRootDConfig{})
	for _, name := range []string{"x", "old", "remove"} {
		require.NoError(t, xr.WriteFile(name, made(captured)))
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(captureFile("")), 0o755))
	for name, op := range captures() {
		r := record(t, xr.Servers[0].Address)
		c := serviceAt(t, r.url, storage.Credentials{}).Client()
		if _, err := c.Do(t.Context(), &op, &events{}); err != nil && name != "not there" {
			t.Fatalf("%s: %v", name, err)
		}
		require.NoError(t, c.Close())
		r.mu.Lock()
		require.NoError(t, os.WriteFile(captureFile(name), r.got.Bytes(), 0o644))
		r.mu.Unlock()
	}
}

// parrot sends the same bytes on every connection without regard to the request, and closes.
func parrot(t testing.TB, said func() []byte) string {
	t.Helper()
	var conf net.ListenConfig
	l, err := conf.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				_, _ = c.Write(said())            // a write error of a connection that the client has closed is expected
				_ = c.(*net.TCPConn).CloseWrite() // likewise
				_, _ = io.Copy(io.Discard, c)     // until the client closes
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	return "root://" + l.Addr().String() + "//data"
}
