package hosts

import (
	"math"
	"path/filepath"
	"testing"
	"time"

	"weir/internal/require"
	"weir/loadtest/results"
	"weir/loadtest/results/resultstest"
	"weir/monitor"
)

// A Look and the sums of a whole step must have the same figures for one sample.
func TestLookIsASumOfOneSample(t *testing.T) {
	seen := 0
	samples := []*monitor.Sample{
		{Time: time.Unix(1, 0), Seconds: 1},
		{Time: time.Unix(1, 0), CPU: &monitor.CPU{User: 0.5}, Procs: []monitor.Proc{{Role: Server, User: 1}}}, // no time passed
		{Time: time.Unix(1, 0), Seconds: 2, Procs: []monitor.Proc{{Role: "both", User: 1, RSS: 5}, {Role: Client, User: 1, RSS: 7},
			{Role: Client, System: 2, RSS: 8}}},
		{Time: time.Unix(1, 0), Seconds: 2, Disks: []monitor.Disk{{Name: "b", Busy: 0.1, Read: 5}, {Name: "a", Busy: 0.4, Write: 6},
			{Name: "c"}}},
		{Time: time.Unix(1, 0), Seconds: 2, Disks: []monitor.Disk{{Name: "b"}}, Nets: []monitor.Net{{Name: "lo", Sent: 10, Received: 10},
			{Name: "e", Sent: 3, Received: 30}}},
		{Time: time.Unix(1, 0), Seconds: 2, Service: &monitor.Service{User: 1}, Nets: []monitor.Net{{Name: "e", Sent: 3}},
			Core: []float64{0.3, 0.9, 0.1}},
		{Time: time.Unix(1, 0), Seconds: 4, TCP: &monitor.TCP{Retransmits: 9}, Memory: &monitor.Memory{Available: 77}},
	}
	dir := filepath.Join(t.TempDir(), "run")
	require.NoError(t, resultstest.Typical().Write(dir))
	run, err := results.Open(dir)
	require.NoError(t, err)
	for s, err := range run.Samples() {
		require.NoError(t, err)
		samples = append(samples, s)
	}
	for _, s := range samples {
		one := hostSum{}
		one.add(s, 1)
		f, k := one.figure(), LookAt(s)
		for name, pair := range map[string][2]float64{
			"cpu": {unknown(f.CPU), k.Cpu}, "iowait": {unknown(f.IOWait), k.Iowait}, "steal": {unknown(f.Steal), k.Steal},
			"core":   {unknown(f.BusiestCore), k.Core},
			"server": {unknown(f.ServerCores), k.ServerCores}, "client": {unknown(f.ClientCores), k.ClientCores},
			"disk": {unknown(f.DiskBusy), k.DiskBusy},
			"read": {f.DiskRead, k.DiskRead}, "write": {f.DiskWrite, k.DiskWrite}, "sent": {f.NetSent, max(k.Sent, k.Looped)},
			"received": {f.NetReceived, max(k.Received, k.Back)}, "retransmits": {f.Retransmits, k.Retransmits},
			"server memory": {float64(f.ServerRSS), float64(k.ServerRSS)}, "client memory": {float64(f.ClientRSS), float64(k.ClientRSS)},
			"available": {float64(f.MemoryAvailable), float64(k.Available)},
		} {
			seen++
			if pair[0] != pair[1] && !(math.IsNaN(pair[0]) && math.IsNaN(pair[1])) {
				t.Errorf("%s: %v by the sum, %v by the look at %+v", name, pair[0], pair[1], s)
			}
		}
	}
	if seen < 1000 {
		t.Errorf("only %d figures were compared", seen)
	}
}

func unknown(p *float64) float64 {
	if p == nil {
		return math.NaN()
	}
	return *p
}
