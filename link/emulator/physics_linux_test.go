package emulator

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/unit"
	"weir/link"
)

// again repeats measurements that the load of the machine may spoil.
func again(t *testing.T, times int, f func() error) {
	t.Helper()
	var err error
	for range times {
		if err = f(); err == nil {
			return
		}
		t.Log(err)
	}
	t.Error(err)
}

func within(what string, got, want, tolerance float64) error {
	if math.Abs(got-want) > tolerance*want {
		return errors.New(what + ": " + unit.Count(got) + ", want " + unit.Count(want) + " within " + unit.Percent(tolerance))
	}
	return nil
}

// TCP gets a link's rate.
func TestRate(t *testing.T) {
	tier.Slow(t, "measures links for seconds")
	for _, c := range []struct {
		rate unit.Bitrate
		rtt  unit.Duration
	}{{2e6, 51 * ms}, {10e6, 10 * ms}, {100e6, 10 * ms}} {
		t.Run(c.rate.String(), func(t *testing.T) {
			t.Parallel()
			n, _ := up(t, link.Spec{Rate: c.rate, RTT: c.rtt, Congestion: "cubic"})
			address := serve(t, n, pour)
			again(t, 8, func() error {
				conn := dial(t, n.Sites[0], address)
				defer conn.Close()
				warm := time.Second + time.Duration(20*c.rtt) // slow start overshoots, and recovers
				got := 8 * received(t, warm, time.Duration(1+4e6/float64(c.rate))*time.Second, conn)
				t.Logf("%s of %s", unit.Bits(got/8), c.rate)
				return within("bits/s", got, float64(c.rate), 0.05)
			})
		})
	}
}

// Up is the other way's rate.
func TestRateUp(t *testing.T) {
	tier.Slow(t, "measures links for seconds")
	t.Parallel()
	n, _ := up(t, link.Spec{Rate: 50e6, Up: 5e6, Congestion: "cubic"})
	sent := make(chan float64, 4)
	address := serve(t, n, func(c *net.TCPConn) { sent <- 8 * received(t, time.Second, time.Second, c) })
	again(t, 8, func() error {
		conn := dial(t, n.Sites[0], address)
		defer conn.Close()
		go pour(conn)
		return within("bits/s", <-sent, 5e6, 0.05)
	})
}

// An idle link has its round trip time.
func TestRTT(t *testing.T) {
	for _, rtt := range []unit.Duration{51 * ms, 10 * ms} {
		t.Run(rtt.String(), func(t *testing.T) {
			n, _ := up(t, link.Spec{Rate: 100e6, RTT: rtt})
			c := dial(t, n.Sites[0], serve(t, n, echo))
			roundTrip(t, c, 1)
			again(t, 8, func() error {
				got := roundTrip(t, c, 10)
				t.Log(rtt, got)
				if got < time.Duration(rtt) {
					t.Errorf("%v is faster than the link", got)
				}
				return within("round trip in s", got.Seconds(), time.Duration(rtt).Seconds(), 0.1)
			})
		})
	}
}

// Pages that are read one after the other take a round trip each. With bbr
// they take longer, as on a real link: it spreads a page over part of the round
// trip.
func TestPages(t *testing.T) {
	const pages, size = 20, 8 << 10
	n, _ := up(t, link.Spec{Rate: 100e6, RTT: 51 * ms, Congestion: "cubic"})
	conn := dial(t, n.Sites[0], serve(t, n, func(c *net.TCPConn) {
		b := make([]byte, size)
		for {
			if _, err := io.ReadFull(c, b[:24]); err != nil {
				return
			}
			c.Write(b)
		}
	}))
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	again(t, 8, func() error {
		b, each := make([]byte, size), make([]time.Duration, pages)
		for i := range each {
			begin := time.Now()
			conn.Write(b[:24])
			if _, err := io.ReadFull(conn, b); err != nil {
				t.Fatal(err)
			}
			each[i] = time.Since(begin)
		}
		slices.Sort(each)
		t.Logf("%d pages took %v to %v, half of them less than %v", pages, each[0], each[pages-1], each[pages/2])
		if each[0] < 51*time.Millisecond {
			t.Errorf("%v is faster than the link", each[0])
		}
		return within("seconds of the median", each[pages/2].Seconds(), 0.051, 0.1)
	})
}

