package monitor

import (
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func noTarget() netip.AddrPort { return netip.AddrPort{} }

func at(seconds float64) moment {
	return moment{time.Unix(1000, 0).Add(time.Duration(seconds * 1e9)), time.Duration(seconds * 1e9)}
}

func core(id int, mode CPU) coreTime { return coreTime{id: id, mode: mode} }

func disk(name string, read, write, ops int64, busy, queue float64) diskCount {
	return diskCount{name: name, read: read, write: write, ops: ops, busy: busy, queue: queue}
}

func nic(name string, received, sent, in, out, drops int64, speed float64) netCount {
	return netCount{name: name, received: received, sent: sent, packetsIn: in, packetsOut: out, drops: drops, speed: speed}
}

func TestSinceRates(t *testing.T) {
	p := &counters{at: at(10), cores: []coreTime{core(0, CPU{User: 5, Idle: 5}), core(1, CPU{Idle: 10})},
		disks: []diskCount{disk("sda", 1000, 2000, 10, 1, 1)},
		nets:  []netCount{nic("eth0", 100, 200, 1, 2, 0, 1e9)}, tcp: TCP{Retransmits: 5, Established: 9}, hasTCP: true}
	c := &counters{at: at(12), load: 0.5, cores: []coreTime{core(0, CPU{User: 6, Idle: 5.5, Steal: 0.5}), core(1, CPU{Idle: 11, IOWait: 1})},
		disks: []diskCount{disk("sda", 3000, 8000, 30, 2, 5)},
		nets:  []netCount{nic("eth0", 1100, 2200, 11, 22, 1, 1e9)}, tcp: TCP{Retransmits: 8, Established: 4}, hasTCP: true}
	want := &Sample{
		Time: c.at.wall, Seconds: 2, Cores: 2, Load: 0.5,
		CPU:   &CPU{User: 0.25, Idle: 0.375, Steal: 0.125, IOWait: 0.25},
		Core:  []float64{0.75, 0},
		Disks: []Disk{{"sda", 1000, 3000, 10, 2, 0.5}},
		Nets:  []Net{{"eth0", 1000, 2000, 10, 20, 1, 1e9}},
		TCP:   &TCP{Retransmits: 3, Established: 4},
	}
	if diff := cmp.Diff(want, c.since(p)); diff != "" {
		t.Error(diff)
	}
}

func TestSinceAfterRestartsAndWraps(t *testing.T) {
	p := &counters{at: at(0),
		// core 0: iowait falls a little; core 1 is off; core 3 is new
		cores: []coreTime{core(0, CPU{User: 100, Idle: 900, IOWait: 2}), core(1, CPU{Idle: 1000}), core(2, CPU{User: 500, Idle: 500})},
		disks: []diskCount{disk("sda", 1000, 1000, 10, wrap-0.25, wrap-0.5), disk("sdb", 9000, 0, 10, 100, 100)},
		nets:  []netCount{nic("eth0", 1000, 1000, 10, 10, 3, 0)}, tcp: TCP{Retransmits: 50}, hasTCP: true}
	c := &counters{at: at(1),
		cores: []coreTime{core(0, CPU{User: 100.5, Idle: 900.5, IOWait: 1.9}), core(2, CPU{User: 500.25, Idle: 500.25}), core(3, CPU{User: 7})},
		disks: []diskCount{disk("sda", 1000, 1000, 10, 0.25, 0.5), disk("sdb", 500, 0, 1, 0.5, 2), disk("sdc", 5, 5, 5, 5, 5)},
		nets:  []netCount{nic("eth0", 300, 400, 3, 4, 0, 0), nic("eth1", 5, 5, 5, 5, 5, 0)}, tcp: TCP{Retransmits: 2}, hasTCP: true}
	s := c.since(p)
	if diff := cmp.Diff(&CPU{User: 0.5, Idle: 0.5}, s.CPU); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]float64{0.5, 0.5, 0}, s.Core); diff != "" {
		t.Error(diff)
	}
	if len(s.Disks) != 1 || math.Abs(s.Disks[0].Busy-0.5) > 1e-6 || math.Abs(s.Disks[0].Queue-1) > 1e-6 {
		t.Errorf("a disk whose counters wrapped: %+v", s.Disks)
	}
	if len(s.Nets) != 0 || s.TCP != nil {
		t.Errorf("counters that began anew: %+v, %+v", s.Nets, s.TCP)
	}
	if diff := cmp.Diff([]string{"disk sdb", "interface eth0", "TCP"}, s.LeftOut); diff != "" {
		t.Error(diff)
	}
	next := &counters{at: at(2), cores: []coreTime{core(0, CPU{User: 1, Idle: 1})},
		nets: []netCount{nic("eth0", 350, 450, 4, 5, 1, 0), nic("eth1", 6, 6, 6, 6, 6, 0)}, tcp: TCP{Retransmits: 3}, hasTCP: true}
	s = next.since(c)
	if diff := cmp.Diff([]Net{{Name: "eth0", Received: 50, Sent: 50, PacketsIn: 1, PacketsOut: 1, Drops: 1},
		{Name: "eth1", Received: 1, Sent: 1, PacketsIn: 1, PacketsOut: 1, Drops: 1}}, s.Nets); diff != "" {
		t.Error(diff)
	}
	if s.CPU != nil || s.TCP == nil || s.TCP.Retransmits != 1 || !cmp.Equal(s.LeftOut, []string{"CPU"}) {
		t.Errorf("the second after that: %+v", s)
	}
}

