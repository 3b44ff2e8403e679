package xrootd

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/content"
	"weir/storage"
)

// reads returns the ways in which a file of n bytes is read.
func reads(n int64) map[string]storage.Op {
	halves := []storage.Range{{Length: n / 2}, {Offset: n / 2, Length: n - n/2}}
	ways := map[string]storage.Op{
		"pages": {}, "pages, summed": {Sum: "crc32c"}, "pages, md5": {Sum: "md5"},
		"plain": {Plain: true}, "plain, summed": {Plain: true, Sum: "crc32c"},
		"vector": {Ranges: halves}, "vector, summed": {Ranges: halves, Sum: "md5"},
		"one range": {Ranges: []storage.Range{{Length: n}}, Sum: "adler32"},
	}
	for name, op := range ways {
		op.Kind, op.Path, op.Size, op.Timeout = storage.Read, "x", n, 20*time.Second
		ways[name] = op
	}
	return ways
}

// right checks that a read delivered each byte once.
func right(t *testing.T, op *storage.Op, res storage.Result, e *events, err error) {
	t.Helper()
	want := ""
	if op.Sum != "" {
		var serr error
		if want, serr = content.Sum(op.Sum, 7, 0, op.Size); serr != nil {
			t.Fatal(serr)
		}
	}
	if err != nil || e.moved != op.Size || res.Sum != want || op.Sum == "" && res.Discarded > op.Size {
		t.Errorf("moved %d of %d, discarded %d, sum %s, want %s, error %v", e.moved, op.Size, res.Discarded, res.Sum, want, err)
	}
}

// TestCutAnywhere cuts each operation's conversation at every byte.
func TestCutAnywhere(t *testing.T) {
	const size = 150
	ops := reads(size)
	for _, k := range []storage.Kind{storage.Stat, storage.List, storage.Locate, storage.Checksum, storage.Ping, storage.Login, storage.Mkdir,
		storage.Remove, storage.Move, storage.Write} {
		ops[k.String()] = storage.Op{Kind: k, Path: "x", Source: "y", Size: size, Sum: map[storage.Kind]string{storage.Checksum: "adler32"}[k],
			Timeout: 20 * time.Second}
	}
	for name, op := range ops {
		for _, offer := range []string{"", "&P=unix"} {
			t.Run(name+offer, func(t *testing.T) {
				t.Parallel()
				p := (&peer{file: made(size), offer: offer}).start(t)
				s := serviceAt(t, p.url, storage.Credentials{})
				do(t, s, op, nil)
				total := int(p.sent.Load())
				for left := range total {
					p.budget.Store(int64(left) + 1)
					if err := do(t, s, op, storage.ErrShort); storage.Classify(err) != storage.Reset && storage.Classify(err) != storage.Short {
						t.Fatalf("cut at %d of %d: %v", left, total, err)
					}
				}
				p.budget.Store(0)
				do(t, s, op, nil)
			})
		}
	}
}

// do runs op with a client of its own; if any is nil, the operation has to succeed.
func do(t *testing.T, s storage.Service, op storage.Op, any error) error {
	t.Helper()
	c := s.Client()
	_, err := c.Do(t.Context(), &op, &events{})
	if any == nil && err != nil {
		t.Fatal(err)
	}
	if cerr := c.Close(); cerr != nil {
		t.Error(cerr)
	}
	return err
}

// redirector redirects the open requests of clients to the server that next returns.
func redirector(t *testing.T, next func(q query) *peer) *peer {
	return (&peer{file: made(fileSize), flags: flagManager, answer: say(rqOpen, func(c *talk, q query) bool {
		return c.send(q, next(q), "?cms=1&x=y")
	})}).start(t)
}

// TestLostDataServer breaks a data server's connection at many points of a read. The client
// continues at another server.
func TestLostDataServer(t *testing.T) {
	for name, op := range reads(fileSize) {
		op.Chunk, op.Ahead = 4096, 2
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bad, good := (&peer{file: made(fileSize)}).start(t), (&peer{file: made(fileSize)}).start(t)
			home := redirector(t, func(q query) *peer {
				if strings.Contains(q.args, fmt.Sprintf("tried=%s:%d", bad.host, bad.port)) {
					return good
				}
				return bad
			})
			s := serviceAt(t, home.url, storage.Credentials{})
			do(t, s, op, nil)
			total := int(bad.sent.Load()) - headSize // without the response to kXR_close
			for left := 0; left < total; {
				bad.budget.Store(int64(left) + 1)
				var e events
				c := s.Client()
				res, err := c.Do(t.Context(), &op, &e)
				right(t, &op, res, &e, err)
				if res.Reopened != 1 || e.server != fmt.Sprintf("%s:%d", good.host, good.port) || t.Failed() {
					t.Fatalf("cut at %d of %d: opened again %d times, served by %s", left, total, res.Reopened, e.server)
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				if left++; left > 300 {
					left += 61
				}
			}
			for _, q := range good.queries(rqOpen) {
				if !strings.HasPrefix(q.args, "/data/x?cms=1&x=y") || strings.Contains(q.args, "tried") {
					t.Fatalf("the data server was told %q", q.args)
				}
			}
		})
	}
}

