package mover

import (
	"sync"
	"sync/atomic"
	"time"

	"weir/internal/burn"
	"weir/transfer"
)

// reportEvery is the interval between progress reports of an attempt.
const reportEvery = 100 * time.Millisecond

// A reporter reports the progress of an attempt. The first report comes after reportEvery, so that
// small files cost nothing.
type reporter struct {
	moved atomic.Int64
	last  atomic.Int64 // time of the last report, Unix nanoseconds
	mu    sync.Mutex
	now   transfer.Progress
	tell  func(transfer.Progress)
}

func newReporter(l transfer.Lease, tell func(transfer.Progress)) *reporter {
	r := &reporter{tell: tell, now: transfer.Progress{Item: l.Item, Epoch: l.Epoch, Stage: transfer.Moving}}
	r.last.Store(time.Now().UnixNano())
	return r
}

// add counts bytes received or sent over the network.
func (r *reporter) add(n int64) {
	r.moved.Add(n)
	r.alive()
}

// alive reports the progress if it is due, also when nothing moves because a checksum is computed.
func (r *reporter) alive() {
	now, last := time.Now().UnixNano(), r.last.Load()
	if now-last >= int64(reportEvery) && r.last.CompareAndSwap(last, now) {
		r.say()
	}
}

// stage sets the current stage of the attempt.
func (r *reporter) stage(s transfer.Stage) {
	r.mu.Lock()
	r.now.Stage = s
	r.mu.Unlock()
	r.alive()
}

func (r *reporter) say() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tell != nil {
		r.now.Moved = r.moved.Load()
		r.tell(r.now)
	}
}

// end makes sure that nothing is reported any more.
func (r *reporter) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tell = nil
}

// A meter is the CPU time that the process had used, and the bytes it had moved, at some time.
type meter struct {
	cpu   time.Duration
	bytes int64
}

func (m *Mover) meter() meter { return meter{cpu: burn.Process(), bytes: m.moved.Load()} }

// share returns the part of the CPU seconds since a that belongs to the bytes of an attempt: all
// attempts running meanwhile share the time in proportion to their bytes. Threads of Go serve many
// attempts, so nothing more precise is known.
func (a meter) share(b meter, bytes int64) float64 {
	all := max(b.bytes-a.bytes, bytes)
	if all <= 0 {
		return 0
	}
	return (b.cpu - a.cpu).Seconds() * float64(bytes) / float64(all)
}
