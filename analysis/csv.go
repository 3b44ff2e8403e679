package analysis

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"weir/results"
)

// WriteFindings writes findings.json into dir, whole or not at all.
func WriteFindings(dir string, f *Findings) error {
	return results.WriteFile(dir, results.FindingsFile, func(w io.Writer) error { return JSON(w, f) })
}

// JSON writes f as it stands in findings.json.
func JSON(w io.Writer, f *Findings) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(f)
}

// Write analyses run as Both does and writes findings.json, curve.csv,
// intervals.csv, hosts.csv and, where several servers shared the load, backends.csv
// into its folder, each whole or not at all. The run is read only once.
func Write(run *results.Run) (f *Findings, s *Series, err error) { return WriteTo(run.Dir, run) }

// WriteTo is Write into the folder dir.
func WriteTo(dir string, run *results.Run) (*Findings, *Series, error) {
	loaded, wrote := make(chan *data, 1), make(chan error, 1)
	var unread error // it names its own file, not those that were to be written
	go func() {
		defer close(loaded)
		wrote <- results.WriteFile(dir, results.IntervalsCSVFile, func(intervals io.Writer) error {
			return results.WriteFile(dir, results.HostsCSVFile, func(hosts io.Writer) error {
				var d *data
				if d, unread = loadTo(run, intervals, hosts); unread == nil {
					loaded <- d
				}
				return unread
			})
		})
	}()
	d := <-loaded
	if d == nil {
		if err := <-wrote; unread == nil {
			return nil, nil, err
		}
		return nil, nil, unread
	}
	f := d.findings()
	s := d.series(f) // while the tables are brought to the disk
	err := errors.Join(WriteFindings(dir, f), results.WriteFile(dir, results.CurveFile, func(w io.Writer) error { return CurveCSV(w, f) }))
	if len(s.Backends) > 0 {
		err = errors.Join(err, results.WriteFile(dir, results.BackendsCSVFile, func(w io.Writer) error { return BackendsCSV(w, s) }))
	}
	if err = errors.Join(<-wrote, err); err != nil {
		return nil, nil, err
	}
	return f, s, nil
}

// A column is a header with its unit, and how its cell is made.
type column[T any] struct {
	name string
	cell func(*T) string
}

// number writes x with all its digits; nothing for what is not known.
func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

func pointer(x *float64) string {
	if x == nil {
		return ""
	}
	return number(*x)
}

func integer[I int | int64](x I) string { return strconv.FormatInt(int64(x), 10) }

// text makes a cell that no spreadsheet takes for a formula.
func text(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}

func header[T any](columns []column[T]) []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	return names
}

func row[T any](columns []column[T], v *T) []string {
	cells := make([]string, len(columns))
	for i, c := range columns {
		cells[i] = c.cell(v)
	}
	return cells
}

