package coordinator

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"weir/internal/tier"
	"weir/transfer"
	"weir/transfer/transfertest"
)

// A wall is a clock whose time of day is changed while its monotonic part continues, as the clock
// of a machine. A test cannot set a system clock, and no function of package time creates such a
// time. The time is therefore constructed from the internal representation of package time
// (time.go: the seconds of the wall clock are the bits of wall from bit 30 on).
type wall struct{ off atomic.Int64 }

func (w *wall) now() time.Time {
	t := time.Now()
	*(*uint64)(unsafe.Pointer(&t)) += uint64(w.off.Load()) << 30
	return t
}

// A lines is a log to which several goroutines write.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

// newWall returns a clock, a log, and a logger that writes to the log.
func newWall(t *testing.T) (*wall, *lines, *slog.Logger) {
	t.Helper()
	w, before := &wall{}, time.Now()
	w.off.Store(-3600)
	if now := w.now(); now.Sub(before) < 0 || now.Sub(before) > time.Minute || now.Round(0).Sub(before.Round(0)) > -time.Hour+time.Minute {
		t.Fatalf("package time keeps times in another way: %v after %v", now, before)
	}
	w.off.Store(0)
	l := &lines{}
	return w, l, slog.New(slog.NewTextHandler(l, nil))
}

const setText = "the clock of this machine was set"

// The coordinator's clock is set hours ahead and back again. Each change is detected and logged,
// running copies are not treated as lost, sites are not treated as down, and attempts that were due
// in seconds are not delayed by hours.
func TestTheClockIsSet(t *testing.T) {
	tier.Slow(t, "waits for time limits")
	t.Parallel()
	w, said, log := newWall(t)
	h := start(t, Config{Now: w.now, Log: log})
	a, b, q := h.pair(2)
	leases := map[int64]transfer.Lease{}
	for len(leases) < 2 {
		for _, l := range b.WaitWork() {
			leases[l.Item] = l
		}
	}
	for n, off := range []int64{2 * 3600, -3 * 3600, 0} {
		w.off.Store(off)
		until(t, "it is noticed", func() bool {
			a.Register("https://127.0.0.1:1/")
			return said.count(setText) == n+1
		})
		if ack, err := b.Report(); err != nil || len(ack.Lost) > 0 || len(ack.Cancel) > 0 {
			t.Errorf("clock %d s off: %+v, %v", off, ack, err)
		}
	}
	sites, err := h.Client.Sites(t.Context())
	if err != nil || len(sites) != 2 || !sites[0].Up || !sites[1].Up {
		t.Errorf("%+v, %v", sites, err)
	}
	var all []transfer.Outcome
	for _, l := range leases {
		out := transfertest.Verified(l)
		out.Fault, out.Verified, out.Reason = transfer.Transient, false, "the test says so"
		all = append(all, out)
	}
	if _, err := b.Report(all...); err != nil {
		t.Fatal(err)
	}
	w.off.Store(-5 * 3600)
	again := 0
	until(t, "they are tried again", func() bool {
		work := b.Work().Leases
		again += len(work)
		for _, l := range work {
			if _, err := b.Report(transfertest.Verified(l)); err != nil {
				t.Fatal(err)
			}
		}
		return again == 2
	})
	if q = h.WaitEnd(q.ID); q.Status != transfer.Completed || q.Count.Attempts != 4 {
		t.Errorf("%+v", q)
	}
}

// Small adjustments of the clock, as made by NTP, are not treated as a change of the time.
func TestAClockThatIsAdjusted(t *testing.T) {
	t.Parallel()
	w, said, log := newWall(t)
	c := &Coordinator{log: log, now: w.now}
	watched := c.now()
	for range 5 {
		w.off.Add(int64(smallestShift/time.Second) - 1)
		if err := c.clockSet(t.Context(), &watched, c.now()); err != nil || said.count(setText) > 0 {
			t.Fatal(err, said.text.String())
		}
	}
}
