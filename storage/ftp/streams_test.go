package ftp

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"weir/lab"
	"weir/lab/labtest"
	"weir/storage"
)

// TestStreams reads alternately over several data connections and over one, with other operations
// in between.
func TestStreams(t *testing.T) {
	g := labtest.Start(t, lab.GridFTPConfig{})
	const size = 5_000_000
	place(t, g, "f", 3, size)
	c := serviceAt(t, g.URL, storage.Credentials{}).Client()
	for _, ahead := range []int{4, 4, 0, 2, 7, 7, 1, 4} {
		op := storage.Op{Kind: storage.Read, Path: "f", Size: size, Ahead: ahead, Timeout: time.Minute}
		res, q := must(t, c, op)
		if q.moved != size || res.Size != size || res.Wire <= size || !slices.Equal(q.servers, []string{"127.0.0.1"}) {
			t.Errorf("%d streams: %d bytes moved of %d, %d on the wire, servers %v", ahead, q.moved, res.Size, res.Wire, q.servers)
		}
		open := 0
		if b := c.(*client).blocks; b != nil {
			open = len(b.all)
		}
		if want := map[bool]int{true: ahead}[ahead > 1]; open != want {
			t.Errorf("%d data connections are kept, want %d", open, want)
		}
		must(t, c, storage.Op{Kind: storage.Stat, Path: "f"})
		if ahead == 2 {
			must(t, c, storage.Op{Kind: storage.List})
		}
		if _, err := c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "none", Size: -1, Ahead: ahead},
			&quiet{}); storage.Classify(err) != storage.NotFound {
			t.Errorf("a missing file over %d streams: %v", ahead, err)
		}
		op.Size++
		if _, err := c.Do(t.Context(), &op, &quiet{}); storage.Classify(err) != storage.Short {
			t.Errorf("a file that is shorter than expected over %d streams: %v", ahead, err)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// A slow Progress needs a moment for the name of a server, and notices calls that do not wait for it.
type slow struct {
	quiet
	naming, clash atomic.Bool
}

func (s *slow) ServedBy(string) {
	s.naming.Store(true)
	time.Sleep(50 * time.Millisecond)
	s.naming.Store(false)
}

func (s *slow) Moved(int) {
	if s.naming.Load() {
		s.clash.Store(true)
	}
}

// TestKeptStreamsReportInTurn checks that streams of an earlier transfer report no bytes while the
// data server is reported.
func TestKeptStreamsReportInTurn(t *testing.T) {
	g := labtest.Start(t, lab.GridFTPConfig{})
	place(t, g, "f", 3, 2_000_000)
	c := serviceAt(t, g.URL, storage.Credentials{}).Client()
	defer c.Close()
	for range 2 {
		p := &slow{}
		op := storage.Op{Kind: storage.Read, Path: "f", Size: 2_000_000, Ahead: 3, Timeout: time.Minute}
		if _, err := c.Do(t.Context(), &op, p); err != nil || p.clash.Load() {
			t.Errorf("two calls of Progress at once: %v; %v", p.clash.Load(), err)
		}
	}
}

// TestLostStreams checks that lost streams are replaced.
func TestLostStreams(t *testing.T) {
	g := labtest.Start(t, lab.GridFTPConfig{})
	place(t, g, "f", 3, 2_000_000)
	c := serviceAt(t, g.URL, storage.Credentials{}).Client()
	defer c.Close()
	op := storage.Op{Kind: storage.Read, Path: "f", Size: 2_000_000, Ahead: 3, Timeout: time.Minute}
	for range 3 {
		must(t, c, op)
		c.(*client).blocks.all[1].conn.Break()
	}
}

// TestStreamsElsewhere checks that one connection is used if the server does not support more.
func TestStreamsElsewhere(t *testing.T) {
	f := labtest.Start(t, lab.ProFTPDConfig{})
	place(t, f, "f", 3, 100_000)
	c := serviceAt(t, f.URL, secret(f)).Client()
	defer c.Close()
	for range 2 {
		if _, q := must(t, c, storage.Op{Kind: storage.Read, Path: "f", Size: 100_000, Ahead: 3}); q.moved != 100_000 {
			t.Errorf("%d bytes", q.moved)
		}
	}
}
