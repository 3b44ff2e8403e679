package hosts

import (
	"math"
	"slices"
	"testing"

	"weir/monitor"
)

// A long series of a host keeps its mean when points are joined.
func TestHostSeriesIsJoined(t *testing.T) {
	h := &HostSeries{}
	sum, known := 0.0, 0.0
	const n = 100_000
	for i := range n {
		p := HostPoint{At: float64(i) + 0.3, Seconds: 1, CPU: float64(i%7) / 7, User: -1, DiskBusy: -1}
		if i%3 == 0 {
			p.DiskBusy = 0.5
		}
		sum += p.CPU
		h.add(p)
	}
	if len(h.Points) > mostHostPoints || len(h.Points) < mostHostPoints/2 || h.last != n-0.7 {
		t.Errorf("%d points, the last at %g", len(h.Points), h.last)
	}
	got, seconds, last := 0.0, 0.0, -1.0
	for _, p := range h.Points {
		got, seconds, known = got+p.CPU*p.Seconds, seconds+p.Seconds, known+p.DiskBusy
		if p.At <= last || p.User != -1 {
			t.Fatalf("point at %g after %g: %+v", p.At, last, p)
		}
		last = p.At
	}
	if math.Abs(got-sum) > 1e-6*sum || seconds != n || math.Abs(known/float64(len(h.Points))-0.5) > 1e-9 {
		t.Errorf("mean %g, want %g; %g seconds; disk %g", got/n, sum/n, seconds, known/float64(len(h.Points)))
	}
}

func TestProgramsAreListedOnce(t *testing.T) {
	w := &Watched{byProgram: map[Program]bool{}}
	for range 3 {
		for _, version := range []string{"v5.7", "v5.6"} {
			w.Program(&monitor.Sample{Host: "ds1:1094", Service: &monitor.Service{Program: "xrootd", Version: version, Kind: monitor.DataServer}})
		}
		w.Program(&monitor.Sample{Host: "ds2"})
	}
	want := []Program{{"ds1:1094", monitor.DataServer, "xrootd", "v5.6"}, {"ds1:1094", monitor.DataServer, "xrootd", "v5.7"}}
	if got := w.Programs(); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}