func TestGivesUpAfterThreeDataServers(t *testing.T) {
	for _, answer := range []func(*talk, query) bool{say(rqPgread, reset), say(rqPgread, func(c *talk, q query) bool {
		text := pagesAt(q.stream, c.peer.part(q), q.offset(), false).text()
		_ = c.raw(text[:len(text)/2])
		return false
	}), reset} {
		bad := (&peer{file: made(fileSize), answer: answer}).start(t)
		home := redirector(t, func(query) *peer { return bad })
		c := clientAt(t, home.url, storage.Credentials{})
		for range 2 {
			var e events
			op := storage.Op{Kind: storage.Read, Path: "x", Size: -1, Timeout: 20 * time.Second}
			res, err := c.Do(t.Context(), &op, &e)
			if class := storage.Classify(err); class != storage.Reset && class != storage.Short {
				t.Errorf("class %q, error %v", class, err)
			}
			var oe *storage.OpError
			if !errors.As(err, &oe) || oe.Server != fmt.Sprintf("%s:%d", bad.host, bad.port) || res.Reopened != 3 || e.moved > fileSize {
				t.Errorf("opened again %d times, moved %d, error %v", res.Reopened, e.moved, err)
			}
		}
		if n := len(home.queries(rqOpen)); n != 8 {
			t.Errorf("asked %d times for 2 reads with 3 new attempts each", n)
		}
		home.mend.Store(true)
		wellAgain(t, c)
	}
}

// TestWriteIsNotRepeated breaks the data server's connection in the middle of a write.
func TestWriteIsNotRepeated(t *testing.T) {
	for _, code := range []uint16{rqPgwrite, rqClose} {
		bad := (&peer{answer: say(code, reset)}).start(t)
		home := redirector(t, func(query) *peer { return bad })
		c := clientAt(t, home.url, storage.Credentials{})
		res, err := c.Do(t.Context(), &storage.Op{Kind: storage.Write, Path: "x", Size: 100, Timeout: 20 * time.Second}, &events{})
		if storage.Classify(err) != storage.Reset || res.Reopened != 0 || len(home.queries(rqOpen)) != 1 {
			t.Errorf("opened %d times, result %+v, error %v", len(home.queries(rqOpen)), res, err)
		}
	}
}

// TestNamesAreNotChangedTwice breaks the server's connection after the server may have carried out
// the request.
func TestNamesAreNotChangedTwice(t *testing.T) {
	for kind, code := range map[storage.Kind]uint16{storage.Mkdir: rqMkdir, storage.Remove: rqRm, storage.Move: rqMv} {
		bad := (&peer{answer: say(code, func(*talk, query) bool { return false })}).start(t)
		home := (&peer{flags: flagManager, answer: say(code, func(c *talk, q query) bool { return c.send(q, bad, "") })}).start(t)
		c := clientAt(t, home.url, storage.Credentials{})
		res, err := c.Do(t.Context(), &storage.Op{Kind: kind, Path: "x", Source: "y", Timeout: 20 * time.Second}, &events{})
		if storage.Classify(err) != storage.Reset || res.Reopened != 0 || len(bad.queries(code)) != 1 {
			t.Errorf("%s: asked %d times, result %+v, error %v", kind, len(bad.queries(code)), res, err)
		}
	}
}

// TestKeptSessionIsMadeAgain closes the connection between operations.
func TestKeptSessionIsMadeAgain(t *testing.T) {
	p := &peer{file: made(fileSize)}
	p.answer = func(c *talk, q query) bool {
		ok := c.good(q)
		return ok && q.code != rqStat // closed before the next request
	}
	p.start(t)
	c := clientAt(t, p.url, storage.Credentials{})
	for i := range 3 {
		var e events
		res, err := c.Do(t.Context(), &storage.Op{Kind: storage.Stat, Path: "x", Timeout: 20 * time.Second}, &e)
		if err != nil || res.Size != fileSize || !slices.Contains(e.phases, storage.Connected) || p.connections() != i+1 {
			t.Errorf("size %d, phases %v, %d connections, error %v", res.Size, e.phases, p.connections(), err)
		}
	}
	lost := (&peer{answer: say(rqStat, func(*talk, query) bool { return false })}).start(t)
	c = clientAt(t, lost.url, storage.Credentials{})
	for i, want := range []int{1, 2} { // a new connection is not opened again
		if _, err := c.Do(t.Context(), &storage.Op{Kind: storage.Stat, Path: "x", Timeout: 20 * time.Second},
			&events{}); storage.Classify(err) != storage.Reset || len(lost.queries(rqStat)) != want {
			t.Errorf("stat %d: asked %d times, error %v", i, len(lost.queries(rqStat)), err)
		}
	}
	half := (&peer{answer: say(rqStat, func(c *talk, q query) bool {
		_ = c.raw(answerOf(q.stream, stOK, "1 2 3 4")[:9])
		return false
	})}).start(t)
	c = clientAt(t, half.url, storage.Credentials{})
	for _, k := range []storage.Kind{storage.Ping, storage.Stat} {
		if _, err := c.Do(t.Context(), &storage.Op{Kind: k, Path: "x", Timeout: 20 * time.Second},
			&events{}); (err != nil) != (k == storage.Stat) {
			t.Errorf("%s: %v", k, err)
		}
	}
	if n := len(half.queries(rqStat)); n != 1 {
		t.Errorf("asked %d times although an answer had begun", n)
	}
}

