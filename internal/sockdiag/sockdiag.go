// Package sockdiag reads the kernel's measurements of the TCP sockets of this machine (struct
// tcp_info) by netlink, as ss does. It needs no rights: every user may read the sockets of all
// processes of its network namespace.
//
// A Reader reads sockets once. Sample reads them at intervals and reduces the samples of each socket
// to a Trace of constant size.
package sockdiag

import (
	"fmt"
	"net/netip"
	"time"
)

// A Socket is a TCP socket of this machine with the measurements of the kernel.
type Socket struct {
	Local, Remote netip.AddrPort // IPv4 addresses are never in their IPv6 form
	Inode         uint32         // number in /proc/PID/fd; 0 if the program has closed the socket
	State         State
	UID           uint32 // owner
	Congestion    string // algorithm of congestion control, such as "cubic" or "bbr"

	RecvQueue uint32 // bytes that have arrived in order and that the program has not read
	SendQueue uint32 // bytes that the program has written and that are not acknowledged

	RecvBuffer, SendBuffer uint32 // limits of the buffers in bytes of memory, which exceed the payload
	Drops                  uint32 // packets that were discarded because the receive buffer was full

	Info
}

// Info has the fields of struct tcp_info. Fields that an older kernel does not report are 0.
//
// The fields that describe the quality of the line, such as Cwnd, Lost, Retrans, DeliveryRate, Busy,
// RwndLimited and SndbufLimited, describe the data that this machine sends. Of received data the
// kernel measures MinRTT, RcvRTT, RcvSpace, RcvWnd, BytesReceived, segments and RcvOutOfOrder.
type Info struct {
	RTT    time.Duration // smoothed round trip of sent data
	RTTVar time.Duration // mean deviation of RTT
	MinRTT time.Duration // shortest round trip of the last minutes; 0: not measured
	RcvRTT time.Duration // time in which one window of data arrives; 0: not measured
	RTO    time.Duration // time until a retransmission

	Cwnd        uint32 // congestion window in segments of SndMSS
	Ssthresh    uint32 // threshold of slow start in segments; 0: no loss so far
	SndMSS      uint32 // payload of a sent segment in bytes
	RcvMSS      uint32 // payload of a received segment in bytes, as estimated by the kernel
	AdvMSS      uint32 // segment size in bytes that this machine has announced
	PMTU        uint32 // packet size of the path in bytes
	RcvSpace    uint32 // bytes that the program has read in a round trip, which tunes the receive buffer
	RcvSsthresh uint32 // highest receive window in bytes at present
	SndWnd      uint32 // receive window of the peer in bytes
	RcvWnd      uint32 // receive window that is announced to the peer in bytes

	Unacked      uint32 // segments that are sent and not acknowledged
	Sacked       uint32 // segments that are acknowledged out of order
	Lost         uint32 // segments that are regarded as lost
	Retrans      uint32 // segments that are being retransmitted
	TotalRetrans uint32 // segments that have been retransmitted
	Reordering   uint32 // distance in segments up to which the order of packets may differ
	ReordSeen    uint32 // reordered segments that the peer has acknowledged

	RcvOutOfOrder uint32 // segments that have arrived out of order
	DsackDups     uint32 // needless retransmissions that the peer has reported
	Backoff       uint8  // timeouts in a row

	BytesAcked, BytesReceived uint64 // payload that was acknowledged and received
	BytesSent, BytesRetrans   uint64 // payload that was sent, with retransmissions, and retransmitted

	SegsIn, SegsOut         uint32 // segments with and without payload
	DataSegsIn, DataSegsOut uint32 // segments with payload
	Delivered               uint32 // segments that the peer has acknowledged

	DeliveryRate  uint64 // last measured rate of delivery in bytes per second
	PacingRate    uint64 // bytes per second; 0: no limit
	MaxPacingRate uint64 // bytes per second; 0: no limit
	AppLimited    bool   // DeliveryRate was limited by the program

	Busy          time.Duration // time with data to send
	RwndLimited   time.Duration // part of Busy in which the receive window of the peer was full
	SndbufLimited time.Duration // part of Busy in which the send buffer was too small
	NotSent       uint32        // bytes that the program has written and that are not sent

	SinceSent, SinceReceived time.Duration // age of the last payload, in steps of some milliseconds
}

// State is the state of a TCP connection, with the numbers of the kernel.
type State uint8

// States of TCP connections. A Reader returns no listening sockets, and no sockets in SynRecv and
// TimeWait, of which the kernel has no measurements.
const (
	Established State = iota + 1
	SynSent
	SynRecv
	FinWait1
	FinWait2
	TimeWait
	Closed
	CloseWait
	LastAck
	Listen
	Closing
)

// String returns the name of the state as ss prints it.
func (s State) String() string {
	names := [...]string{"", "ESTAB", "SYN-SENT", "SYN-RECV", "FIN-WAIT-1", "FIN-WAIT-2", "TIME-WAIT", "UNCONN",
		"CLOSE-WAIT", "LAST-ACK", "LISTEN", "CLOSING"}
	if s == 0 || int(s) >= len(names) {
		return fmt.Sprintf("state %d", uint8(s))
	}
	return names[s]
}

// A Filter chooses sockets. The zero Filter chooses all.
type Filter struct {
	Inodes map[uint32]bool // as returned by Inodes; nil: sockets of all processes
	Remote netip.AddrPort  // port 0, and an invalid or unspecified address: any
}

// allows reports whether the filter chooses s.
func (f *Filter) allows(s *Socket) bool {
	switch {
	case f.Inodes != nil && !f.Inodes[s.Inode]:
		return false
	case f.Remote.Port() != 0 && f.Remote.Port() != s.Remote.Port():
		return false
	default:
		return !f.hasAddress() || f.Remote.Addr().Unmap().WithZone("") == s.Remote.Addr()
	}
}

func (f *Filter) hasAddress() bool {
	return f.Remote.Addr().IsValid() && !f.Remote.Addr().IsUnspecified()
}
