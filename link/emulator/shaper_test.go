package emulator

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"weir/link"
)

// A packet takes its time on the wire, then the delay, and later packets wait. A packet that would
// wait longer than the queue allows has no room.
func TestShaper(t *testing.T) {
	s := newShaper(paramsOf(link.Spec{RTT: 10 * 1e6, Queue: 3 * 1e6}, 8e6, false), 1) // 1 us a byte
	for i, want := range []int64{6_000_000, 7_000_000, 8_000_000, 9_000_000} {
		if room := s.room(0, 1000); room < 1000 {
			t.Fatalf("packet %d finds no room", i)
		}
		if at, busy := s.send(0, 1000); at != want || busy != 1e6 {
			t.Errorf("packet %d arrives after %d ns, the wire is busy for %g ns: want %d, 1e6", i, at, busy, want)
		}
	}
	if room := s.room(0, 1000); room != 0 {
		t.Errorf("room for %d bytes in a full queue", room)
	}
	if room := s.room(2_000_000, 1000); room != 2000 {
		t.Errorf("room for %d bytes 2 ms later, want 2000", room)
	}
	if at, _ := s.send(50e6, 1000); at != 56e6 {
		t.Errorf("a packet after a pause arrives at %d", at)
	}
}

// After a pause a burst arrives without waiting for the wire, the rest at the rate, and the queue
// has room for both.
func TestBurst(t *testing.T) {
	s := newShaper(paramsOf(link.Spec{Burst: 3000, Queue: 2 * 1e6}, 8e6, false), 1) // 1 us a byte
	for _, begin := range []int64{0, 50e6} {
		if room := s.room(begin, 1000); room != 6000 {
			t.Errorf("room for %d bytes at %d, want 6000", room, begin)
		}
		for i, want := range []int64{0, 0, 0, 1e6, 2e6} {
			if at, _ := s.send(begin, 1000); at != begin+want {
				t.Errorf("packet %d arrives at %d, want %d", i, at, begin+want)
			}
		}
	}
	if room := s.room(52e6, 1000); room != 3000 {
		t.Errorf("room for %d bytes when the burst is used up, want 3000", room)
	}
}

// The delay stays within its bounds, uses them, has no bias, and no packet
// overtakes another.
func TestSwing(t *testing.T) {
	const jitter = int64(10 * time.Millisecond)
	s := newShaper(params{delay: 50e6, jitter: jitter, queue: 1e9}, 7)
	least, most, sum, last, n := int64(math.MaxInt64), int64(0), 0.0, int64(0), 0
	for now := int64(0); now < 2e11; now += 1e6 {
		at, _ := s.send(now, 1500)
		if at < last {
			t.Fatalf("the packet of %d arrives at %d, the one before at %d", now, at, last)
		}
		d := at - now
		least, most, sum, last, n = min(least, d), max(most, d), sum+float64(d), at, n+1
	}
	if least < 40e6 || most > 60e6 || least > 41e6 || most < 59e6 {
		t.Errorf("delays from %d to %d ns", least, most)
	}
	if mean := sum / float64(n); math.Abs(mean-50e6) > 1e6 {
		t.Errorf("mean delay %g ns", mean)
	}
}

// Losses have the configured frequency, and are independent.
func TestLossIsDrawn(t *testing.T) {
	s := newShaper(params{loss: 0.1}, 3)
	const n = 100000
	lost, pairs, before := 0, 0, false
	for range n {
		l := s.lost()
		if l {
			lost++
			if before {
				pairs++
			}
		}
		before = l
	}
	if math.Abs(float64(lost)-0.1*n) > 5*math.Sqrt(0.09*n) || math.Abs(float64(pairs)-0.01*n) > 5*math.Sqrt(0.01*n) {
		t.Errorf("%d lost, %d of them one after the other", lost, pairs)
	}
	s.set(params{loss: 0})
	for range 1000 {
		if s.lost() {
			t.Fatal("lost without loss")
		}
	}
}

