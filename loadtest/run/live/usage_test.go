package live

import (
	"testing"
	"time"

	"weir/loadtest/measure"
	"weir/monitor"
)

// The CPU of a step is the CPU of its hold, independent of its ramp and of the step before it, in
// the order in which samples arrive while a run goes on.
func TestBusyWhileHeld(t *testing.T) {
	begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(s float64) time.Time { return begin.Add(time.Duration(s * float64(time.Second))) }
	var b cpuUsage
	second := func(from, to float64, phase string) {
		b.interval(&measure.Interval{Start: at(from), Seconds: to - from, Phase: phase})
	}
	sample := func(end, server float64) { // of one second and 4 cores
		b.sample(&monitor.Sample{Time: at(end), Seconds: 1, Host: "h", Cores: 4, Procs: []monitor.Proc{{Role: "server", User: server}}})
	}
	if got := b.text(serverSide); got != "-" {
		t.Errorf("of nothing: %s", got)
	}
	second(0, 1, measure.Ramp)
	sample(1, 4) // the ramp takes all
	if got := b.text(serverSide); got != "100%" {
		t.Errorf("before anything is held: %s, want that of the last second", got)
	}
	second(1, 1.5, measure.Ramp)
	sample(2, 2) // before the interval that shows that half of it was held
	second(1.5, 2, measure.Measured)
	second(2, 3, measure.Measured)
	sample(3, 1)
	second(3, 3.5, measure.Measured)
	if got, want := b.share(serverSide), (0.5*2+1)/(1.5*4); got < want-1e-9 || got > want+1e-9 {
		t.Errorf("share %v, want %v", got, want)
	}
	if got := b.text(clientSide); got != "-" {
		t.Errorf("of clients that nobody watches: %s", got)
	}
	b.reset()
	second(3.5, 4, measure.Ramp)
	sample(4, 4) // half of it belongs to the step before
	second(4, 5, measure.Measured)
	sample(5, 0.4)
	if got, want := b.share(serverSide), 0.1; got < want-1e-9 || got > want+1e-9 {
		t.Errorf("share of the second step %v, want %v", got, want)
	}
	if n := len(b.pending); n != 0 {
		t.Errorf("%d samples are kept", n)
	}
}
