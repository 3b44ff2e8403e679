package analysis

import (
	"testing"

	"weir/measure"
	"weir/monitor"
	"weir/results/resultstest"
	"weir/storage"
)

// checkedWrites is a run of writes whose checks read back, or have the server read
// of that for checksums, so many bytes for each byte of the load. The server's counters
// see them.
func checkedWrites(readBack, summed, served float64) resultstest.Service {
	s := resultstest.Typical()
	s.Clients, s.Duration = []int{8}, 6
	s.Interval = func(iv *measure.Interval) {
		iv.Kind = storage.Write
		iv.ReadBack, iv.Summed = int64(readBack*float64(iv.Moved)), int64(summed*float64(iv.Moved))
	}
	s.Sample = func(x *monitor.Sample) {
		for i := range x.Nets {
			x.Nets[i].Received, x.Nets[i].PacketsIn = int64(float64(x.Nets[i].Sent)*(1+readBack)), int64(float64(x.Nets[i].PacketsOut)*(1+readBack))
			x.Nets[i].Sent, x.Nets[i].PacketsOut = 0, 0
		}
		for i := range x.Procs {
			if p := &x.Procs[i]; p.Role == server {
				p.Read, p.Written = int64(float64(p.Written)*(1+served)), 0
			}
		}
	}
	return s
}

// What checks read back is no disagreement; bytes that nothing explains are.
func TestCheckTrafficIsKnown(t *testing.T) {
	for name, c := range map[string]struct {
		readBack, summed, served float64
		nets                     bool
		want                     string
	}{
		"nothing checked":                       {0, 0, 0, true, OK},
		"a third read back":                     {0.35, 0, 0.35, true, OK},
		"a third read of that for checksums":    {0, 0.35, 0.35, false, OK},
		"checksums that the server keeps":       {0, 0.35, 0, false, OK},
		"read more often of that for checksums": {0, 0.35, 0.8, false, Skipped},
		"a third that nothing explains":         {0, 0, 0.35, false, Fail},
		"a fifteenth that is not explained":     {0, 0, 0.07, false, Fail},
	} {
		s := checkedWrites(c.readBack, c.summed, c.served)
		if change := s.Sample; !c.nets {
			s.Sample = func(x *monitor.Sample) {
				change(x)
				x.Nets = nil
			}
		}
		if got := find(t, of(t, s), "both ends agree"); got.Status != c.want {
			t.Errorf("%s: %+v, want %s", name, got, c.want)
		}
	}
}

// An interface that the load does not pass through says nothing of it.
func TestInterfaceThatIsNotOnTheWay(t *testing.T) {
	s := resultstest.Typical()
	s.Clients = s.Clients[:4]
	s.Sample = func(x *monitor.Sample) {
		for i := range x.Procs {
			x.Procs[i].Written, x.Procs[i].Read = 0, 0
		}
		if len(x.Nets) > 0 { // others use both
			lo, eth := x.Nets[0], x.Nets[0]
			lo.Name = loopback
			lo.Sent, eth.Sent, eth.Received = 2*lo.Sent, eth.Sent/50, 0
			x.Nets = []monitor.Net{lo, eth}
		}
	}
	if got := find(t, of(t, s), "both ends agree"); got.Status != Skipped || len(got.notes) != 1 {
		t.Errorf("%+v", got)
	}
}
