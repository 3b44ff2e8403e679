package analysis

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/results"
)

// WriteFindings writes findings.json into dir, completely or not at all.
func WriteFindings(dir string, f *Findings) error {
	return results.WriteFile(dir, results.FindingsFile, func(w io.Writer) error { return JSON(w, f) })
}

// JSON writes v, such as Findings, in the format of the result files.
func JSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Write calls WriteTo with the folder of the run.
func Write(run *results.Run) (f *Findings, s *Series, written func() error, err error) {
	return WriteTo(run.Dir, run)
}

// WriteTo analyzes run as AnalyzeWithSeries does and writes findings.json, curve.csv,
// intervals.csv and hosts.csv into the folder dir; if several servers shared the load, also
// backends.csv; of a data challenge, also challenge.csv and challenge-minutes.csv. It writes each
// file completely or not at all. The run is read only once. The files are written while the caller
// uses f and s, without changing them: written, which the caller must call if err is nil, waits
// until the files are on disk and returns the error of writing them. f and s are also returned if
// no file can be written, as on a full disk.
func WriteTo(dir string, run *results.Run) (f *Findings, s *Series, written func() error, err error) {
	loaded, wrote := make(chan *data, 1), make(chan error, 2)
	var unread error // it names a file of the run, not a file to be written
	go func() {
		defer close(loaded)
		load := func(intervals, hosts io.Writer) error {
			var d *data
			if d, unread = loadTo(run, intervals, hosts); unread == nil {
				loaded <- d
			}
			return unread
		}
		begun := false
		err := results.WriteFile(dir, results.IntervalsCSVFile, func(intervals io.Writer) error {
			return results.WriteFile(dir, results.HostsCSVFile, func(hosts io.Writer) error {
				begun = true
				a, b := &failedLater{to: intervals}, &failedLater{to: hosts}
				return errors.Join(load(a, b), a.err, b.err)
			})
		})
		if !begun {
			_ = load(io.Discard, io.Discard) // unread has its error
		}
		wrote <- err
	}()
	d := <-loaded
	if d == nil {
		if err := <-wrote; unread == nil {
			return nil, nil, nil, err
		}
		return nil, nil, nil, unread
	}
	f = d.findings()
	s = d.series(f)
	go func() { wrote <- writeConclusions(dir, f, s) }()
	return f, s, func() error { return errors.Join(<-wrote, <-wrote) }, nil
}

// A failedLater passes everything on until its writer fails, and then accepts and drops the rest.
type failedLater struct {
	to  io.Writer
	err error // of to
}

func (w *failedLater) Write(b []byte) (int, error) {
	if w.err == nil {
		_, w.err = w.to.Write(b)
	}
	return len(b), nil
}

// writeConclusions writes the files that depend on the whole run.
func writeConclusions(dir string, f *Findings, s *Series) error {
	err := errors.Join(WriteFindings(dir, f), results.WriteFile(dir, results.CurveFile, func(w io.Writer) error { return CurveCSV(w, f) }))
	if len(s.Backends) > 0 {
		err = errors.Join(err, results.WriteFile(dir, results.BackendsCSVFile, func(w io.Writer) error { return BackendsCSV(w, s) }))
	}
	if f.Challenge != nil {
		err = errors.Join(err, writeChallenge(dir, f, s))
	}
	return err
}

// A csvTable writes lines of cells. It keeps the first error in err.
type csvTable struct {
	out *csv.Writer
	err error
}

// line writes one line: numbers with all their digits, an empty cell for nil, and texts in a form
// that a spreadsheet does not interpret as a formula.
func (t *csvTable) line(cells ...any) {
	texts := make([]string, len(cells))
	for i, c := range cells {
		switch c := c.(type) {
		case string:
			texts[i] = text(c)
		case int:
			texts[i] = strconv.Itoa(c)
		case int64:
			texts[i] = strconv.FormatInt(c, 10)
		case float64:
			texts[i] = number(c)
		case *float64:
			if c != nil {
				texts[i] = number(*c)
			}
		}
	}
	t.err = cmp.Or(t.err, t.out.Write(texts))
}

// names writes the header, whose names are separated by spaces.
func (t *csvTable) names(names string) { t.err = t.out.Write(strings.Fields(names)) }

// end flushes the buffer.
func (t *csvTable) end() error {
	t.out.Flush()
	return cmp.Or(t.err, t.out.Error())
}

// number formats x with all its digits.
func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// text returns a cell that a spreadsheet does not interpret as a formula.
func text(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}