// A ring returns the packets that it took, in order, and never more than its size.
func TestRing(t *testing.T) {
	r := newRing(1000, 100)
	rng := rand.New(rand.NewPCG(1, 2))
	var want [][]byte
	var lines []int
	full := 0
	for i := range 20000 {
		if rng.IntN(100) < 52 {
			b := r.next()
			if b == nil {
				full++
				continue
			}
			n := 1 + rng.IntN(100)
			for k := range n {
				b[k] = byte(i + k)
			}
			want, lines = append(want, slices.Clone(b[:n])), append(lines, i)
			r.push(n, int64(i), i)
			continue
		}
		got, _, line := r.due(math.MaxInt64)
		if len(want) == 0 {
			if got != nil {
				t.Fatal("something in an empty ring")
			}
			continue
		}
		if !slices.Equal(got, want[0]) {
			t.Fatalf("round %d: other bytes came out than went in", i)
		}
		if len(lines) == 0 || line != lines[0] {
			t.Fatalf("round %d: they are of link %d", i, line)
		}
		lines = lines[1:]
		want = want[1:]
		r.pop()
		if i%1000 == 0 {
			r = r.grown(len(r.bytes) + 100)
		}
	}
	if full == 0 {
		t.Error("the ring was never full")
	}
}

// superPacket returns a packet as the kernel delivers it: a TCP packet of payload bytes in segments
// of 1448.
func superPacket(payload int) []byte {
	b := make([]byte, virtioSize+52+payload)
	b[0], b[1] = needsSum, typeTCP4
	binary.NativeEndian.PutUint16(b[4:], 1448)
	ip := b[virtioSize:]
	ip[0], ip[8], ip[9] = 0x45, 64, 6
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
	binary.BigEndian.PutUint16(ip[4:], 65530)
	copy(ip[12:], []byte{198, 18, 0, 1, 198, 18, 0, 2})
	binary.BigEndian.PutUint16(ip[10:], ^fold(sum(ip[:20])))
	tcp := ip[20:]
	binary.BigEndian.PutUint32(tcp[4:], 0xffffff00)
	tcp[12], tcp[13] = 8<<4, 0x80|0x10|0x08|0x01
	binary.BigEndian.PutUint16(tcp[16:], fold(sum(ip[12:20])+6+uint32(len(tcp))))
	for i := range payload {
		tcp[32+i] = byte(i * 7)
	}
	return b
}

// Parts of a super-packet are packets as the network would have had them.
func TestSuper(t *testing.T) {
	whole := superPacket(10*1448 + 100)
	s, ok := look(whole)
	if !ok || s.segments != 11 || s.total != 10*1500+152 || s.size() != 1500 {
		t.Fatalf("%+v", s)
	}
	for from := range 11 {
		for until := from + 1; until <= 11; until++ {
			out := make([]byte, superSize)
			out = out[:s.cut(out, whole, from, until)]
			got, ok := look(out)
			if !ok || got.segments != until-from || got.total != s.bytes(from, until) {
				t.Fatalf("%d to %d: %+v, want %d bytes", from, until, got, s.bytes(from, until))
			}
			ip := out[virtioSize:]
			if int(binary.BigEndian.Uint16(ip[2:])) != len(ip) || fold(sum(ip[:20])) != 0xffff {
				t.Errorf("%d to %d: the IP header is wrong", from, until)
			}
			if id := binary.BigEndian.Uint16(ip[4:]); id != 65530+uint16(from) {
				t.Errorf("%d to %d: number %d", from, until, id)
			}
			tcp := ip[20:]
			if seq := binary.BigEndian.Uint32(tcp[4:]); seq != 0xffffff00+uint32(1448*from) {
				t.Errorf("%d to %d: sequence number %d", from, until, seq)
			}
			if flags := tcp[13]; flags&0x80 != 0 != (from == 0) || flags&0x09 != 0 != (until == 11) {
				t.Errorf("%d to %d: flags %x", from, until, flags)
			}
			if binary.BigEndian.Uint16(tcp[16:]) != fold(sum(ip[12:20])+6+uint32(len(tcp))) {
				t.Errorf("%d to %d: wrong partial checksum", from, until)
			}
			if !slices.Equal(tcp[32:], whole[virtioSize+52+1448*from:min(len(whole), virtioSize+52+1448*until)]) {
				t.Errorf("%d to %d: other payload", from, until)
			}
		}
	}
}

