package sockdiag

import (
	"encoding/binary"
	"net/netip"
	"time"
)

// Numbers of linux/netlink.h, linux/sock_diag.h and linux/inet_diag.h, which are the same on all
// architectures.
const (
	headerSize  = 16 // struct nlmsghdr
	socketSize  = 72 // struct inet_diag_msg
	idSize      = 48 // struct inet_diag_sockid
	exactSize   = 56 // struct inet_diag_req_v2
	dumpSize    = 60 // struct inet_diag_req
	hostSize    = 8  // struct inet_diag_hostcond without address
	typeError   = 2  // NLMSG_ERROR
	typeDone    = 3  // NLMSG_DONE
	typeDump    = 18 // TCPDIAG_GETSOCK: sockets of both families in one answer
	typeSocket  = 20 // SOCK_DIAG_BY_FAMILY
	flagRequest = 1
	flagDump    = 0x300

	attributeInfo       = 2 // INET_DIAG_INFO
	attributeCongestion = 4 // INET_DIAG_CONG
	attributeMemory     = 7 // INET_DIAG_SKMEMINFO
	attributeByteCode   = 1 // INET_DIAG_REQ_BYTECODE, of a request
	conditionRemote     = 8 // INET_DIAG_BC_D_COND

	familyInet  = 2
	familyInet6 = 10
	protocolTCP = 6

	measurements = 1<<(attributeInfo-1) | 1<<(attributeCongestion-1) | 1<<(attributeMemory-1)
	states       = 1<<Established | 1<<SynSent | 1<<FinWait1 | 1<<FinWait2 | 1<<CloseWait | 1<<LastAck | 1<<Closing
)

// An identity is the name of a socket in requests: the family and struct inet_diag_sockid with the
// kernel's cookie, which no other socket ever has.
type identity struct {
	family byte
	id     [idSize]byte
}

// A message is one netlink message.
type message struct {
	kind     uint16
	sequence uint32
	body     []byte
}

// nextMessage returns the first message of b and the bytes behind it. ok is false if b has no
// complete message.
func nextMessage(b []byte) (m message, rest []byte, ok bool) {
	if len(b) < headerSize {
		return message{}, nil, false
	}
	size := uint64(binary.NativeEndian.Uint32(b))
	if size < headerSize || size > uint64(len(b)) {
		return message{}, nil, false
	}
	m = message{kind: binary.NativeEndian.Uint16(b[4:]), sequence: binary.NativeEndian.Uint32(b[8:]), body: b[headerSize:size]}
	return m, b[min(uint64(len(b)), (size+3)&^3):], true
}

// status returns the number of the error in a message of type error or done; 0: no error.
func (m message) status() int {
	if len(m.body) < 4 {
		return 0
	}
	return -int(int32(binary.NativeEndian.Uint32(m.body)))
}

// parseSocket fills s from the body of a message and returns the identity of the socket. ok is false
// if the body is too short. names keeps one copy of each name of a congestion control.
func parseSocket(b []byte, s *Socket, names map[string]string) (id identity, ok bool) {
	if len(b) < socketSize {
		return identity{}, false
	}
	id.family = b[0]
	copy(id.id[:], b[4:])
	*s = Socket{State: State(b[1])}
	s.Local = netip.AddrPortFrom(address(b[0], b[8:24]), binary.BigEndian.Uint16(b[4:]))
	s.Remote = netip.AddrPortFrom(address(b[0], b[24:40]), binary.BigEndian.Uint16(b[6:]))
	s.RecvQueue = binary.NativeEndian.Uint32(b[56:])
	s.SendQueue = binary.NativeEndian.Uint32(b[60:])
	s.UID = binary.NativeEndian.Uint32(b[64:])
	s.Inode = binary.NativeEndian.Uint32(b[68:])
	for b = b[socketSize:]; len(b) >= 4; {
		size := int(binary.NativeEndian.Uint16(b))
		if size < 4 || size > len(b) {
			break
		}
		s.attribute(binary.NativeEndian.Uint16(b[2:])&0x3fff, b[4:size], names)
		b = b[min(len(b), (size+3)&^3):]
	}
	return id, true
}

func address(family byte, b []byte) netip.Addr {
	if family == familyInet {
		return netip.AddrFrom4([4]byte(b))
	}
	return netip.AddrFrom16([16]byte(b)).Unmap()
}

// attribute stores an attribute of a message.
func (s *Socket) attribute(kind uint16, b fields, names map[string]string) {
	switch kind {
	case attributeInfo:
		s.Info = parseInfo(b)
	case attributeMemory:
		s.RecvBuffer, s.SendBuffer, s.Drops = b.u32(4), b.u32(12), b.u32(32)
	case attributeCongestion:
		for len(b) > 0 && b[len(b)-1] == 0 {
			b = b[:len(b)-1]
		}
		name, known := names[string(b)]
		if !known {
			name = string(b)
			names[name] = name
		}
		s.Congestion = name
	}
}

// fields is a struct of the kernel, whose length depends on the kernel. Fields behind its end are 0.
type fields []byte

func (f fields) u8(at int) uint8 {
	if at >= len(f) {
		return 0
	}
	return f[at]
}

func (f fields) u32(at int) uint32 {
	if at+4 > len(f) {
		return 0
	}
	return binary.NativeEndian.Uint32(f[at:])
}

