package emulator

import (
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/unit"
	"weir/link"
)

// overTrunk returns links over a trunk. The trunk is the last of them.
func overTrunk(trunk link.Spec, specs ...link.Spec) []link.Named {
	var links []link.Named
	for i, s := range specs {
		s.Trunk = "line"
		links = append(links, link.Named{Name: string(rune('a' + i)), Spec: s})
	}
	return append(links, link.Named{Name: "line", Spec: trunk})
}

// The links over a trunk get its rate together and not more, a single active link gets its own
// rate, and a link without the trunk is not affected.
func TestTrunkRate(t *testing.T) {
	tier.Slow(t, "measures links for seconds")
	t.Parallel()
	each := link.Spec{Rate: 8e6, RTT: 10 * ms, Congestion: "cubic"}
	links := append(overTrunk(link.Spec{Rate: 12e6, RTT: 4 * ms}, each, each, each), link.Named{Name: "beside", Spec: each})
	n, r := upLinks(t, links)
	address := serve(t, n, pour)
	again(t, 8, func() error {
		conn := dial(t, n.Site("a"), address)
		defer conn.Close()
		return within("bits/s of one link alone", 8*received(t, 2*time.Second, 2*time.Second, conn), 8e6*1448/1500, 0.05)
	})
	again(t, 8, func() error {
		var conns []*net.TCPConn
		for _, s := range n.Sites {
			conn := dial(t, s, address)
			defer conn.Close()
			conns = append(conns, conn)
		}
		rates := receivedEach(t, 3*time.Second, 4*time.Second, conns...)
		sum := 8 * (rates[0] + rates[1] + rates[2])
		t.Logf("%.0f, together %.0f, beside %.0f kbyte/s", []float64{rates[0] / 1e3, rates[1] / 1e3, rates[2] / 1e3}, sum/8e3, rates[3]/1e3)
		s := r.latest("line")
		return errors.Join(within("bits/s together", sum, 12e6*1448/1500, 0.05), within("bits/s beside", 8*rates[3], 8e6*1448/1500, 0.05),
			within("busy share of the trunk", s.ToClients.Busy, 1, 0.05))
	})
}

// Links over one trunk have their own round trip time and the trunk's.
func TestTrunkRTT(t *testing.T) {
	t.Parallel()
	n, _ := upLinks(t, overTrunk(link.Spec{Rate: 100e6, RTT: 10 * ms}, link.Spec{RTT: 7 * ms}, link.Spec{RTT: 51 * ms}))
	address := serve(t, n, echo)
	for i, want := range []time.Duration{17 * time.Millisecond, 61 * time.Millisecond} {
		c := dial(t, n.Sites[i], address)
		roundTrip(t, c, 1)
		again(t, 8, func() error {
			got := roundTrip(t, c, 10)
			if got < want {
				t.Errorf("%v is faster than link and trunk, %v", got, want)
			}
			return within("round trip in s", got.Seconds(), want.Seconds(), 0.1)
		})
	}
}

// On a saturated trunk, TCP gives more to the nearer site, as on real lines: with a short queue,
// the ratio of reno's rates follows the ratio of the round trip times, the wait in the queue
// included.
func TestTrunkFairness(t *testing.T) {
	tier.Slow(t, "measures links for seconds")
	n, _ := upLinks(t, overTrunk(link.Spec{Rate: 10e6, Queue: 30 * ms}, link.Spec{RTT: 10 * ms, Congestion: "reno"},
		link.Spec{RTT: 100 * ms, Congestion: "reno"}))
	address := serve(t, n, pour)
	again(t, 6, func() error {
		near, far := dial(t, n.Sites[0], address), dial(t, n.Sites[1], address)
		defer near.Close()
		defer far.Close()
		rates := receivedEach(t, 5*time.Second, 15*time.Second, near, far)
		t.Logf("near %s, far %s", unit.Bits(rates[0]), unit.Bits(rates[1]))
		if rates[0] < 1.5*rates[1] || rates[1] == 0 {
			return fmt.Errorf("near %s, far %s: the nearer should have more, and both something", unit.Bits(rates[0]), unit.Bits(rates[1]))
		}
		return within("bits/s together", 8*(rates[0]+rates[1]), 10e6*1448/1500, 0.15)
	})
}

// A trunk that is down cuts all links over it and no other, and all TCP connections outlive it.
func TestTrunkOutage(t *testing.T) {
	tier.Slow(t, "measures links for seconds")
	t.Parallel()
	each := link.Spec{Rate: 5e6}
	n, r := upLinks(t, append(overTrunk(link.Spec{Rate: 8e6}, each, each), link.Named{Name: "beside", Spec: each}))
	address := serve(t, n, pour)
	var conns []*net.TCPConn
	for _, s := range n.Sites {
		conns = append(conns, dial(t, s, address))
	}
	flows := func(rates []float64, which ...bool) (err error) {
		for i, is := range which {
			if is != (rates[i] > 0) {
				err = errors.Join(err, fmt.Errorf("site %s: %s", n.Sites[i].Name, unit.Bits(rates[i])))
			}
		}
		return err
	}
	again(t, 4, func() error {
		return flows(receivedEach(t, 500*time.Millisecond, time.Second, conns...), true, true, true)
	})
	require.NoError(t, n.Line("line").SetDown(true))
	if err := flows(receivedEach(t, 500*time.Millisecond, 1500*time.Millisecond, conns...), false, false, true); err != nil {
		t.Error(err)
	}
	again(t, 4, func() error {
		if s := r.latest("line"); !s.Down || r.latest("a").Down {
			return fmt.Errorf("the sample says down: %v, and of a link over it: %v", s.Down, r.latest("a").Down)
		}
		return nil
	})
	require.NoError(t, errors.Join(n.Line("line").Change(link.Spec{Rate: 4e6}), n.Line("line").SetDown(false)))
	again(t, 8, func() error {
		rates := receivedEach(t, 3*time.Second, 2*time.Second, conns...)
		return errors.Join(flows(rates, true, true, true), within("bits/s after", 8*(rates[0]+rates[1]), 4e6, 0.1))
	})
}

// A packet over link and trunk costs no memory either.
func TestTrunkAllocatesNothing(t *testing.T) {
	c, service, site := pairsOver(t, link.Spec{Rate: 1e9}.Complete(), &link.Spec{Rate: 2e9, Loss: 0.02})
	carriesWithoutMemory(t, c, service, site)
}
