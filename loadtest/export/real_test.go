package export_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/analysis"
	"weir/loadtest/export"
	"weir/loadtest/export/exporttest"
	"weir/loadtest/measure"
	"weir/loadtest/results/resultstest"
	"weir/monitor"
	"weir/storage"
)

// weird is a name that must not confuse any encoder.
const weird = "a,b=c \"d\" \\ {e}\nf:1"

// made returns a run of two data servers, one with a weird name, and failures.
func made(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	s := resultstest.Typical()
	s.Clients, s.Duration = []int{1, 4, 16, 64}, 4
	s.More = func(iv *measure.Interval) []*measure.Interval {
		other := *iv
		other.Server, other.Moved, other.Done = weird, 1000, 2
		other.Failed = map[storage.Class]int64{storage.NotFound: 3, storage.Timeout: 1}
		other.Wrong = 1
		other.Latency = measure.Histogram{}
		other.Latency.Record(70 * time.Millisecond)
		other.Latency.Record(7 * time.Second)
		return []*measure.Interval{&other}
	}
	s.Sample = func(v *monitor.Sample) { v.Disks = []monitor.Disk{{Name: weird, Read: 1e6, Busy: 0.25}} }
	require.NoError(t, s.Write(dir))
	return dir
}

// finished sends the run in dir and waits for the end of the transmission.
func finished(t testing.TB, dir string, receiver export.Receiver, o export.Options) export.Report {
	t.Helper()
	s, err := export.Send(t.Context(), dir, receiver, o)
	require.NoError(t, err)
	return s.Finish(time.Minute, 0)
}

func remoteTo(t testing.TB, address string) export.Receiver {
	t.Helper()
	receiver, err := export.RemoteWrite(address, storage.Auth{})
	require.NoError(t, err)
	return receiver
}

func TestRemoteWriteToPrometheus(t *testing.T) {
	prom := labtest.Start(t, lab.PrometheusConfig{})
	dir := made(t)
	r := finished(t, dir, remoteTo(t, prom.URLs["write"]), export.Options{})
	if r.Refused+r.Left > 0 || r.Sent == 0 || r.Err != nil {
		t.Fatalf("%+v", r)
	}
	exporttest.Prometheus(t, prom.URL, exporttest.TruthOf(t, dir))
	// The last value of a gauge does not persist after its series has ended.
	end := exporttest.TruthOf(t, dir).End
	for q, want := range map[string]int{"weir_clients": 1, "weir_latency_p99_seconds": 1, "weir_validity == 1": 1} {
		if n := len(exporttest.Ask(t, prom.URL, q, "none", end)); n != want {
			t.Errorf("%s: %d values at the end", q, n)
		}
		if n := len(exporttest.Ask(t, prom.URL, q, "none", end.Add(5*time.Second))); n != 0 {
			t.Errorf("%s: %d values after the end", q, n)
		}
	}
	// Prometheus rejects values that are older than its newest value of a series.
	r = finished(t, dir, remoteTo(t, prom.URLs["write"]), export.Options{})
	if r.Sent > 0 || r.Left > 0 || !strings.Contains(r.Reason, "400 Bad Request: out of order") {
		t.Errorf("the same once more: %+v", r)
	}
}

func TestBlocksOfPrometheus(t *testing.T) {
	labtest.Need(t, "promtool")
	dir := made(t)
	text := filepath.Join(t.TempDir(), "run.om")
	out, err := os.Create(text)
	require.NoError(t, err)
	require.NoError(t, errors.Join(export.OpenMetrics(out, dir, analysis.Analyze), out.Close()))
	data := filepath.Join(t.TempDir(), "data")
	said, err := exec.CommandContext(t.Context(), "promtool", "tsdb", "create-blocks-from", "openmetrics", text, data).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	prom := labtest.Start(t, lab.PrometheusConfig{Blocks: data})
	exporttest.Prometheus(t, prom.URL, exporttest.TruthOf(t, dir))
}

func TestInfluxDB(t *testing.T) {
	db := labtest.Start(t, lab.InfluxConfig{})
	exporttest.NewDatabase(t, db.URL, "weir")
	receiver, err := export.Influx(db.URL+"/write?db=weir", storage.Auth{})
	require.NoError(t, err)
	dir := made(t)
	r := finished(t, dir, receiver, export.Options{})
	if r.Refused+r.Left > 0 || r.Sent == 0 || r.Err != nil {
		t.Fatalf("%+v", r)
	}
	exporttest.InfluxDB(t, db.URL, exporttest.TruthOf(t, dir))
}
