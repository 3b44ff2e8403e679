package analysis

import (
	"testing"

	"weir/loadtest/analysis/hosts"
	"weir/loadtest/measure"
	"weir/loadtest/results/resultstest"
	"weir/monitor"
	"weir/storage"
)

// checkedWrites returns a run of writes whose checks read back readBack bytes for each byte of the
// load, or let the server read summed bytes for checksums. The server's counters include them: the
// counter of its process includes served, the counter of its interface carried.
func checkedWrites(readBack, summed, served, carried float64) resultstest.Service {
	s := resultstest.Typical()
	s.Clients, s.Duration = []int{8}, 6
	s.Interval = func(iv *measure.Interval) {
		iv.Kind = storage.Write
		iv.ReadBack, iv.Summed = int64(readBack*float64(iv.Moved)), int64(summed*float64(iv.Moved))
	}
	s.Sample = func(x *monitor.Sample) {
		for i := range x.Nets {
			x.Nets[i].Received, x.Nets[i].PacketsIn = int64(float64(x.Nets[i].Sent)*(1+carried)), int64(float64(x.Nets[i].PacketsOut)*(1+carried))
			x.Nets[i].Sent, x.Nets[i].PacketsOut = 0, 0
		}
		if carried < 0 {
			x.Nets = nil
		}
		for i := range x.Procs {
			if p := &x.Procs[i]; p.Role == hosts.Server {
				p.Read, p.Written = int64(float64(p.Written)*(1+served)), 0
			}
		}
	}
	return s
}

// TestCheckTrafficIsKnown checks that bytes that checks read back are not a disagreement, but
// unexplained bytes are, if an interface carried them as well.
func TestCheckTrafficIsKnown(t *testing.T) {
	const unseen = -1
	for name, c := range map[string]struct {
		readBack, summed, served, carried float64
		want                              string
	}{
		"nothing checked":                       {0, 0, 0, 0, OK},
		"a third read back":                     {0.35, 0, 0.35, 0.35, OK},
		"a third read of that for checksums":    {0, 0.35, 0.35, unseen, OK},
		"checksums that the server keeps":       {0, 0.35, 0, unseen, OK},
		"read more often of that for checksums": {0, 0.35, 0.8, unseen, Skipped},
		"a third that nothing explains":         {0, 0, 0.35, 0.35, Fail},
		"a fifteenth that is not explained":     {0, 0, 0.07, 0.07, Fail},
		"a third that may be of files":          {0, 0, 0.35, unseen, Skipped},
		"a third that is of files":              {0, 0, 0.35, 0, OK},
	} {
		if got := find(t, of(t, checkedWrites(c.readBack, c.summed, c.served, c.carried)), "both ends agree"); got.Status != c.want {
			t.Errorf("%s: %+v, want %s", name, got, c.want)
		}
	}
}

// TestProcessThatWritesMore checks that a server that also writes logs, or copies on disk, is no
// evidence for or against the clients, with any traffic of other programs.
func TestProcessThatWritesMore(t *testing.T) {
	for _, more := range []float64{0.053, 0.6, 14} {
		for _, others := range []float64{0, 0.2, 0.9, 3, 20, 100} {
			s := resultstest.Typical()
			s.Clients, s.Duration = []int{8}, 6
			s.Sample = func(x *monitor.Sample) {
				for i := range x.Nets {
					n := &x.Nets[i]
					n.Name, n.Sent = hosts.Loopback, n.Sent-14*n.PacketsOut+int64(others*float64(n.Sent))
				}
				for i := range x.Procs {
					if p := &x.Procs[i]; p.Role == hosts.Server {
						p.Written = int64(float64(p.Written) * (1 + more))
					}
				}
			}
			f, want := of(t, s), Skipped
			if others == 0 {
				want = OK
			}
			if got := find(t, f, "both ends agree"); got.Status != want || f.Validity.Status != Valid {
				t.Errorf("a process wrote %g more, others %g: %s, %+v", more, others, f.Validity.Status, got)
			}
		}
	}
}

// TestInterfaceThatIsNotOnTheWay checks that an interface outside of the path of the load is
// ignored.
func TestInterfaceThatIsNotOnTheWay(t *testing.T) {
	s := resultstest.Typical()
	s.Clients = s.Clients[:4]
	s.Sample = func(x *monitor.Sample) {
		for i := range x.Procs {
			x.Procs[i].Written, x.Procs[i].Read = 0, 0
		}
		if len(x.Nets) > 0 { // others use the two interfaces
			lo, eth := x.Nets[0], x.Nets[0]
			lo.Name = hosts.Loopback
			lo.Sent, eth.Sent, eth.Received = 2*lo.Sent, eth.Sent/50, 0
			x.Nets = []monitor.Net{lo, eth}
		}
	}
	f := of(t, s)
	if got := find(t, f, "both ends agree"); got.Status != Skipped || !noted(f, "both ends agree") {
		t.Errorf("%+v", got)
	}
}
