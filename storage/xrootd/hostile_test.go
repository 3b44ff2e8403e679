package xrootd

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/content"
	"weir/internal/require"
	"weir/storage"
)

// say responds wrongly to one kind of request and correctly to all others.
func say(code uint16, how func(c *talk, q query) bool) func(*talk, query) bool {
	return func(c *talk, q query) bool {
		if q.code == code {
			return how(c, q)
		}
		return c.good(q)
	}
}

// body returns a response that is always the same.
func body(code, status uint16, text string) func(*talk, query) bool {
	return say(code, func(c *talk, q query) bool { return c.say(q, status, text) })
}

// silence sends no response.
func silence(*talk, query) bool { return true }

func reset(c *talk, _ query) bool {
	_ = c.tcp.SetLinger(0) // the close becomes a reset
	return false
}

// speech is a greeting of the same bytes, without regard to the client's bytes.
func speech(text string) func(*talk) bool {
	return func(c *talk) bool {
		_ = c.raw(text) // a write error of a connection that the client has closed is expected
		_ = c.tcp.CloseWrite()
		return c.hear()
	}
}

// after completes the handshake and then responds to the login with the same bytes.
func after(text string) func(*talk) bool {
	return func(c *talk) bool {
		if !c.hello() {
			return false
		}
		if q, err := c.ask(); err != nil || !c.say(q, stOK, "") {
			return false
		}
		return c.raw(text)
	}
}

// entry responds to the login with any status.
func entry(status uint16, text string) func(*talk) bool {
	return func(c *talk) bool {
		if !c.hello() {
			return false
		}
		q, err := c.ask()
		return err == nil && c.say(q, status, text)
	}
}

// A fault is the behavior of a peer and the expected result of the client.
type fault struct {
	kind   storage.Kind
	change func(*storage.Op)
	greet  func(*talk) bool
	answer func(*talk, query) bool
	flags  uint32
	offer  string
	class  storage.Class // the zero Class: Other, with ErrProtocol
	err    error
	words  string // in the error's text
}

func plainly(op *storage.Op) { op.Plain = true }
func summed(op *storage.Op)  { op.Sum = "md5" }
func ranged(op *storage.Op) {
	op.Ranges = []storage.Range{{Offset: 5, Length: 10}, {Offset: 5000, Length: 100}}
}

const fileSize = 10_000

// TestFaults runs one client against a server's fault twice, and then against the same server
// without the fault.
func TestFaults(t *testing.T) { meetAll(t, false) }

// TestFaultsOfSharedSessions is TestFaults with a connection that clients share.
func TestFaultsOfSharedSessions(t *testing.T) { meetAll(t, true) }

func meetAll(t *testing.T, shared bool) {
	before := descriptors(t)
	t.Run("all", func(t *testing.T) {
		for _, group := range []map[string]fault{faultsOfLogin(), faultsOfAnswers(), faultsOfRedirects(), faultsOfWaits(), faultsOfReads(),
			faultsOfPages(), faultsOfVectors(), faultsOfNames(), faultsOfWrites()} {
			for name, f := range group {
				if shared && ownOnly(name) {
					continue
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					f.meet(t, shared)
				})
			}
		}
	})
	nothingLeft(t, before)
}

// ownOnly reports whether a fault has another result if clients share a connection: an unrequested
// response may concern another client; a connection that is never silent is kept; all clients in a
// redirect loop on one connection lose it together.
func ownOnly(name string) bool {
	return slices.Contains([]string{"a stray after login", "attn after login", "redirect and hang up", "waitresp without end"}, name) ||
		strings.Contains(name, "for ever")
}

func (f fault) meet(t *testing.T, shared bool) {
	p := (&peer{file: made(fileSize), greet: f.greet, answer: f.answer, flags: f.flags, offer: f.offer}).start(t)
	c := clientOf(t, p.url, shared)
	op := storage.Op{Kind: f.kind, Path: "x", Size: -1, Timeout: 20 * time.Second,
		Sum: map[storage.Kind]string{storage.Checksum: "adler32"}[f.kind]}
	if f.kind == storage.Write {
		op.Size = fileSize
	}
	if f.kind == storage.Move {
		op.Source = "y"
	}
	if f.change != nil {
		f.change(&op)
	}
	class := f.class
	switch class {
	case storage.Timeout:
		op.Timeout = 150 * time.Millisecond
	case storage.None:
		class = storage.Other
		if f.err == nil {
			f.err = storage.ErrProtocol
		}
	}
	if shared && op.Timeout > time.Second {
		op.Timeout = 600 * time.Millisecond // a response may go to another client than intended
	}
	for range 2 { // the second time from the state after the first
		begin := time.Now()
		res, err := c.Do(t.Context(), &op, &events{})
		got := storage.Classify(err)
		if got == storage.Timeout && op.Timeout < 2*time.Second {
			continue // the machine was so slow that the time was over before the response
		}
		if shared && (got == storage.Timeout || got == storage.Reset && class == storage.Short) {
			continue
		}
		if got != class || f.err != nil && !errors.Is(err, f.err) {
			t.Errorf("class %q, want %q; error %v, want %v", got, class, err, f.err)
		}
		if err != nil && !shared && !strings.Contains(err.Error(), f.words) {
			t.Errorf("error %q does not say %q", err, f.words)
		}
		if d := time.Since(begin); d > 15*time.Second {
			t.Errorf("it took %v", d)
		}
		if res.Wire <= 0 && !shared && !strings.Contains(errText(err), "connect to") {
			t.Errorf("%d bytes on the wire", res.Wire)
		}
		t.Log(err)
	}
	p.mend.Store(true)
	wellAgain(t, c)
}

// wellAgain checks that a client reads correctly from a server without faults.
func wellAgain(t *testing.T, c storage.Client) {
	t.Helper()
	want, err := content.Sum("crc32c", 7, 0, fileSize)
	require.NoError(t, err)
	var e events
	res, err := c.Do(t.Context(), &storage.Op{Kind: storage.Read, Path: "x", Size: fileSize, Sum: "crc32c", Chunk: 4096,
		Timeout: 20 * time.Second}, &e)
	if err != nil || res.Sum != want || e.moved != fileSize {
		t.Errorf("when the server is well again: moved %d, sum %s, want %s, error %v", e.moved, res.Sum, want, err)
	}
}

// A count of the files and goroutines of a process.
type holdings struct{ files, goroutines int }

func descriptors(t testing.TB) holdings {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	return holdings{len(names), runtime.NumGoroutine()}
}

// nothingLeft checks that there are no more sockets and goroutines than before. Goroutines that
// have finished need a moment to end.
func nothingLeft(t *testing.T, before holdings) {
	t.Helper()
	var now holdings
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); runtime.Gosched() {
		if now = descriptors(t); now.files <= before.files && now.goroutines <= before.goroutines {
			return
		}
	}
	stacks := make([]byte, 1<<20)
	t.Errorf("%+v, and before it were %+v\n%s", now, before, stacks[:runtime.Stack(stacks, true)])
}
