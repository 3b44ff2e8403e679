package emulator

import (
	"sync"
	"sync/atomic"
	"time"
)

// segment is how many bytes of payload a full packet carries, and header what IP and TCP add to it: with them a
// proxy's rate is that of a real link.
const (
	segment = 1448
	header  = 52
)

// A wire is one way of a link or trunk of the way Proxy: all its connections share a rate and a delay. Where packets would be
// dropped it lets the sender wait.
type wire struct {
	base   time.Time
	chunks chan chunk // in the order in which they arrive

	over atomic.Bool // nothing waits any more

	turn sync.Mutex // whose chunk is the next: first come, first served

	mu     sync.Mutex // of all below
	mended *sync.Cond // broadcast when the link is no longer down
	meter
	spare [][]byte // buffers that are not in use
}

// Bytes that a proxy passes on at once: what takes the wire so long, but at least a packet's.
const (
	pieceTime   = time.Millisecond
	mostOfPiece = 64 << 10
)

// piece is how many bytes of a connection go on the wire at once.
func (w *wire) piece() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if each := w.shaper.perByte; each > 0 {
		return min(mostOfPiece, max(segment, int(float64(pieceTime)/each)))
	}
	return mostOfPiece
}

// buffer returns memory for the next chunk, of size bytes; done takes it back.
func (w *wire) buffer(size int) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.spare); n > 0 {
		b := w.spare[n-1]
		w.spare = w.spare[:n-1]
		if cap(b) >= size {
			return b[:size]
		}
	}
	return make([]byte, size)
}

func (w *wire) done(b []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.spare) < window {
		w.spare = append(w.spare, b)
	}
}

// A chunk is bytes under way; none is the end of what one side sends.
type chunk struct {
	at    int64 // when they arrive
	bytes []byte
	to    chan<- chunk
}

// longestSleep is how late the end of a link may be noticed.
const longestSleep = 50 * time.Millisecond

// atOnce is how long a read may take of what was there already.
const atOnce = int64(200 * time.Microsecond)

// inFlight is how many chunks may be under way in all.
const inFlight = 1 << 14

func newWire(base time.Time, p params, seed uint64) *wire {
	w := &wire{base: base, chunks: make(chan chunk, inFlight), meter: meter{shaper: newShaper(p, seed)}}
	w.mended = sync.NewCond(&w.mu)
	return w
}

func (w *wire) now() int64 { return int64(time.Since(w.base)) }

// send puts b, which was there at the time ready, on the wire when the queue has room; it arrives at to. It waits its
// turn, as the others who share the wire do, and returns when b could have gone on the wire: if we were woken late
// the wire has not stood still for that.
func (w *wire) send(b []byte, ready int64, to chan<- chunk) int64 {
	w.turn.Lock()
	defer w.turn.Unlock()
	w.mu.Lock()
	for w.shaper.down {
		w.mended.Wait()
		ready = w.now()
	}
	for {
		over := w.shaper.wait(w.now()) - w.shaper.queue
		if over <= 0 || w.over.Load() {
			break
		}
		w.mu.Unlock()
		time.Sleep(min(time.Duration(over), longestSleep))
		w.mu.Lock()
	}
	packets := (len(b) + segment - 1) / segment
	now := min(w.now(), max(ready, int64(w.shaper.free)-w.shaper.queue))
	w.tally.wait.add(w.shaper.wait(now), int64(packets))
	at := w.meter.send(now, len(b)+packets*header)
	w.mu.Unlock()
	w.chunks <- chunk{at: at, bytes: b, to: to}
	return now
}

// run hands over what arrives, until chunks is closed. Whom it hands to never lets it wait.
func (w *wire) run() {
	s := newSleeper()
	defer s.end()
	for c := range w.chunks {
		for d := c.at - w.now(); d > 0 && !w.over.Load(); d = c.at - w.now() {
			s.sleep(min(time.Duration(d), longestSleep))
		}
		w.mu.Lock()
		for w.shaper.down {
			w.mended.Wait()
		}
		packets := (len(c.bytes) + segment - 1) / segment
		w.tally.Packets += int64(packets)
		w.tally.Bytes += int64(len(c.bytes) + packets*header)
		w.tally.late.add(w.now()-c.at, 1)
		w.mu.Unlock()
		c.to <- c
	}
}

func (w *wire) set(p params) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shaper.set(p)
	if !p.down {
		w.mended.Broadcast()
	}
}

// look ends a span of ns nanoseconds and returns what was counted in it.
func (w *wire) look(ns int64) tally {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.meter.look(w.now(), ns)
}
