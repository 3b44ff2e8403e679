package emulator

// A way is one direction of a link or trunk: packets that come from a device or another way and
// continue to the next. One goroutine at a time.
type way struct {
	meter
	ring    *ring
	scratch []byte // a super-packet of which parts were lost
}

func newWay(p params, seed uint64) *way {
	return &way{meter: meter{shaper: newShaper(p, seed)}, scratch: make([]byte, superSize), ring: newRing(holds(p), superSize)}
}

// holds returns the largest number of bytes that can be on their way.
func holds(p params) int {
	if p.perByte == 0 {
		return 64 << 20 // it is not known
	}
	return 1<<20 + int(float64(p.delay+p.jitter+p.queue+p.burst)/p.perByte*5/4)
}

// set changes the parameters of the way.
func (w *way) set(p params) {
	w.shaper.set(p)
	w.ring = w.ring.grown(holds(p))
}

// buffer returns the memory for the next packet. If the ring is full it returns memory from which
// the packet will be dropped.
func (w *way) buffer() (b []byte, full bool) {
	if b = w.ring.next(); b != nil {
		return b, false
	}
	return w.scratch, true
}

// take takes the packet that was read into the first n bytes of buffer at the time now, of the link at place line: it
// will arrive later, or it is dropped.
func (w *way) take(now int64, b []byte, n int, full bool, line int) {
	s, ok := look(b[:n])
	if !ok {
		return
	}
	all := int64(s.segments)
	if w.shaper.down {
		w.tally.Cut += all
		return
	}
	keep := 0
	if !full {
		keep = min(s.segments, w.shaper.room(now, s.size())/s.size())
	}
	w.tally.Dropped += all - int64(keep)
	if keep == 0 {
		return
	}
	w.tally.wait.add(w.shaper.wait(now), int64(keep))
	if sh := w.shaper; sh.good >= int64(keep) && (sh.hole == 0 || s.size() <= sh.hole) { // no segment is lost: the usual case
		sh.good -= int64(keep)
		if keep < s.segments {
			n = s.cut(b, b[:n], 0, keep)
		}
		w.keep(now, n, s.bytes(0, keep), line)
		return
	}
	w.lose(now, s, b[:n], keep, line)
}

// keep sends the packet in the buffer, n bytes that take wire bytes on the wire.
func (w *way) keep(now int64, n, wire, line int) {
	w.ring.push(n, w.send(now, wire), line)
}

// lose takes the first keep segments of b apart if some of them are lost, also in a black hole. Lost
// segments have used the wire: they were lost behind it.
func (w *way) lose(now int64, s super, b []byte, keep, line int) {
	whole := w.scratch[:copy(w.scratch, b)]
	from := 0
	for i := range keep + 1 {
		lost := i < keep && (w.shaper.lost() || w.shaper.hole > 0 && s.bytes(i, i+1) > w.shaper.hole)
		if i < keep && !lost {
			continue
		}
		if out := w.ring.next(); i > from && out != nil {
			w.keep(now, s.cut(out, whole, from, i), s.bytes(from, i), line)
		} else if i > from {
			w.tally.Dropped += int64(i - from)
		}
		if lost {
			w.tally.Lost++
			w.send(now, s.bytes(i, i+1))
		}
		from = i + 1
	}
}

// arrived counts the oldest packet, which was handed over at the time now.
func (w *way) arrived(now, at int64, packet []byte) {
	s, _ := look(packet)
	if w.shaper.down {
		w.tally.Cut += int64(s.segments)
	} else {
		w.tally.Packets += int64(s.segments)
		w.tally.Bytes += int64(s.total)
		w.tally.late.add(now-at, 1)
	}
	w.ring.pop()
}