// Connections share a link, and several links do not.
func TestShare(t *testing.T) {
	tier.Slow(t, "measures links for seconds")
	t.Parallel()
	spec := link.Spec{Rate: 2e6, RTT: 20 * ms, Congestion: "cubic"}
	n, _ := up(t, spec, link.Spec{Rate: 8e6, RTT: 7 * ms, Congestion: "cubic"})
	address := serve(t, n, pour)
	again(t, 8, func() error {
		var conns []*net.TCPConn
		for range 10 {
			conns = append(conns, dial(t, n.Sites[0], address))
		}
		other := dial(t, n.Sites[1], address)
		apart := make(chan float64)
		go func() { apart <- 8 * received(t, time.Second, 3*time.Second, other) }()
		got := 8 * received(t, time.Second, 3*time.Second, conns...)
		beside := <-apart
		for _, c := range append(conns, other) {
			c.Close()
		}
		t.Logf("%s and %s", unit.Bits(got/8), unit.Bits(beside/8))
		return errors.Join(within("bits/s of ten", got, 2e6, 0.05), within("bits/s beside them", beside, 8e6, 0.05))
	})
}

// Loss slows TCP down as Mathis, Semke, Mahdavi and Ott found: to
// MSS/RTT * sqrt(3/2)/sqrt(p).
func TestLoss(t *testing.T) {
	tier.Slow(t, "measures links for seconds")
	for _, p := range []float64{0.003, 0.02} {
		t.Run(unit.Percent(p), func(t *testing.T) {
			t.Parallel()
			const rtt = 20 * ms
			n, r := up(t, link.Spec{Rate: 200e6, RTT: rtt, Loss: unit.Fraction(p), Congestion: "reno"})
			address := serve(t, n, pour)
			want := 8 * 1448 / time.Duration(rtt).Seconds() * math.Sqrt(1.5/p)
			again(t, 6, func() error {
				conn := dial(t, n.Sites[0], address)
				defer conn.Close()
				got := 8 * received(t, time.Second, 3*time.Second, conn)
				t.Logf("%s, the formula gives %s", unit.Bits(got/8), unit.Bits(want/8))
				if got < want/2 || got > want*2 {
					return errors.New("not within a factor of 2")
				}
				return nil
			})
			sum := link.Traffic{}
			for _, s := range r.samples() {
				sum.Packets += s.ToClients.Packets
				sum.Lost += s.ToClients.Lost
			}
			got := float64(sum.Lost) / float64(sum.Lost+sum.Packets)
			if sigma := math.Sqrt(p / float64(sum.Packets)); math.Abs(got-p) > 5*sigma {
				t.Errorf("%d of %d packets lost", sum.Lost, sum.Packets)
			}
		})
	}
}

// A black hole lets connections begin and short answers pass, and nothing else.
func TestBlackHoleOfTCP(t *testing.T) {
	n, _ := up(t, link.Spec{Rate: 100e6, RTT: 2 * ms, BlackHole: 1400})
	address := serve(t, n, func(c *net.TCPConn) {
		b := make([]byte, 20000)
		for _, size := range []int{1000, len(b)} {
			if _, err := io.ReadFull(c, b[:1]); err == nil {
				_, _ = c.Write(b[:size])
			}
		}
	})
	conn := dial(t, n.Sites[0], address)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	b := make([]byte, 20000)
	_, err := conn.Write(b[:1])
	require.NoError(t, err)
	_, err = io.ReadFull(conn, b[:1000])
	require.NoError(t, err)
	_, err = conn.Write(b[:1])
	require.NoError(t, err)
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if n, err := io.ReadFull(conn, b[:1400]); err == nil {
		t.Errorf("%d bytes of packets of 1500 bytes arrived", n)
	}
}

