package analysis

import (
	"bytes"
	"encoding/csv"
	"math"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/loadtest/measure"
	"weir/loadtest/results/resultstest"
	"weir/monitor"
)

// A look and the sums of a whole step must say the same of one sample.
func TestLookIsASumOfOneSample(t *testing.T) {
	seen := 0
	samples := []*monitor.Sample{
		{Time: time.Unix(1, 0), Seconds: 1},
		{Time: time.Unix(1, 0), CPU: &monitor.CPU{User: 0.5}, Procs: []monitor.Proc{{Role: server, User: 1}}}, // no time passed
		{Time: time.Unix(1, 0), Seconds: 2, Procs: []monitor.Proc{{Role: "both", User: 1, RSS: 5}, {Role: client, User: 1, RSS: 7},
			{Role: client, System: 2, RSS: 8}}},
		{Time: time.Unix(1, 0), Seconds: 2, Disks: []monitor.Disk{{Name: "b", Busy: 0.1, Read: 5}, {Name: "a", Busy: 0.4, Write: 6},
			{Name: "c"}}},
		{Time: time.Unix(1, 0), Seconds: 2, Disks: []monitor.Disk{{Name: "b"}}, Nets: []monitor.Net{{Name: "lo", Sent: 10, Received: 10},
			{Name: "e", Sent: 3, Received: 30}}},
		{Time: time.Unix(1, 0), Seconds: 2, Service: &monitor.Service{User: 1}, Nets: []monitor.Net{{Name: "e", Sent: 3}},
			Core: []float64{0.3, 0.9, 0.1}},
		{Time: time.Unix(1, 0), Seconds: 4, TCP: &monitor.TCP{Retransmits: 9}, Memory: &monitor.Memory{Available: 77}},
	}
	for s, err := range written(t, resultstest.Typical()).Samples() {
		require.NoError(t, err)
		samples = append(samples, s)
	}
	for _, s := range samples {
		one := hostSum{}
		one.add(s, 1)
		f, k := one.figure(), lookAt(s)
		for name, pair := range map[string][2]float64{
			"cpu": {unknown(f.CPU), k.cpu}, "iowait": {unknown(f.IOWait), k.iowait}, "steal": {unknown(f.Steal), k.steal},
			"core":   {unknown(f.BusiestCore), k.core},
			"server": {unknown(f.ServerCores), k.serverCores}, "client": {unknown(f.ClientCores), k.clientCores},
			"disk": {unknown(f.DiskBusy), k.diskBusy},
			"read": {f.DiskRead, k.diskRead}, "write": {f.DiskWrite, k.diskWrite}, "sent": {f.NetSent, max(k.sent, k.looped)},
			"received": {f.NetReceived, max(k.received, k.back)}, "retransmits": {f.Retransmits, k.retransmits},
			"server memory": {float64(f.ServerRSS), float64(k.serverRSS)}, "client memory": {float64(f.ClientRSS), float64(k.clientRSS)},
			"available": {float64(f.MemoryAvailable), float64(k.available)},
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

// Cells that hold anything come back from encoding/csv as they were.
func TestRowsAreCSV(t *testing.T) {
	want := []string{"plain", "host-1.example.org:1094", "", "a,b", `a"b`, " a", "a\nb", `\.`, "é", "'=x", "a;b", "{}"}
	var out []byte
	r := (*record)(&out)
	r.int(-5)
	for _, s := range want {
		r.text(s)
	}
	r.float(math.NaN())
	r.float(1e-7)
	r.end()
	all, err := csv.NewReader(bytes.NewReader(out)).ReadAll()
	if err != nil || len(all) != 1 {
		t.Fatalf("%q: %v, %v", out, all, err)
	}
	if got, want := strings.Join(all[0], "|"), "-5|"+strings.Join(want, "|")+"||1e-07"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A line of a table takes no memory of its own.
func TestRowsMakeNoGarbage(t *testing.T) {
	iv := &measure.Interval{Start: resultstest.Start(), Seconds: 1, Step: 1, Phase: measure.Measured, Clients: 4,
		Server: "store01.example.org:1094", Sum: measure.Sum{Done: 7}}
	for i := range 50 {
		iv.Latency.Record(time.Duration(i) * time.Millisecond)
	}
	s := &monitor.Sample{Time: resultstest.Start(), Seconds: 1, Host: "store01.example.org", Role: server, CPU: &monitor.CPU{User: 1. / 3},
		Core: []float64{0.1, 0.2}}
	out := make([]byte, 0, 4096)
	for name, f := range map[string]func(){
		"interval": func() { _ = intervalRow(out, iv) },
		"host":     func() { _ = hostRow(out, s) },
	} {
		if n := testing.AllocsPerRun(50, f); n > 0 {
			t.Errorf("%s: %v allocations a row", name, n)
		}
	}
}