// CurveCSV writes the curve, one line a step; each header names its unit.
func CurveCSV(w io.Writer, f *Findings) error {
	out := csv.NewWriter(w)
	columns := append(curveColumns(), column[Step]{"validity", func(*Step) string { return f.Validity.Status }})
	if err := out.Write(header(columns)); err != nil {
		return err
	}
	for i := range f.Curve {
		if err := out.Write(row(columns, &f.Curve[i])); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func curveColumns() []column[Step] {
	columns := []column[Step]{
		{"step", func(s *Step) string { return integer(s.Step) }},
		{"clients", func(s *Step) string { return integer(s.Clients) }},
		{"rate_per_second", func(s *Step) string { return number(s.Rate) }},
		{"hold_seconds", func(s *Step) string { return number(s.Hold) }},
		{"active_clients", func(s *Step) string { return number(s.ActiveClients) }},
		{"throughput_bytes_per_second", func(s *Step) string { return number(s.Throughput) }},
		{"throughput_low_bytes_per_second", func(s *Step) string { return pointer(s.ThroughputLow) }},
		{"throughput_high_bytes_per_second", func(s *Step) string { return pointer(s.ThroughputHigh) }},
		{"operations_per_second", func(s *Step) string { return number(s.Operations) }},
		{"operations_low_per_second", func(s *Step) string { return pointer(s.OperationsLow) }},
		{"operations_high_per_second", func(s *Step) string { return pointer(s.OperationsHigh) }},
		{"done", func(s *Step) string { return integer(s.Done) }},
		{"errors", func(s *Step) string { return integer(s.Errors) }},
		{"error_ratio", func(s *Step) string { return number(s.ErrorRatio) }},
		{"per_client_bytes_per_second", func(s *Step) string { return number(s.PerClient) }},
		{"sessions_per_second", func(s *Step) string { return number(s.SessionRate) }},
		{"tasks", func(s *Step) string { return integer(s.Tasks) }},
		{"task_seconds", func(s *Step) string { return pointer(s.TaskSeconds) }},
		{"late_p99_seconds", func(s *Step) string { return pointer(s.LateP99) }},
		{"server_cpu_share", func(s *Step) string { return pointer(s.ServerCPU) }},
		{"server_cpu_cores", func(s *Step) string { return pointer(s.ServerCores) }},
		{"client_cpu_share", func(s *Step) string { return pointer(s.ClientCPU) }},
		{"client_cpu_cores", func(s *Step) string { return pointer(s.ClientCores) }},
		{"external_cpu_cores", func(s *Step) string { return number(s.ExternalCores) }},
	}
	columns = append(columns, quantileColumns("latency", func(s *Step) *Quantiles { return s.Latency })...)
	columns = append(columns, quantileColumns("first_byte", func(s *Step) *Quantiles { return s.FirstByte })...)
	redirect := func(s *Step) *Quantiles { return s.Redirect }
	return append(append(append(columns, quantileColumns("redirect", redirect)...),
		column[Step]{"waits", func(s *Step) string { return integer(s.Waits) }},
		column[Step]{"waited_seconds", func(s *Step) string { return number(s.Waited) }},
		column[Step]{"reopened", func(s *Step) string { return integer(s.Reopened) }}), append(jobColumns(), balanceColumns()...)...)
}

// balanceColumns are empty where fewer than two servers share the load.
func balanceColumns() []column[Step] {
	of := func(get func(*StepBalance) float64) func(*Step) string {
		return func(s *Step) string {
			if s.Balance == nil {
				return ""
			}
			return number(get(s.Balance))
		}
	}
	return []column[Step]{
		{"imbalance", of(func(b *StepBalance) float64 { return b.Imbalance })},
		{"imbalance_by_chance", of(func(b *StepBalance) float64 { return b.ByChance })},
		{"imbalance_by_chance_p95", of(func(b *StepBalance) float64 { return b.Mostly })},
	}
}

// jobColumns are empty in runs without jobs.
func jobColumns() []column[Step] {
	count := func(of func(*JobCounts) int64) func(*Step) string {
		return func(s *Step) string {
			if s.Jobs == nil {
				return ""
			}
			return integer(of(s.Jobs))
		}
	}
	ofJobs := func(of func(*Step) float64) func(*Step) string {
		return func(s *Step) string {
			if s.Jobs == nil {
				return ""
			}
			return number(of(s))
		}
	}
	columns := []column[Step]{
		{"running_jobs", ofJobs(func(s *Step) float64 { return s.RunningJobs })},
		{"jobs_begun", count(func(j *JobCounts) int64 { return j.Begun })},
		{"jobs_done", count(func(j *JobCounts) int64 { return j.Done })},
		{"jobs_failed", count(func(j *JobCounts) int64 { return j.Failed })},
		{"jobs_crashed", count(func(j *JobCounts) int64 { return j.Crashed })},
		{"job_failure_ratio", func(s *Step) string { return pointer(s.JobFailureRatio) }},
		{"crash_ratio", func(s *Step) string { return pointer(s.CrashRatio) }},
		{"cpu_efficiency_share", func(s *Step) string { return pointer(s.CPUEfficiency) }},
		{"cpu_efficiency_low_share", func(s *Step) string { return pointer(s.CPUEfficiencyLow) }},
		{"cpu_efficiency_high_share", func(s *Step) string { return pointer(s.CPUEfficiencyHigh) }},
		{"cluster_throughput_jobs", func(s *Step) string { return pointer(s.ClusterThroughput) }},
		{"cluster_throughput_low_jobs", func(s *Step) string { return pointer(s.ClusterThroughputLow) }},
		{"cluster_throughput_high_jobs", func(s *Step) string { return pointer(s.ClusterThroughputHigh) }},
		{"events_per_second", ofJobs(func(s *Step) float64 { return s.EventRate })},
		{"events_low_per_second", func(s *Step) string { return pointer(s.EventRateLow) }},
		{"events_high_per_second", func(s *Step) string { return pointer(s.EventRateHigh) }},
		{"moved_bytes", func(s *Step) string { return integer(s.Moved) }},
		{"staged_bytes", ofJobs(func(s *Step) float64 { return float64(s.Staged) })},
		{"used_bytes", ofJobs(func(s *Step) float64 { return float64(s.Used) })},
		{"job_estimate_seconds", func(s *Step) string { return pointer(s.JobSecondsEstimate) }},
	}
	return append(columns, quantileColumns("job", func(s *Step) *Quantiles { return s.JobSeconds })...)
}

func quantileColumns(name string, of func(*Step) *Quantiles) []column[Step] {
	var columns []column[Step]
	for _, q := range []struct {
		name string
		get  func(*Quantiles) float64
	}{
		{"mean", func(q *Quantiles) float64 { return q.Mean }},
		{"p50", func(q *Quantiles) float64 { return q.P50 }},
		{"p90", func(q *Quantiles) float64 { return q.P90 }},
		{"p99", func(q *Quantiles) float64 { return q.P99 }},
		{"p999", func(q *Quantiles) float64 { return q.P999 }},
		{"max", func(q *Quantiles) float64 { return q.Max }},
	} {
		columns = append(columns, column[Step]{fmt.Sprintf("%s_%s_seconds", name, q.name), func(s *Step) string {
			if of(s) == nil {
				return ""
			}
			return number(q.get(of(s)))
		}})
	}
	return columns
}
