package analysis

import (
	"testing"

	"weir/monitor"
)

// Loop devices are in no sample while they do nothing.
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
	if *loop.busy.value() != 0.2 || loop.read.or0() != 20 || *loop.queue.value() != 4 || !ok || v.mean != 0.2 {
		t.Errorf("loop1 is %v busy, reads %v bytes/s, queue %v, interval %v", *loop.busy.value(), loop.read.or0(), *loop.queue.value(), v)
	}
}
