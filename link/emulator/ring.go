package emulator

// A ring keeps the packets on their way in one direction, in their order, in memory of fixed size.
// It allocates nothing.
type ring struct {
	bytes []byte
	slots []slot
	first int // oldest slot
	count int
	tail  int // index of the next packet
	large int // most bytes of one packet
}

// A slot is one packet on its way.
type slot struct {
	at       int64 // when it arrives
	off, len int32
	line     int32 // index of its link among the links that share the ring
}

// newRing returns a ring with room for total bytes, and for at least two packets of large bytes.
func newRing(total, large int) *ring {
	total = max(total, 2*large) + large
	return &ring{bytes: make([]byte, total), slots: make([]slot, total/64), large: large}
}

// next returns the memory for one more packet, nil if there is no room. Its content is lost unless it is pushed
// before the next call.
func (r *ring) next() []byte {
	if r.count == len(r.slots) {
		return nil
	}
	if r.count == 0 {
		r.tail = 0
		return r.bytes[:r.large]
	}
	head := int(r.slots[r.first].off)
	if r.tail <= head && r.count > 0 { // wrapped
		if head-r.tail < r.large {
			return nil
		}
		return r.bytes[r.tail : r.tail+r.large]
	}
	if len(r.bytes)-r.tail >= r.large {
		return r.bytes[r.tail : r.tail+r.large]
	}
	if head < r.large {
		return nil
	}
	r.tail = 0
	return r.bytes[:r.large]
}

// push adds the first n bytes of the buffer that next has returned, a packet of the link at index
// line.
func (r *ring) push(n int, at int64, line int) {
	i := r.first + r.count
	if i >= len(r.slots) {
		i -= len(r.slots)
	}
	r.slots[i] = slot{at: at, off: int32(r.tail), len: int32(n), line: int32(line)}
	r.tail += n
	r.count++
}

// due returns the oldest packet and the index of its link if it has arrived by now, else nil and
// the time of its arrival; 0 if the ring is empty.
func (r *ring) due(now int64) (packet []byte, at int64, line int) {
	if r.count == 0 {
		return nil, 0, 0
	}
	s := r.slots[r.first]
	if s.at > now {
		return nil, s.at, 0
	}
	return r.bytes[s.off : s.off+s.len], s.at, int(s.line)
}

// pop forgets the oldest packet.
func (r *ring) pop() {
	r.count--
	if r.first++; r.first == len(r.slots) {
		r.first = 0
	}
}

// grown returns r with room for total bytes: r itself if it has that.
func (r *ring) grown(total int) *ring {
	g := newRing(total, r.large)
	if len(g.bytes) <= len(r.bytes) {
		return r
	}
	for ; r.count > 0; r.pop() {
		s := r.slots[r.first]
		g.push(copy(g.next(), r.bytes[s.off:s.off+s.len]), s.at, int(s.line))
	}
	return g
}
