package sockdiag

import (
	"math"
	"net/netip"
	"time"
)

// mostBins is the length of Trace.In and Trace.Out.
const mostBins = 32

// A Trace reduces the samples of one socket to less than 1,000 bytes. Counters are rises between the
// first and the last sample, or since the socket was opened if Whole is true. Times are in seconds.
//
// Means are means of samples. Span and the times of Shares begin with the first sample; each interval
// between two samples belongs to the state of the socket at its end.
type Trace struct {
	Local      netip.AddrPort `json:"local"`
	Remote     netip.AddrPort `json:"remote"`
	Inode      uint32         `json:"inode,omitempty"`
	Congestion string         `json:"congestion_control,omitempty"`
	Whole      bool           `json:"since_opening,omitempty"` // counters are since the socket was opened; set before the first Add
	State      State          `json:"tcp_state"`               // of the last sample

	First   float64 `json:"first_seconds"` // time of the first sample
	Span    float64 `json:"span_seconds"`  // from the first to the last sample
	Samples int     `json:"samples"`
	Shares

	Width float64  `json:"bin_seconds,omitempty"` // of each element of In and Out
	In    []uint64 `json:"in_bytes,omitempty"`    // bytes received in each bin after First
	Out   []uint64 `json:"out_bytes,omitempty"`   // bytes sent and acknowledged in each bin

	Counters

	MinRTT  float64 `json:"min_rtt_seconds,omitempty"`  // smallest
	MeanRTT float64 `json:"mean_rtt_seconds,omitempty"` // of sent data
	MaxRTT  float64 `json:"max_rtt_seconds,omitempty"`
	RcvRTT  float64 `json:"rcv_rtt_seconds,omitempty"` // mean; 0: the kernel did not measure it

	DeliveryRate float64 `json:"delivery_rate,omitempty"` // mean of the samples in Sending, bytes per second
	PerTrip      float64 `json:"trip_bytes,omitempty"`    // mean of the bytes that were received in one RcvRTT
	RcvWnd       float64 `json:"rcv_wnd,omitempty"`       // mean of the window that was announced while data arrived, in bytes
	WindowUse    float64 `json:"window_use,omitempty"`    // mean of PerTrip / RcvWnd: near 1, the receive window limits
	PeerWnd      float64 `json:"peer_wnd,omitempty"`      // mean of the window of the peer while data waited to be sent, in bytes
	MaxPeerWnd   uint32  `json:"peer_wnd_max,omitempty"`
	MaxRecvQueue uint32  `json:"recv_queue_max,omitempty"`
	Reordering   uint32  `json:"reordering,omitempty"` // largest, in segments

	// Of the last sample.
	Cwnd       uint32 `json:"cwnd,omitempty"`        // segments
	SndMSS     uint32 `json:"snd_mss,omitempty"`     // bytes
	RcvMSS     uint32 `json:"rcv_mss,omitempty"`     // bytes
	PMTU       uint32 `json:"pmtu,omitempty"`        // bytes
	SndWnd     uint32 `json:"snd_wnd,omitempty"`     // bytes
	RcvSpace   uint32 `json:"rcv_space,omitempty"`   // bytes
	RecvBuffer uint32 `json:"recv_buffer,omitempty"` // bytes
	SendBuffer uint32 `json:"send_buffer,omitempty"` // bytes

	base, last  rawCounters
	at          time.Duration // of the last sample
	rtts, trips int           // samples in MeanRTT, PerTrip
	rcvs, rates int           // samples in RcvRTT, DeliveryRate
	peers       int           // samples in PeerWnd
}

// Shares are the seconds in which a socket was in a state. The states overlap, except that each
// interval is in one of Unread, Awaiting, Quiet and Connecting at most.
type Shares struct {
	Receiving  float64 `json:"receiving_seconds"`            // payload arrived
	Sending    float64 `json:"sending_seconds"`              // payload was acknowledged
	Unread     float64 `json:"unread_seconds"`               // RecvQueue filled more than half of the receive window: the program did not read
	Empty      float64 `json:"empty_seconds"`                // RecvQueue was empty: the program waited for data
	Unsent     float64 `json:"unsent_seconds"`               // SendQueue was not empty
	Awaiting   float64 `json:"awaiting_seconds"`             // this machine sent last, 16 KiB at most are under way: the peer has to answer
	Quiet      float64 `json:"quiet_seconds"`                // no payload moved, queues were empty, the peer sent last
	Connecting float64 `json:"connecting_seconds,omitempty"` // no answer to SYN
}