// No packet of a device makes the code fail.
func FuzzTake(f *testing.F) {
	f.Add(superPacket(5000))
	f.Add(superPacket(10))
	f.Add([]byte{0, 1, 2})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > superSize {
			return
		}
		w := newWay(params{perByte: 8, queue: 100e3, loss: 0.3}, 1)
		for now := range int64(20) {
			buf, full := w.buffer()
			w.take(now*1000, buf, copy(buf, b), full, 0)
		}
		for p, at, _ := w.ring.due(math.MaxInt64); p != nil; p, at, _ = w.ring.due(math.MaxInt64) {
			w.arrived(at, at, p)
		}
	})
}

// Some segments of a super-packet find room, some do not, and some are lost.
func TestWayCountsSegments(t *testing.T) {
	w := newWay(params{perByte: 8, queue: 600e3, loss: 0.05}, 5)
	sent := int64(0)
	for now := int64(0); now < 1e9; now += 300e3 {
		buf, full := w.buffer()
		n := copy(buf, superPacket(40*1448))
		w.take(now, buf, n, full, 0)
		sent += 40
		for p, at, _ := w.ring.due(now); p != nil; p, at, _ = w.ring.due(now) {
			w.arrived(now, at, p)
		}
	}
	for p, at, _ := w.ring.due(math.MaxInt64); p != nil; p, at, _ = w.ring.due(math.MaxInt64) {
		w.arrived(at, at, p)
	}
	got := w.look(1e9, 1e9)
	if sum := got.Packets + got.Lost + got.Dropped; sum != sent {
		t.Errorf("%d packets sent, %d accounted for: %+v", sent, sum, got.Traffic)
	}
	if share := float64(got.Lost) / float64(got.Lost+got.Packets); math.Abs(share-0.05) > 0.01 || got.Dropped == 0 {
		t.Errorf("%.3f lost, %d dropped", share, got.Dropped)
	}
	if got.Bytes != 1500*got.Packets || got.Busy < 0.98 {
		t.Errorf("%+v", got.Traffic)
	}
}

// Segments above the size of a black hole are lost, the others arrive.
func TestBlackHole(t *testing.T) {
	w := newWay(params{hole: 1400}, 1)
	for _, payload := range []int{10*1448 + 100, 1200, 1400} {
		buf, full := w.buffer()
		w.take(0, buf, copy(buf, superPacket(payload)), full, 0)
	}
	for p, at, _ := w.ring.due(0); p != nil; p, at, _ = w.ring.due(0) {
		w.arrived(0, at, p)
	}
	if got := w.look(1e9, 1e9); got.Packets != 2 || got.Lost != 11 || got.Bytes != 152+1252 {
		t.Errorf("the end of the first and the second packet were to arrive: %+v", got.Traffic)
	}
}

func TestHistogram(t *testing.T) {
	for x := uint64(0); x < 1<<20; x += 1 + x/37 {
		if b := bucket(x); int64(x) > top(b) || b > 0 && int64(x) <= top(b-1) {
			t.Fatalf("%d is in bucket %d, which ends at %d", x, b, top(b))
		}
	}
	if b := bucket(math.MaxInt64); b >= len(histogram{}.counts) {
		t.Errorf("the largest is in bucket %d", b)
	}
	var h histogram
	for i := range int64(1000) {
		h.add(i*1e6, 1)
	}
	if q := h.quantiles(); math.Abs(q.P50-0.5) > 0.07 || math.Abs(q.P99-0.99) > 0.01 || q.Max != 0.999 {
		t.Errorf("%+v", q)
	}
}
