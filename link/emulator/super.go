package emulator

import "encoding/binary"

// With TSO the kernel hands over up to 64 KB at once, a super-packet: one header and the payload of many segments. It
// is described by the ten bytes of struct virtio_net_hdr before it (linux/virtio_net.h), in the order of bytes of
// this machine.
const (
	virtioSize  = 10
	needsSum    = 1 // flags: the checksum at csum_start is partial
	typeNone    = 0
	typeTCP4    = 1
	superSize   = 65535 + virtioSize
	leastHeader = 20
)

// A super describes the division of a packet of a TUN device with its virtio_net_hdr.
type super struct {
	segments int
	header   int // bytes of IP and TCP headers of each
	payload  int // bytes of each, the last may have less
	total    int // bytes of IP packets when all are apart
}

// look returns the division of b. ok is false for packets that no link carries: packets other than
// IPv4, and packets that are too short.
func look(b []byte) (s super, ok bool) {
	if len(b) < virtioSize+leastHeader || b[virtioSize]>>4 != 4 {
		return s, false
	}
	ip := b[virtioSize:]
	one := super{segments: 1, total: len(ip)}
	if b[1]&0x7f != typeTCP4 {
		return one, true
	}
	payload := int(binary.NativeEndian.Uint16(b[4:]))
	at := int(ip[0]&15) * 4
	if payload == 0 || len(ip) < at+20 {
		return one, true
	}
	header := at + int(ip[at+12]>>4)*4
	rest := len(ip) - header
	if header < 40 || rest <= payload {
		return one, true
	}
	n := (rest + payload - 1) / payload
	return super{segments: n, header: header, payload: payload, total: rest + n*header}, true
}

// size returns the number of bytes of the largest of the segments as a packet.
func (s super) size() int {
	if s.segments == 1 {
		return s.total
	}
	return s.header + s.payload
}

// bytes returns the number of bytes of the segments in [from, until) as packets.
func (s super) bytes(from, until int) int {
	n := (until - from) * (s.header + s.payload)
	if until == s.segments {
		n -= s.segments*(s.header+s.payload) - s.total
	}
	return n
}

// cut writes the segments of b from one to before another into out and returns its length. out may be b itself if
// from is 0.
func (s super) cut(out, b []byte, from, until int) int {
	if from == 0 && until == s.segments {
		return copy(out, b)
	}
	start := virtioSize + s.header
	last := start + until*s.payload
	if until == s.segments {
		last = len(b)
	}
	n := copy(out, b[:start])
	n += copy(out[n:], b[start+from*s.payload:last])
	s.mend(out[:n], from, until)
	return n
}

// mend adapts the headers of a part to its content: length, number and checksum of the IP packet,
// sequence number and flags of TCP, the sum of the pseudo-header that a partial checksum begins
// with.
func (s super) mend(b []byte, from, until int) {
	if until-from == 1 {
		b[1] = typeNone
		b[4], b[5] = 0, 0
	}
	ip := b[virtioSize:]
	at := int(ip[0]&15) * 4
	tcp := ip[at:]
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
	id := binary.BigEndian.Uint16(ip[4:])
	binary.BigEndian.PutUint16(ip[4:], id+uint16(from))
	ip[10], ip[11] = 0, 0
	binary.BigEndian.PutUint16(ip[10:], ^fold(sum(ip[:at])))
	seq := binary.BigEndian.Uint32(tcp[4:])
	binary.BigEndian.PutUint32(tcp[4:], seq+uint32(from*s.payload))
	if until < s.segments {
		tcp[13] &^= 0x01 | 0x08 // FIN and PSH belong to the last
	}
	if from > 0 {
		tcp[13] &^= 0x80 // CWR belongs to the first
	}
	if b[0]&needsSum != 0 {
		pseudo := sum(ip[12:20]) + 6 + uint32(len(tcp))
		binary.BigEndian.PutUint16(tcp[16:], fold(pseudo))
	}
}

// sum adds up 16 bit words, as checksums of the internet do (RFC 1071).
func sum(b []byte) uint32 {
	total := uint32(0)
	for ; len(b) > 1; b = b[2:] {
		total += uint32(b[0])<<8 | uint32(b[1])
	}
	return total
}

func fold(total uint32) uint16 {
	for total>>16 != 0 {
		total = total&0xffff + total>>16
	}
	return uint16(total)
}
