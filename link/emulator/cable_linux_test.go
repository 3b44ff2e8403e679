package emulator

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/require"
	"weir/link"
)

// pairs returns a cable whose devices are sockets, and their other ends.
func pairs(t testing.TB, s link.Spec) (c *cable, service, site int) {
	t.Helper()
	return pairsOver(t, s, nil)
}

// pairsOver returns a cable with a trunk. trunk may be nil.
func pairsOver(t testing.TB, s link.Spec, trunk *link.Spec) (c *cable, service, site int) {
	t.Helper()
	var far, near [2]int
	for i := range 2 {
		p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		require.NoError(t, err)
		t.Cleanup(func() { unix.Close(p[0]); unix.Close(p[1]) })
		near[i], far[i] = p[0], p[1]
	}
	var over *orderLink
	if trunk != nil {
		over = &orderLink{Name: "line", Setting: setting{Spec: trunk.Complete()}, Seed: 2}
	}
	c, err := newCable([]orderLink{{Name: "x", Setting: setting{Spec: s}, Seed: 1}}, [][2]int{near}, over)
	require.NoError(t, err)
	return c, far[0], far[1]
}

// A packet costs no memory, in either direction, lost or not.
func TestNothingIsAllocated(t *testing.T) {
	c, service, site := pairs(t, link.Spec{Rate: 1e9, Loss: 0.02}.Complete())
	carriesWithoutMemory(t, c, service, site)
}

// carriesWithoutMemory sends packets over a cable both ways until each link has carried enough of
// them: how many pass in a round depends on the machine's speed.
func carriesWithoutMemory(t *testing.T, c *cable, service, site int) {
	t.Helper()
	defer unix.Close(c.stop)
	b := beat{base: monotonic()}
	b.aim(0)
	fds := c.polled()
	packet, out := superPacket(20*1448), make([]byte, superSize)
	for _, fd := range []int{service, site} {
		require.NoError(t, unix.SetNonblock(fd, true))
	}
	round := func() {
		unix.Write(service, packet)
		unix.Write(site, packet[:virtioSize+52])
		for range 3 {
			c.wake() // so that it does not wait for packets
			if _, err := c.round(&b, fds); err != nil {
				t.Fatal(err)
			}
			unix.Read(site, out)
			unix.Read(service, out)
		}
	}
	enough := func() bool {
		return !slices.ContainsFunc(c.all(), func(l *line) bool {
			return l.ways[toClients].tally.Packets < 100 || l.ways[fromClients].tally.Packets < 10
		})
	}
	for until := time.Now().Add(time.Minute); !enough(); {
		if got := testing.AllocsPerRun(2000, round); got != 0 {
			t.Fatalf("%g allocations for two packets", got)
		}
		if time.Now().After(until) {
			t.Fatal("not even 100 packets passed each link within a minute")
		}
	}
}

// A cable ends on request, without a wait for its last sample.
func TestCableEnds(t *testing.T) {
	c, _, _ := pairs(t, link.Spec{RTT: ms}.Complete())
	done := make(chan error)
	go func() { done <- c.run() }()
	c.change("x", setting{Spec: link.Spec{Rate: 1e6}})
	c.end()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it goes on")
	}
}

// The cost of the emulation of a packet, system calls on sockets included.
func BenchmarkPacket(b *testing.B) {
	for name, payload := range map[string]int{"packet": 1448, "super": 44 * 1448} {
		b.Run(name, func(b *testing.B) {
			c, service, site := pairs(b, link.Spec{}.Complete())
			defer unix.Close(c.stop)
			bt := beat{base: monotonic(), next: 1 << 62}
			fds := c.polled()
			packet, out := superPacket(payload), make([]byte, superSize)
			b.ReportAllocs()
			for b.Loop() {
				unix.Write(service, packet)
				c.round(&bt, fds)
				c.deliver(&bt, &bt.looked)
				bt.looked = bt.now()
				c.deliver(&bt, &bt.looked)
				unix.Read(site, out)
			}
		})
	}
}