// TestKeptFileIsOpenedAgain closes the connection on which a file stays open.
func TestKeptFileIsOpenedAgain(t *testing.T) {
	for name, op := range reads(fileSize) {
		op.Keep = true
		for _, after := range []int{1, 2} { // reads per connection: all reads of the last connection, or zero
			t.Run(fmt.Sprint(name, after), func(t *testing.T) {
				t.Parallel()
				p := &peer{file: made(fileSize)}
				p.answer = func(c *talk, q query) bool {
					if q.code != rqRead && q.code != rqPgread && q.code != rqReadv {
						return c.good(q)
					}
					c.reads++
					return c.reads <= after && c.good(q) && (c.reads < after || c.nth%2 == 0)
				}
				p.start(t)
				c := clientAt(t, p.url, storage.Credentials{})
				for range 4 {
					var e events
					res, err := c.Do(t.Context(), &op, &e)
					right(t, &op, res, &e, err)
					if res.Reopened != 0 {
						t.Errorf("opened again %d times: no data server was lost", res.Reopened)
					}
				}
				if n := len(p.queries(rqClose)); n != 0 {
					t.Errorf("%d files were closed", n)
				}
			})
		}
	}
}

// TestKeptFileOfALostServer breaks a data server's connection between two reads of a file that
// stays open, and then in the middle of a read.
func TestKeptFileOfALostServer(t *testing.T) {
	for _, middle := range []bool{false, true} {
		var count atomic.Int64
		bad := &peer{file: made(fileSize)}
		bad.answer = say(rqPgread, func(c *talk, q query) bool {
			if count.Add(1) == 1 {
				return c.good(q)
			}
			if middle {
				_ = c.raw(pagesAt(q.stream, c.peer.part(q), q.offset(), false).text()[:6000])
			}
			return false
		})
		bad.start(t)
		good := (&peer{file: made(fileSize)}).start(t)
		home := redirector(t, func(q query) *peer {
			if n := count.Load(); n < 2 || !middle && !strings.Contains(q.args, "tried") && n < 3 {
				return bad
			}
			return good
		})
		c := clientAt(t, home.url, storage.Credentials{})
		op := storage.Op{Kind: storage.Read, Path: "x", Size: fileSize, Keep: true, Sum: "md5", Timeout: 20 * time.Second}
		for i := range 3 {
			var e events
			res, err := c.Do(t.Context(), &op, &e)
			right(t, &op, res, &e, err)
			if want := map[bool]int{true: 1}[i == 1]; res.Reopened != want {
				t.Errorf("middle %v, read %d: opened again %d times, want %d", middle, i, res.Reopened, want)
			}
		}
	}
}

// TestManyKeptFiles reads more files than stay open, from a server that has closed the connection
// meanwhile: failures of the other files are ignored.
func TestManyKeptFiles(t *testing.T) {
	data := make([]*peer, 2)
	for i := range data {
		data[i] = (&peer{file: made(fileSize)}).start(t)
	}
	data[0].answer = func(c *talk, q query) bool { return c.good(q) && q.code != rqPgread }
	data[1].answer = say(rqClose, func(c *talk, q query) bool { return c.say(q, stError, number(3004)+"not open") })
	home := redirector(t, func(q query) *peer { return data[int(q.args[len("/data/")])%2] })
	c := clientAt(t, home.url, storage.Credentials{})
	for i := range 3 * maxFiles {
		var e events
		op := storage.Op{Kind: storage.Read, Path: string(rune('a' + i)), Size: fileSize, Keep: true, Sum: "md5", Timeout: 20 * time.Second}
		res, err := c.Do(t.Context(), &op, &e)
		right(t, &op, res, &e, err)
	}
	if n := len(data[1].queries(rqClose)); n == 0 {
		t.Error("no file was closed")
	}
}

// TestPagesAreLookedAtOnlyWithASum sends pages, one of which is damaged.
func TestPagesAreLookedAtOnlyWithASum(t *testing.T) {
	p := (&peer{file: made(fileSize), answer: say(rqPgread, func(c *talk, q query) bool {
		s := pagesAt(q.stream, c.peer.part(q), q.offset(), false)
		return c.raw(strings.TrimSuffix(s.text(), s.data) + "damaged!" + s.data[8:])
	})}).start(t)
	for sum, damaged := range map[string]bool{"": false, "md5": true, "crc32c": true} {
		c := clientAt(t, p.url, storage.Credentials{})
		var e events
		_, err := c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "x", Size: fileSize, Sum: sum, Timeout: 20 * time.Second}, &e)
		if errors.Is(err, storage.ErrChecksum) != damaged || !damaged && (err != nil || e.moved != fileSize) {
			t.Errorf("sum %q: moved %d, error %v", sum, e.moved, err)
		}
	}
}