// Counters are rises of counters of struct tcp_info, which Info describes.
type Counters struct {
	BytesReceived uint64 `json:"bytes_received"`
	BytesAcked    uint64 `json:"bytes_acked"`
	BytesSent     uint64 `json:"bytes_sent,omitempty"`
	BytesRetrans  uint64 `json:"bytes_retrans,omitempty"`

	Busy          float64 `json:"busy_seconds,omitempty"`
	RwndLimited   float64 `json:"rwnd_limited_seconds,omitempty"`
	SndbufLimited float64 `json:"sndbuf_limited_seconds,omitempty"`

	SegsIn        uint32 `json:"segs_in"`
	SegsOut       uint32 `json:"segs_out"`
	DataSegsIn    uint32 `json:"data_segs_in"`
	DataSegsOut   uint32 `json:"data_segs_out"`
	TotalRetrans  uint32 `json:"total_retrans,omitempty"`
	RcvOutOfOrder uint32 `json:"rcv_ooopack,omitempty"`
	ReordSeen     uint32 `json:"reord_seen,omitempty"`
	DsackDups     uint32 `json:"dsack_dups,omitempty"`
	Drops         uint32 `json:"drops,omitempty"`
}

// rawCounters are the counters of one sample.
type rawCounters struct {
	received, acked, sent, retrans                                              uint64
	busy, rwnd, sndbuf                                                          time.Duration
	segsIn, segsOut, dataIn, dataOut, retransmits, disorder, reord, dups, drops uint32
}

func countersOf(s *Socket) rawCounters {
	return rawCounters{s.BytesReceived, s.BytesAcked, s.BytesSent, s.BytesRetrans, s.Busy, s.RwndLimited, s.SndbufLimited,
		s.SegsIn, s.SegsOut, s.DataSegsIn, s.DataSegsOut, s.TotalRetrans, s.RcvOutOfOrder, s.ReordSeen, s.DsackDups, s.Drops}
}

// since returns the rise of each counter. Differences of 32 bits are right after an overflow.
func (c rawCounters) since(b rawCounters) Counters {
	return Counters{
		BytesReceived: c.received - b.received, BytesAcked: c.acked - b.acked,
		BytesSent: c.sent - b.sent, BytesRetrans: c.retrans - b.retrans,
		Busy: (c.busy - b.busy).Seconds(), RwndLimited: (c.rwnd - b.rwnd).Seconds(), SndbufLimited: (c.sndbuf - b.sndbuf).Seconds(),
		SegsIn: c.segsIn - b.segsIn, SegsOut: c.segsOut - b.segsOut, DataSegsIn: c.dataIn - b.dataIn, DataSegsOut: c.dataOut - b.dataOut,
		TotalRetrans: c.retransmits - b.retransmits, RcvOutOfOrder: c.disorder - b.disorder,
		ReordSeen: c.reord - b.reord, DsackDups: c.dups - b.dups, Drops: c.drops - b.drops,
	}
}

// Add adds a sample. at is its time after a beginning that all samples share.
func (t *Trace) Add(at time.Duration, s *Socket) {
	now := countersOf(s)
	if t.Samples == 0 {
		t.Local, t.Remote, t.First, t.at = s.Local, s.Remote, at.Seconds(), at
		if !t.Whole {
			t.base, t.last = now, now
		}
	}
	received, acked := now.received-t.last.received, now.acked-t.last.acked
	interval := (at - t.at).Seconds()
	t.bin(at, received, acked)
	t.add(interval, received, acked, s)
	t.means(interval, received, acked, s)
	t.Counters = now.since(t.base)
	t.Span = at.Seconds() - t.First
	t.at, t.last = at, now
	t.Samples++

	t.State, t.Cwnd, t.SndMSS, t.RcvMSS, t.PMTU = s.State, s.Cwnd, s.SndMSS, s.RcvMSS, s.PMTU
	t.SndWnd, t.RcvSpace, t.RecvBuffer, t.SendBuffer = s.SndWnd, s.RcvSpace, s.RecvBuffer, s.SendBuffer
	if s.Inode != 0 {
		t.Inode = s.Inode
	}
	if s.Congestion != "" {
		t.Congestion = s.Congestion
	}
}