// A token bucket lets its burst pass faster than its rate, and then holds the rate.
func TestBurstOfTCP(t *testing.T) {
	tier.Slow(t, "measures links for seconds")
	n, _ := up(t, link.Spec{Rate: 8e6, RTT: 2 * ms, Burst: 2e6, Congestion: "cubic"})
	address := serve(t, n, pour)
	again(t, 8, func() error {
		time.Sleep(2200 * time.Millisecond) // the bucket fills
		conn := dial(t, n.Sites[0], address)
		defer conn.Close()
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		begin := time.Now()
		if _, err := io.CopyN(io.Discard, conn, 1500e3); err != nil {
			t.Fatal(err)
		}
		first := 8 * 1500e3 / time.Since(begin).Seconds()
		got := 8 * received(t, 2*time.Second, 2*time.Second, conn)
		t.Logf("%s at first, then %s", unit.Bits(first/8), unit.Bits(got/8))
		if first < 24e6 {
			return errors.New("the burst was not faster than the rate")
		}
		return within("bits/s after the burst", got, 8e6, 0.1)
	})
}

// A packet that would wait longer than the queue allows is dropped.
func TestQueue(t *testing.T) {
	tier.Slow(t, "measures links for seconds")
	n, r := up(t, link.Spec{Rate: 2e6, RTT: 20 * ms, Queue: 200 * ms, Congestion: "cubic"})
	conn := dial(t, n.Sites[0], serve(t, n, pour))
	again(t, 6, func() error {
		before := len(r.samples())
		received(t, 0, 4*time.Second, conn)
		most, dropped := 0.0, int64(0)
		for _, s := range r.samples()[before:] {
			most = max(most, s.ToClients.Wait.Max)
			dropped += s.ToClients.Dropped
		}
		t.Logf("waited at most %s, %d dropped", unit.Seconds(most), dropped)
		if most > 0.21 {
			t.Errorf("packets waited for %s in a queue of 200 ms", unit.Seconds(most))
		}
		if most < 0.18 || dropped == 0 {
			return errors.New("the queue was not full")
		}
		return nil
	})
}

// The sample of a second has the link's traffic.
func TestSamples(t *testing.T) {
	tier.Slow(t, "measures links for seconds")
	t.Parallel()
	n, r := up(t, link.Spec{Rate: 10e6, Congestion: "cubic"})
	conn := dial(t, n.Sites[0], serve(t, n, pour))
	again(t, 8, func() error {
		before := len(r.samples())
		got := received(t, time.Second, 2500*time.Millisecond, conn)
		all := r.samples()[before:]
		if len(all) < 3 {
			return errors.New("too few samples")
		}
		s := all[len(all)-1]
		t.Logf("%+v", s)
		if s.Link != "a" || s.Rate != 10e6 || s.Up != 10e6 || s.Down || s.ToClients.Late.P99 < 0 {
			t.Errorf("%+v", s)
		}
		if s.Time.Sub(s.Time.Round(time.Second)).Abs() > 100*time.Millisecond {
			return errors.New("the sample does not end at a whole second")
		}
		return errors.Join(within("bytes/s received", got, 10e6/8*1448/1500, 0.05), within("span", s.Seconds, 1, 0.05),
			within("bytes", float64(s.ToClients.Bytes)/s.Seconds, 10e6/8, 0.05), within("packets", float64(s.ToClients.Packets)/s.Seconds,
				10e6/8/1500, 0.05),
			within("busy", s.ToClients.Busy, 1, 0.05))
	})
}

// TCP connections survive a link that is down for a while, and the rate may be changed while they
// exist.
func TestOutageAndChange(t *testing.T) {
	tier.Slow(t, "measures links for seconds")
	t.Parallel()
	n, _ := up(t, link.Spec{Rate: 10e6})
	site := n.Sites[0]
	conn := dial(t, site, serve(t, n, pour))
	again(t, 8, func() error {
		return within("bits/s before", 8*received(t, 200*time.Millisecond, time.Second, conn), 10e6, 0.2)
	})
	require.NoError(t, site.SetDown(true))
	if got := received(t, 500*time.Millisecond, 1500*time.Millisecond, conn); got > 0 {
		t.Errorf("%s while the link is down", unit.Bits(got))
	}
	require.NoError(t, errors.Join(site.Change(link.Spec{Rate: 20e6}), site.SetDown(false)))
	again(t, 8, func() error {
		return within("bits/s after", 8*received(t, 3*time.Second, time.Second, conn), 20e6, 0.1)
	})
}

