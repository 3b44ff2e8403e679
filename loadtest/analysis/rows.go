package analysis

import (
	"encoding/csv"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"weir/loadtest/analysis/hosts"
	"weir/loadtest/measure"
	"weir/monitor"
	"weir/storage"
)

// A record is a line of a table under construction, in the format of encoding/csv.
type record []byte

func (r *record) sep() {
	if n := len(*r); n > 0 && (*r)[n-1] != '\n' {
		*r = append(*r, ',')
	}
}

// float adds x with all its digits, or an empty cell if x is NaN, which means unknown.
func (r *record) float(x float64) {
	r.sep()
	if !math.IsNaN(x) {
		*r = strconv.AppendFloat(*r, x, 'g', -1, 64)
	}
}

func (r *record) int(n int64) {
	r.sep()
	*r = strconv.AppendInt(*r, n, 10)
}

func (r *record) time(t time.Time) {
	r.sep()
	*r = t.UTC().AppendFormat(*r, time.RFC3339Nano)
}

// text adds s, in quotes if it needs them. It must not be used for the first cell of a line, as it
// may be empty.
func (r *record) text(s string) {
	*r = append(*r, ',')
	s = text(s)
	for i := range len(s) {
		if c := s[i]; c < '-' || c > 'z' || c == '\\' { // letters, digits, host names
			*r = append(*r, quoted(s)...)
			return
		}
	}
	*r = append(*r, s...)
}

// quoted returns a cell as encoding/csv writes it.
func quoted(s string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write([]string{s, ""}) // into memory
	w.Flush()
	return strings.TrimSuffix(b.String(), ",\n")
}

func (r *record) end() { *r = append(*r, '\n') }

// table writes the header of a table. The function write adds rows. If w is nil, nothing is
// written.
func table(w io.Writer, names []string) (write func(row []byte) error, err error) {
	if w == nil {
		return func([]byte) error { return nil }, nil
	}
	_, err = io.WriteString(w, strings.Join(names, ",")+"\n")
	return func(row []byte) error {
		_, err := w.Write(row)
		return err
	}, err
}

// intervalTable writes intervals.jsonl as a table: histograms as counts and quantiles, errors in
// one column per class.
func intervalTable(w io.Writer) (render func([]byte, *measure.Interval) []byte, write func([]byte) error, err error) {
	names := []string{"start", "duration_seconds", "step", "phase", "clients", "kind", "server", "population", "moved_bytes",
		"discarded_bytes", "wire_bytes", "begun", "done", "retried", "verified", "wrong", "encoded", "sessions", "missed",
		"latency_p50_seconds", "latency_p99_seconds", "latency_max_seconds",
		"first_byte_p50_seconds", "first_byte_p99_seconds", "late_p99_seconds",
		"connect_p50_seconds", "connect_p99_seconds", "tls_handshake_p50_seconds", "tls_handshake_p99_seconds",
		"redirect_p50_seconds", "redirect_p99_seconds", "tls_handshakes", "tls_resumed", "waits", "waited_seconds", "reopened", "signed",
		"jobs_running", "jobs_begun", "jobs_done", "jobs_failed", "jobs_crashed", "events", "used_bytes", "staged_bytes",
		"output_files", "output_bytes", "output_seconds", "compute_seconds",
		"client_cpu_seconds"}
	for class := storage.None + 1; class < storage.Classes; class++ {
		names = append(names, "failed_"+strings.ReplaceAll(class.String(), " ", "_"))
	}
	if write, err = table(w, names); w == nil || err != nil {
		return nil, write, err
	}
	return intervalRow, write, nil
}

func intervalRow(out []byte, iv *measure.Interval) []byte {
	r := (*record)(&out)
	r.time(iv.Start)
	r.float(iv.Seconds)
	r.int(int64(iv.Step))
	r.text(iv.Phase)
	r.float(iv.Clients)
	r.text(iv.Kind.String())
	r.text(iv.Server)
	r.text(iv.Population)
	for _, n := range [...]int64{iv.Moved, iv.Discarded, iv.Wire, iv.Begun, iv.Done, iv.Retried, iv.Verified, iv.Wrong, iv.Encoded,
		iv.Sessions, iv.Missed} {
		r.int(n)
	}
	for _, x := range [...]float64{iv.Latency.Quantile(0.5), iv.Latency.Quantile(0.99), iv.Latency.Max(), iv.FirstByte.Quantile(0.5),
		iv.FirstByte.Quantile(0.99), iv.Late.Quantile(0.99), iv.Connect.Quantile(0.5), iv.Connect.Quantile(0.99),
		iv.Handshake.Quantile(0.5), iv.Handshake.Quantile(0.99), iv.Redirect.Quantile(0.5), iv.Redirect.Quantile(0.99)} {
		r.float(x)
	}
	r.int(iv.Handshakes)
	r.int(iv.Resumed)
	r.int(iv.Waits)
	r.float(iv.Waited)
	r.int(iv.Reopened)
	r.int(iv.Signed)
	r.float(iv.Running)
	for _, n := range [...]int64{iv.Started, iv.Ended, iv.JobsFailed, iv.Crashed, iv.Events, iv.Used, iv.Staged, iv.Outputs, iv.Output} {
		r.int(n)
	}
	r.float(iv.OutputTime)
	r.float(iv.Compute)
	r.float(iv.CPU)
	for class := storage.None + 1; class < storage.Classes; class++ {
		r.int(iv.Failed[class])
	}
	r.end()
	return out
}

// hostTable writes hosts.jsonl as a table, one line per sample: sums over disks and interfaces, and
// the CPU of the processes of both sides.
func hostTable(w io.Writer) (render func([]byte, *monitor.Sample) []byte, write func([]byte) error, err error) {
	write, err = table(w, []string{"time", "duration_seconds", "host", "role", "cores", "cpu_busy_share", "cpu_user_share", "cpu_system_share",
		"cpu_iowait_share", "cpu_steal_share", "busiest_core_share", "load1", "memory_available_bytes", "server_cpu_cores", "client_cpu_cores",
		"server_resident_bytes", "client_resident_bytes", "busiest_disk_share", "disk_read_bytes_per_second", "disk_write_bytes_per_second",
		"net_received_bytes_per_second", "net_sent_bytes_per_second", "retransmitted_segments_per_second", "cost_cpu_seconds", "error"})
	if w == nil || err != nil {
		return nil, write, err
	}
	return hostRow, write, nil
}

func hostRow(out []byte, s *monitor.Sample) []byte {
	r, k := (*record)(&out), hosts.LookAt(s)
	user, system := math.NaN(), math.NaN()
	if s.CPU != nil {
		user, system = s.CPU.User, s.CPU.System
	}
	r.time(s.Time)
	r.float(s.Seconds)
	r.text(s.Host)
	r.text(string(s.Role))
	r.int(int64(s.Cores))
	for _, x := range [...]float64{k.Cpu, user, system, k.Iowait, k.Steal, k.Core, s.Load} {
		r.float(x)
	}
	r.int(k.Available)
	r.float(k.ServerCores)
	r.float(k.ClientCores)
	r.int(k.ServerRSS)
	r.int(k.ClientRSS)
	for _, x := range [...]float64{k.DiskBusy, k.DiskRead, k.DiskWrite, max(k.Received, k.Back), max(k.Sent, k.Looped),
		k.Retransmits, s.Cost} {
		r.float(x)
	}
	r.text(s.Error)
	r.end()
	return out
}
