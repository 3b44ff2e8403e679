package emulator

import (
	"math"
	"math/rand/v2"
	"time"

	"weir/internal/unit"
	"weir/link"
)

// params are the parameters of one way of a link, in nanoseconds.
type params struct {
	perByte float64 // of wire time; 0: no limit
	delay   int64
	jitter  int64
	queue   int64
	burst   int64 // time on the wire of the bytes that pass at once after a pause
	hole    int   // bytes of the largest packet that arrives; 0: all arrive
	loss    float64
	down    bool
}

// paramsOf returns the parameters of s for one way at a rate.
func paramsOf(s link.Spec, rate unit.Bitrate, down bool) params {
	s = s.Complete()
	p := params{delay: int64(s.RTT / 2), jitter: int64(s.Jitter), queue: int64(s.Queue), loss: float64(s.Loss), down: down,
		hole: int(s.BlackHole)}
	if rate > 0 {
		p.perByte = 8e9 / float64(rate)
		p.burst = int64(float64(s.Burst) * p.perByte)
	}
	return p
}

// A shaper decides when packets that come in one after the other leave. Times are nanoseconds of any clock; it never
// looks at one. It allocates nothing.
type shaper struct {
	params
	rng   rand.PCG
	free  float64 // when the wire has sent all that it has taken, or had: it can be burst before now
	last  int64   // departure of the packet before: packets are never reordered
	good  int64   // packets that get through until the next is lost
	swing swing
}

func newShaper(p params, seed uint64) *shaper {
	s := &shaper{params: p, free: -float64(p.burst)}
	s.rng.Seed(seed, 0x77656972)
	s.good = s.untilLoss()
	return s
}

// set changes the parameters. Packets accepted before leave as scheduled.
func (s *shaper) set(p params) {
	if p.loss != s.loss {
		s.params = p
		s.good = s.untilLoss()
	}
	s.params = p
}

// untilLoss draws how many packets get through before one is lost: as many as if each were lost for itself with that
// probability, for one draw.
func (s *shaper) untilLoss() int64 {
	if s.loss <= 0 {
		return math.MaxInt64
	}
	return int64(math.Log(1-uniform(&s.rng)) / math.Log1p(-s.loss))
}

// lost counts one packet and reports whether it is lost.
func (s *shaper) lost() bool {
	if s.good > 0 {
		s.good--
		return false
	}
	s.good = s.untilLoss()
	return true
}

// wait returns the time, in ns, for which a packet that comes now waits for the wire.
func (s *shaper) wait(now int64) int64 {
	return max(0, int64(s.free)-now)
}

// room returns the number of bytes for which the queue has room now, in packets of size bytes each:
// the last of them is the packet that waits longest.
func (s *shaper) room(now int64, size int) int {
	wait := s.wait(now)
	switch {
	case wait > s.queue:
		return 0
	case s.perByte == 0:
		return math.MaxInt
	}
	unused := max(0, float64(now)-s.begin(now)) // of the burst
	each := float64(size) * s.perByte
	return size * (1 + int(min((float64(s.queue-wait)+unused)/each, 1<<20)))
}

// begin returns the time at which the wire begins to send what comes now, which a burst puts before now.
func (s *shaper) begin(now int64) float64 { return max(s.free, float64(now-s.burst)) }

// send puts bytes on the wire, which has room for them. It returns the time of their arrival, and
// the time for which the wire is busy with them.
func (s *shaper) send(now int64, bytes int) (at int64, busy float64) {
	busy = float64(bytes) * s.perByte
	s.free = s.begin(now) + busy
	at = max(int64(s.free), now) + s.delay
	if s.jitter > 0 {
		at += s.swing.at(now, s.jitter, &s.rng)
	}
	s.last = max(at, s.last)
	return s.last, busy
}

// A swing is a delay that wanders between -jitter and +jitter: from one random value to the next in straight lines.
// They are never steeper than one in two, so that of two packets the later one arrives later.
type swing struct {
	from, to     float64
	begin, until int64
}

// leastSwing is the shortest time from one random value to the next.
const leastSwing = 20 * time.Millisecond

func (w *swing) at(now, jitter int64, rng *rand.PCG) int64 {
	if now >= w.until {
		draw := func() float64 { return float64(jitter) * (2*uniform(rng) - 1) }
		span := max(4*jitter, int64(leastSwing))
		if now >= w.until+span { // long silence: begin anew
			w.to = draw()
			w.until = now
		}
		w.from, w.to = w.to, draw()
		w.begin, w.until = w.until, w.until+span
	}
	share := float64(now-w.begin) / float64(w.until-w.begin)
	return int64(w.from + share*(w.to-w.from))
}

// uniform returns a number from 0 to below 1.
func uniform(rng *rand.PCG) float64 { return float64(rng.Uint64()>>11) / (1 << 53) }