// TestClockJumps: the span follows the clock that does not jump, and a remote
// host's clock only while it goes right.
func TestClockJumps(t *testing.T) {
	for _, c := range []struct {
		name            string
		mono            float64
		wall            time.Duration // how far the wall clock moved
		before, now     float64       // the host's own clock
		want            float64
		wantTimeAdvance time.Duration
	}{
		{"steady", 1, time.Second, 0, 0, 1, time.Second},
		{"wall clock set forward", 1, time.Hour, 0, 0, 1, time.Hour},
		{"wall clock set back", 1, -time.Hour, 0, 0, 1, -time.Hour},
		{"host's own clock", 1.4, time.Second, 5000.0, 5001.0, 1, time.Second},
		{"host's clock set", 1.4, time.Second, 5000.0, 9000.0, 1.4, time.Second},
		{"host's clock set back", 1.4, time.Second, 5000.0, 4000.0, 1.4, time.Second},
	} {
		start := time.Unix(1_000_000, 0)
		p := &counters{at: moment{start, 0}, clock: c.before}
		n := &counters{at: moment{start.Add(c.wall), time.Duration(c.mono * 1e9)}, clock: c.now}
		s := n.since(p)
		if math.Abs(s.Seconds-c.want) > 1e-9 || s.Time.Sub(start) != c.wantTimeAdvance {
			t.Errorf("%s: %v s until %v", c.name, s.Seconds, s.Time)
		}
	}
}

func TestUntilNext(t *testing.T) {
	base := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct{ past, want time.Duration }{
		{0, time.Second},
		{time.Millisecond, 999 * time.Millisecond},
		{900 * time.Millisecond, 100 * time.Millisecond},
		{999 * time.Millisecond, 1001 * time.Millisecond}, // woken a little early
	} {
		if got := untilNext(base.Add(c.past)); got != c.want {
			t.Errorf("%v past the second: %v, want %v", c.past, got, c.want)
		}
	}
}

// Loop devices are reported while they are used. Mounted images that are idle, of which machines
// have dozens, are not reported.
func TestLoopDevicesInUse(t *testing.T) {
	listed := func(used int64) []diskCount {
		return realDisks([]diskCount{{name: "loop0", ops: 10}, {name: "loop1", ops: 10 + used, read: 4096 * used}, {name: "loop2"},
			{name: "vda", ops: 5}, {name: "vda1", ops: 5}})
	}
	s := &Sample{Seconds: 1}
	s.disksSince(listed(3), listed(0))
	got := s.Disks
	if len(got) != 2 || got[0].Name != "loop1" || !got[0].Repeats() || got[0].Read != 3*4096 || got[1].Name != "vda" || got[1].Repeats() {
		t.Errorf("%+v", got)
	}
}