// curveNames are the columns of curve.csv. Each name contains its unit.
const curveNames = `step clients rate_per_second measured_seconds active_clients
throughput_bytes_per_second throughput_low_bytes_per_second throughput_high_bytes_per_second
operations_per_second operations_low_per_second operations_high_per_second
done errors wrong error_ratio per_client_bytes_per_second sessions_per_second tasks task_seconds late_p99_seconds
server_cpu_share server_cpu_cores server_cpu_seconds_per_operation client_cpu_share client_cpu_cores external_cpu_cores
latency_mean_seconds latency_p50_seconds latency_p90_seconds latency_p95_seconds latency_p99_seconds latency_p999_seconds
latency_max_seconds
first_byte_mean_seconds first_byte_p50_seconds first_byte_p90_seconds first_byte_p95_seconds first_byte_p99_seconds
first_byte_p999_seconds first_byte_max_seconds
connect_mean_seconds connect_p50_seconds connect_p90_seconds connect_p95_seconds connect_p99_seconds connect_p999_seconds
connect_max_seconds
tls_handshake_mean_seconds tls_handshake_p50_seconds tls_handshake_p90_seconds tls_handshake_p95_seconds tls_handshake_p99_seconds
tls_handshake_p999_seconds tls_handshake_max_seconds tls_handshakes tls_resumed
redirect_mean_seconds redirect_p50_seconds redirect_p90_seconds redirect_p95_seconds redirect_p99_seconds redirect_p999_seconds
redirect_max_seconds
waits waited_seconds reopened signed
running_jobs jobs_begun jobs_done jobs_failed jobs_crashed job_failure_ratio crash_ratio
cpu_efficiency_share cpu_efficiency_low_share cpu_efficiency_high_share
cluster_throughput_jobs cluster_throughput_low_jobs cluster_throughput_high_jobs
events_per_second events_low_per_second events_high_per_second moved_bytes staged_bytes used_bytes output_files output_bytes
output_seconds writing_share job_estimate_seconds
job_mean_seconds job_p50_seconds job_p90_seconds job_p95_seconds job_p99_seconds job_p999_seconds job_max_seconds
imbalance imbalance_by_chance imbalance_by_chance_p95 validity`

// stepCells returns the cells of a step in the order of curveNames, without the last cell.
func stepCells(s *steps.Figures) []any {
	cells := []any{s.Step, s.Clients, s.Rate, s.Duration, s.ActiveClients,
		s.Throughput, s.ThroughputLow, s.ThroughputHigh,
		s.Operations, s.OperationsLow, s.OperationsHigh,
		s.Done, s.Errors, s.Wrong, s.ErrorRatio, s.PerClient, s.SessionRate, s.Tasks, s.TaskSeconds, s.LateP99,
		s.ServerCPU, s.ServerCores, s.ServerEach, s.ClientCPU, s.ClientCores, s.ExternalCores}
	for _, q := range []*steps.Quantiles{s.Latency, s.FirstByte, s.Connect, s.Handshake} {
		cells = append(cells, quantileCells(q)...)
	}
	cells = append(append(cells, s.Handshakes, s.Resumed), quantileCells(s.Redirect)...)
	cells = append(cells, s.Waits, s.Waited, s.Reopened, s.Signed)
	if j := s.Jobs; j != nil {
		cells = append(cells, s.RunningJobs, j.Begun, j.Done, j.Failed, j.Crashed)
	} else {
		cells = append(cells, nil, nil, nil, nil, nil)
	}
	cells = append(cells, s.JobFailureRatio, s.CrashRatio, s.CPUEfficiency, s.CPUEfficiencyLow, s.CPUEfficiencyHigh,
		s.ClusterThroughput, s.ClusterThroughputLow, s.ClusterThroughputHigh)
	if s.Jobs != nil {
		cells = append(cells, s.EventRate, s.EventRateLow, s.EventRateHigh, s.Moved, float64(s.Staged), float64(s.Used),
			float64(s.Outputs), float64(s.Output))
	} else {
		cells = append(cells, nil, s.EventRateLow, s.EventRateHigh, s.Moved, nil, nil, nil, nil)
	}
	cells = append(append(cells, s.OutputSeconds, s.OutputShare, s.JobSecondsEstimate), quantileCells(s.JobSeconds)...)
	if b := s.Balance; b != nil {
		return append(cells, b.Imbalance, b.ByChance, b.Mostly)
	}
	return append(cells, nil, nil, nil)
}

func quantileCells(q *steps.Quantiles) []any {
	if q == nil {
		return make([]any, 7)
	}
	return []any{q.Mean, q.P50, q.P90, q.P95, q.P99, q.P999, q.Max}
}

// CurveCSV writes the curve, one line per step. The name of each column contains its unit.
func CurveCSV(w io.Writer, f *Findings) error {
	t := &csvTable{out: csv.NewWriter(w)}
	t.names(curveNames)
	for s := range basics.Each(f.Curve) {
		t.line(append(stepCells(s), f.Validity.Status)...)
	}
	return t.end()
}

// BackendsCSV writes the throughput and the sessions of the backends over time, one line for each
// backend and stretch of time. The name of each column contains its unit.
func BackendsCSV(w io.Writer, s *Series) error {
	t := &csvTable{out: csv.NewWriter(w)}
	t.names("time duration_seconds clients backend throughput_bytes_per_second sessions sum_bytes_per_second sum_per_client_bytes_per_second")
	unlessNegative := func(x float64) any {
		if x < 0 {
			return nil
		}
		return x
	}
	for i := range s.Backends[0].Points {
		sum := 0.0
		for b := range basics.Each(s.Backends) {
			sum += b.Points[i].Throughput
		}
		for b := range basics.Each(s.Backends) {
			p := &b.Points[i]
			t.line(s.Start.Add(basics.Duration(p.At-p.Seconds/2)).UTC().Format(time.RFC3339Nano), p.Seconds, p.Clients, b.Name,
				unlessNegative(p.Throughput), unlessNegative(p.Sessions), unlessNegative(sum), unlessNegative(stats.Ratio(sum, p.Clients)))
		}
	}
	return t.end()
}
