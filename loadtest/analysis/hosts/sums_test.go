package hosts

import (
	"testing"

	"weir/monitor"
)

// Samples do not contain loop devices while these are idle.
func TestDisksThatAreSeldomInSamples(t *testing.T) {
	h := &hostSum{HostFigure: HostFigure{Host: "store"}}
	for i := range 10 {
		s := &monitor.Sample{Host: "store", Seconds: 1, Disks: []monitor.Disk{{Name: "vda", Busy: 0.5, Queue: 1}}}
		if i == 3 || i == 9 {
			s.Disks = append(s.Disks, monitor.Disk{Name: "loop1", Busy: 1, Read: 100, Queue: 20})
		}
		h.add(s, 1)
	}
	if f := h.figure(); f.Disk != "vda" || *f.DiskBusy != 0.5 {
		t.Errorf("the busiest disk is %s, busy for %v of the time", f.Disk, *f.DiskBusy)
	}
	loop := h.disks["loop1"]
	v, ok := loop.spread.interval()
	if *loop.busy.Value() != 0.2 || loop.read.Or0() != 20 || *loop.queue.Value() != 4 || !ok || v.Mean != 0.2 {
		t.Errorf("loop1 is %v busy, reads %v bytes/s, queue %v, interval %v", *loop.busy.Value(), loop.read.Or0(), *loop.queue.Value(), v)
	}
}

// Values that a sample leaves out are unknown, not zero, and are counted.
func TestLeftOutIsUnknown(t *testing.T) {
	h := &hostSum{HostFigure: HostFigure{Host: "store"}}
	for i := range 10 {
		s := &monitor.Sample{Host: "store", Seconds: 1, Disks: []monitor.Disk{{Name: "vda", Busy: 1, Read: 100, Queue: 5}},
			Nets: []monitor.Net{{Name: "eth0", Sent: 100}}}
		if i%2 == 1 {
			s.Disks, s.Nets, s.LeftOut = nil, nil, []string{"disk vda", "interface eth0"}
		}
		h.add(s, 1)
	}
	if f := h.figure(); *f.DiskBusy != 1 || f.DiskRead != 100 || f.NetSent != 100 {
		t.Errorf("disk %v busy, reads %v, sent %v", *f.DiskBusy, f.DiskRead, f.NetSent)
	}
}
