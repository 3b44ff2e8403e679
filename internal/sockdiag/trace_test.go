package sockdiag

import (
	"encoding/json"
	"math"
	"net/netip"
	"slices"
	"testing"
	"time"

	"weir/internal/require"
)

// received returns a sample of a socket that has received n bytes.
func received(n uint64, more func(s *Socket)) Socket {
	s := Socket{Local: netip.MustParseAddrPort("10.0.0.1:1"), Remote: netip.MustParseAddrPort("10.0.0.2:2"), State: Established}
	s.BytesReceived, s.RcvWnd, s.RcvRTT = n, 1000, 50*time.Millisecond
	if more != nil {
		more(&s)
	}
	return s
}

// Counters are rises, and each interval is in the states of the sample at its end.
func TestTrace(t *testing.T) {
	samples := []Socket{
		received(5000, func(s *Socket) { s.Busy, s.SegsOut = 3*time.Second, math.MaxUint32 }),
		received(6000, nil),
		received(6100, func(s *Socket) { s.RecvQueue = 900; s.RcvWnd = 100 }),
		received(6100, func(s *Socket) { s.RecvQueue = 900; s.RcvWnd = 100; s.SinceReceived = time.Second }),
		received(6100, func(s *Socket) { s.SinceReceived = time.Second }),
		received(6100, func(s *Socket) { s.SinceSent = time.Second; s.Busy, s.SegsOut = 4*time.Second, 2 }),
	}
	for _, whole := range []bool{false, true} {
		trace, base := Trace{Whole: whole}, uint64(5000)
		if whole {
			base = 0
		}
		for i := range samples {
			trace.Add(time.Duration(10+i)*100*time.Millisecond, &samples[i])
		}
		if trace.BytesReceived != 6100-base || !whole && (trace.SegsOut != 3 || trace.Busy != 1) || trace.Samples != 6 {
			t.Errorf("%+v", trace)
		}
		for _, c := range []struct {
			name      string
			got, want float64
		}{
			{"span", trace.Span, 0.5}, {"first", trace.First, 1}, {"receiving", trace.Receiving, 0.2}, {"unread", trace.Unread, 0.2},
			{"empty", trace.Empty, 0.3}, {"awaiting", trace.Awaiting, 0.1}, {"quiet", trace.Quiet, 0.1}, {"rcv_rtt", trace.RcvRTT, 0.05},
		} {
			require.Near(t, c.name, c.got, c.want, 1e-6)
		}
		if !whole {
			require.Near(t, "bytes per round trip", trace.PerTrip, (500+50)/2., 1e-6)
			require.Near(t, "window use", trace.WindowUse, (0.5+0.5)/2., 1e-6)
			if want := []uint64{1000, 100, 0, 0, 0}; !slices.Equal(trace.In, want) {
				t.Errorf("bins %v, want %v", trace.In, want)
			}
		}
	}
}

// Bins lose no bytes and keep the place of each within their width, however long the transfer is.
func TestBins(t *testing.T) {
	var trace Trace
	n := uint64(0)
	for i := range 1000 {
		if i >= 500 {
			n += 1000
		}
		s := received(n, nil)
		trace.Add(time.Duration(i)*time.Second, &s)
	}
	sum, first := uint64(0), -1
	for i, b := range trace.In {
		if sum += b; b > 0 && first < 0 {
			first = i
		}
	}
	if sum != 500_000 || len(trace.In) > mostBins || len(trace.In) < mostBins/2 || math.Abs(float64(first)*trace.Width-500) > trace.Width {
		t.Errorf("%d bytes in %d bins of %v s, the first in bin %d", sum, len(trace.In), trace.Width, first)
	}
	text, err := json.Marshal(trace)
	require.NoError(t, err)
	if len(text) > 1500 {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}

// A socket that was not there at first counts from its opening, and one with the ends of another
// that was closed has a trace of its own.
func TestTraces(t *testing.T) {
	var traces Traces
	first := received(5000, nil)
	traces.Add(0, []Socket{first})
	second := received(300, func(s *Socket) { s.Local = netip.MustParseAddrPort("10.0.0.1:9") })
	traces.Add(time.Second, []Socket{first, second})
	again := received(200, nil)
	traces.Add(2*time.Second, []Socket{again})
	all := traces.All()
	if len(all) != 3 || all[0].BytesReceived != 300 || !all[0].Whole || all[1].BytesReceived != 200 || !all[1].Whole ||
		all[2].BytesReceived != 0 || all[2].Whole || all[2].Samples != 2 {
		t.Errorf("%+v", all)
	}
}