func (f fields) u64(at int) uint64 {
	if at+8 > len(f) {
		return 0
	}
	return binary.NativeEndian.Uint64(f[at:])
}

func (f fields) micros(at int) time.Duration { return time.Duration(f.u32(at)) * time.Microsecond }
func (f fields) millis(at int) time.Duration { return time.Duration(f.u32(at)) * time.Millisecond }

// micros64 returns a counter of microseconds; a value that is no time of a socket is 0.
func (f fields) micros64(at int) time.Duration {
	const century = 100 * 365 * 24 * uint64(time.Hour/time.Microsecond)
	if n := f.u64(at); n < century {
		return time.Duration(n) * time.Microsecond
	}
	return 0
}

// rate returns a rate; the kernel's largest number, which means no limit, is 0.
func (f fields) rate(at int) uint64 {
	if n := f.u64(at); n != ^uint64(0) {
		return n
	}
	return 0
}

// parseInfo reads struct tcp_info.
func parseInfo(f fields) Info {
	i := Info{
		Backoff: f.u8(4), AppLimited: f.u8(7)&1 != 0,
		RTO: f.micros(8), SndMSS: f.u32(16), RcvMSS: f.u32(20),
		Unacked: f.u32(24), Sacked: f.u32(28), Lost: f.u32(32), Retrans: f.u32(36),
		SinceSent: f.millis(44), SinceReceived: f.millis(52),
		PMTU: f.u32(60), RcvSsthresh: f.u32(64), RTT: f.micros(68), RTTVar: f.micros(72),
		Ssthresh: f.u32(76), Cwnd: f.u32(80), AdvMSS: f.u32(84), Reordering: f.u32(88),
		RcvRTT: f.micros(92), RcvSpace: f.u32(96), TotalRetrans: f.u32(100),
		PacingRate: f.rate(104), MaxPacingRate: f.rate(112),
		BytesAcked: f.u64(120), BytesReceived: f.u64(128), SegsOut: f.u32(136), SegsIn: f.u32(140),
		NotSent: f.u32(144), MinRTT: f.micros(148), DataSegsIn: f.u32(152), DataSegsOut: f.u32(156),
		DeliveryRate: f.rate(160), Busy: f.micros64(168), RwndLimited: f.micros64(176), SndbufLimited: f.micros64(184),
		Delivered: f.u32(192), BytesSent: f.u64(200), BytesRetrans: f.u64(208),
		DsackDups: f.u32(216), ReordSeen: f.u32(220), RcvOutOfOrder: f.u32(224), SndWnd: f.u32(228), RcvWnd: f.u32(232),
	}
	if i.Ssthresh >= 0x7fffffff { // TCP_INFINITE_SSTHRESH
		i.Ssthresh = 0
	}
	if f.u32(148) == ^uint32(0) {
		i.MinRTT = 0
	}
	return i
}

// appendExact appends a request for the measurements of one socket.
func appendExact(b []byte, sequence uint32, id *identity) []byte {
	b = appendHeader(b, headerSize+exactSize, typeSocket, flagRequest, sequence)
	b = append(b, id.family, protocolTCP, measurements, 0)
	b = binary.NativeEndian.AppendUint32(b, states)
	return append(b, id.id[:]...)
}

// appendDump appends a request for all sockets with the remote end of f. extensions has a bit for
// each attribute to return.
func appendDump(b []byte, sequence uint32, extensions byte, f *Filter) []byte {
	code := byteCode(f)
	b = appendHeader(b, headerSize+dumpSize+len(code), typeDump, flagRequest|flagDump, sequence)
	b = append(b, 0, 0, 0, extensions)
	b = append(b, make([]byte, idSize)...)
	b = binary.NativeEndian.AppendUint32(b, states)
	b = binary.NativeEndian.AppendUint32(b, 0)
	return append(b, code...)
}

func appendHeader(b []byte, size int, kind, flags uint16, sequence uint32) []byte {
	b = binary.NativeEndian.AppendUint32(b, uint32(size))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = binary.NativeEndian.AppendUint16(b, flags)
	b = binary.NativeEndian.AppendUint32(b, sequence)
	return binary.NativeEndian.AppendUint32(b, 0)
}

// byteCode returns the attribute with the program by which the kernel chooses sockets: one condition
// on the remote end. It is empty if f has no remote end.
func byteCode(f *Filter) []byte {
	family, addr, port := byte(0), []byte(nil), int32(-1)
	if f.hasAddress() {
		a := f.Remote.Addr().Unmap()
		family, addr = familyInet6, a.AsSlice()
		if a.Is4() {
			family = familyInet
		}
	}
	if f.Remote.Port() != 0 {
		port = int32(f.Remote.Port())
	}
	if family == 0 && port < 0 {
		return nil
	}
	size := 4 + hostSize + len(addr)
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+size))
	b = binary.NativeEndian.AppendUint16(b, attributeByteCode)
	b = append(b, conditionRemote, byte(size))
	b = binary.NativeEndian.AppendUint16(b, uint16(size+4)) // behind the end: not chosen
	b = append(b, family, byte(8*len(addr)), 0, 0)
	return append(binary.NativeEndian.AppendUint32(b, uint32(port)), addr...)
}