// add adds an interval that ends with the sample s.
func (h *Shares) add(interval float64, received, acked uint64, s *Socket) {
	const request = 16 << 10 // bytes; more under way is payload
	waits := s.RecvQueue == 0 && s.SendQueue <= request && s.State != SynSent
	for _, state := range []struct {
		seconds *float64
		in      bool
	}{
		{&h.Receiving, received > 0}, {&h.Sending, acked > 0},
		{&h.Unread, s.Unread()}, {&h.Empty, s.RecvQueue == 0}, {&h.Unsent, s.SendQueue > 0},
		{&h.Awaiting, waits && s.SinceSent < s.SinceReceived},
		{&h.Quiet, waits && s.SendQueue == 0 && received+acked == 0 && s.SinceSent >= s.SinceReceived},
		{&h.Connecting, s.State == SynSent},
	} {
		if state.in {
			*state.seconds += interval
		}
	}
}

// Unread reports whether the bytes that the program has not read fill more than half of the receive
// window, so that the program and not the line limits the peer.
func (s *Socket) Unread() bool {
	if s.RcvWnd > 0 {
		return s.RecvQueue > s.RcvWnd
	}
	return s.RecvQueue > s.RcvSsthresh/2
}

// means adds a sample to the means and extremes.
func (t *Trace) means(interval float64, received, acked uint64, s *Socket) {
	if s.MinRTT > 0 && (t.MinRTT == 0 || s.MinRTT.Seconds() < t.MinRTT) {
		t.MinRTT = s.MinRTT.Seconds()
	}
	if s.RTT > 0 {
		mean(&t.MeanRTT, &t.rtts, s.RTT.Seconds())
		t.MaxRTT = max(t.MaxRTT, s.RTT.Seconds())
	}
	if acked > 0 && s.DeliveryRate > 0 {
		mean(&t.DeliveryRate, &t.rates, float64(s.DeliveryRate))
	}
	if s.RcvRTT > 0 {
		mean(&t.RcvRTT, &t.rcvs, s.RcvRTT.Seconds())
	}
	if s.SendQueue > 0 {
		mean(&t.PeerWnd, &t.peers, float64(s.SndWnd))
	}
	t.MaxPeerWnd = max(t.MaxPeerWnd, s.SndWnd)
	t.MaxRecvQueue = max(t.MaxRecvQueue, s.RecvQueue)
	t.Reordering = max(t.Reordering, s.Reordering)
	window := float64(s.RcvWnd)
	if s.RcvWnd == 0 {
		window = float64(s.RcvSsthresh)
	}
	if received == 0 || interval <= 0 || s.RcvRTT == 0 || window == 0 {
		return
	}
	trip := float64(received) / interval * s.RcvRTT.Seconds()
	n := t.trips
	mean(&t.PerTrip, &t.trips, trip)
	mean(&t.RcvWnd, new(n), window)
	mean(&t.WindowUse, new(n), trip/window)
}

// mean adds x to a mean of n values.
func mean(m *float64, n *int, x float64) {
	*n++
	*m += (x - *m) / float64(*n)
}

// bin adds bytes to the bin of the interval that ends at at. The first interval fixes the width;
// once all bins are used it doubles.
func (t *Trace) bin(at time.Duration, in, out uint64) {
	after := at.Seconds() - t.First
	if t.Width == 0 {
		t.Width = after
	}
	i := 0
	if t.Width > 0 {
		i = max(0, int(math.Ceil(after/t.Width-1e-6))-1)
	}
	for ; i >= mostBins; i /= 2 {
		t.In, t.Out, t.Width = halved(t.In), halved(t.Out), 2*t.Width
	}
	for len(t.In) <= i {
		t.In, t.Out = append(t.In, 0), append(t.Out, 0)
	}
	t.In[i] += in
	t.Out[i] += out
}

// halved adds each second element to the one before it.
func halved(b []uint64) []uint64 {
	for i := range b {
		if i%2 == 0 {
			b[i/2] = b[i]
		} else {
			b[i/2] += b[i]
		}
	}
	return b[:(len(b)+1)/2]
}