// Jitter spreads the delay and never puts packets out of order.
func TestJitter(t *testing.T) {
	tier.Slow(t, "measures links for seconds")
	n, _ := up(t, link.Spec{Rate: 10e6, RTT: 40 * ms, Jitter: 10 * ms})
	server, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(n.Service)})
	require.NoError(t, err)
	defer server.Close()
	var client net.Conn
	sp := n.Sites[0].over.(*spoke)
	require.NoError(t, sp.space.in(func() (err error) { client, err = net.Dial("udp4", server.LocalAddr().String()); return err }))
	defer client.Close()
	again(t, 6, func() error { return jittery(t, client, server) })
}

// jittery sends packets for two seconds. They must come in order, within the bounds of the delay, and use them.
func jittery(t *testing.T, client net.Conn, server *net.UDPConn) error {
	const packets = 2000
	begin := time.Now()
	var sender sync.WaitGroup
	defer sender.Wait()
	sender.Go(func() {
		b := make([]byte, 100)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for i := range packets {
			binary.BigEndian.PutUint64(b, uint64(i))
			binary.BigEndian.PutUint64(b[8:], uint64(time.Since(begin)))
			client.Write(b)
			<-tick.C
		}
	})
	b := make([]byte, 100)
	least, most, next := time.Hour, time.Duration(0), uint64(0)
	_ = server.SetReadDeadline(time.Now().Add(time.Minute))
	for next < packets {
		if _, err := io.ReadFull(packetReader{server}, b); err != nil {
			t.Fatal(err)
		}
		if got := binary.BigEndian.Uint64(b); got != next {
			t.Fatalf("packet %d came, %d was next", got, next)
		}
		next++
		d := time.Since(begin) - time.Duration(binary.BigEndian.Uint64(b[8:]))
		least, most = min(least, d), max(most, d)
	}
	t.Logf("%v to %v one way", least, most)
	if least < 10*time.Millisecond {
		t.Errorf("a delay of %v, want 10 to 30 ms", least)
	}
	if least > 14*time.Millisecond || most < 26*time.Millisecond {
		return errors.New("the delay did not swing as far as it should")
	}
	return nil
}

type packetReader struct{ *net.UDPConn }

func (r packetReader) Read(b []byte) (int, error) {
	n, _, err := r.ReadFromUDP(b)
	return n, err
}

// The data received over a lossy link with super-packets, of which parts are cut out, equals the
// sent data.
func TestBytesSurvive(t *testing.T) {
	tier.Slow(t, "measures links for seconds")
	for _, mtu := range []unit.Size{0, 576, 9000} {
		t.Run(mtu.String(), func(t *testing.T) { bytesSurvive(t, mtu) })
	}
}

func bytesSurvive(t *testing.T, mtu unit.Size) {
	n, _ := up(t, link.Spec{Rate: 1e9, RTT: 2 * ms, Loss: 0.001, Queue: ms, MTU: mtu, Congestion: "cubic"})
	const total = 20 << 20
	address := serve(t, n, func(c *net.TCPConn) {
		b := make([]byte, 1<<16)
		for at := 0; at < total; at += len(b) {
			for i := 0; i < len(b); i += 8 {
				binary.LittleEndian.PutUint64(b[i:], uint64(at+i)*0x9e3779b97f4a7c15)
			}
			if _, err := c.Write(b); err != nil {
				return
			}
		}
	})
	conn := dial(t, n.Sites[0], address)
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	b := make([]byte, 1<<16)
	for at := 0; at < total; at += len(b) {
		if _, err := io.ReadFull(conn, b); err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(b); i += 8 {
			if got := binary.LittleEndian.Uint64(b[i:]); got != uint64(at+i)*0x9e3779b97f4a7c15 {
				t.Fatalf("byte %d is wrong", at+i)
			}
		}
	}
}
