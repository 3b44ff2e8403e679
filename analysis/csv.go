package analysis

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"weir/results"
	"weir/storage"
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

// WriteTables writes curve.csv, intervals.csv and hosts.csv into run's folder.
func WriteTables(run *results.Run, f *Findings) error {
	for name, write := range map[string]func(io.Writer) error{
		results.CurveFile:        func(w io.Writer) error { return CurveCSV(w, f) },
		results.IntervalsCSVFile: func(w io.Writer) error { return IntervalsCSV(w, run) },
		results.HostsCSVFile:     func(w io.Writer) error { return HostsCSV(w, run) },
	} {
		if err := results.WriteFile(run.Dir, name, write); err != nil {
			return err
		}
	}
	return nil
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
	columns := curveColumns()
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
	return append(append(columns, quantileColumns("redirect", redirect)...),
		column[Step]{"waits", func(s *Step) string { return integer(s.Waits) }},
		column[Step]{"waited_seconds", func(s *Step) string { return number(s.Waited) }},
		column[Step]{"reopened", func(s *Step) string { return integer(s.Reopened) }})
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

// IntervalsCSV writes intervals.jsonl as a table, its histograms as count and
// quantiles, errors in a column a class.
func IntervalsCSV(w io.Writer, run *results.Run) error {
	out := csv.NewWriter(w)
	names := []string{"start", "duration_seconds", "step", "phase", "clients", "kind", "server", "moved_bytes", "discarded_bytes",
		"wire_bytes", "begun", "done", "retried", "verified", "sessions", "missed", "latency_p50_seconds", "latency_p99_seconds",
		"latency_max_seconds", "first_byte_p50_seconds", "first_byte_p99_seconds", "late_p99_seconds",
		"redirect_p50_seconds", "redirect_p99_seconds", "waits", "waited_seconds", "reopened"}
	for class := storage.None + 1; class < storage.Classes; class++ {
		names = append(names, "failed_"+strings.ReplaceAll(class.String(), " ", "_"))
	}
	if err := out.Write(names); err != nil {
		return err
	}
	for iv, err := range run.Intervals() {
		if err != nil {
			return err
		}
		cells := []string{iv.Start.UTC().Format(time.RFC3339Nano), number(iv.Seconds), integer(iv.Step), text(iv.Phase), number(iv.Clients),
			iv.Kind.String(), text(iv.Server), integer(iv.Moved), integer(iv.Dropped), integer(iv.Wire), integer(iv.Begun), integer(iv.Done),
			integer(iv.Retried), integer(iv.Verified), integer(iv.Sessions), integer(iv.Missed), number(iv.Latency.Quantile(0.5)),
			number(iv.Latency.Quantile(0.99)), number(iv.Latency.Max()), number(iv.FirstByte.Quantile(0.5)),
			number(iv.FirstByte.Quantile(0.99)), number(iv.Late.Quantile(0.99)),
			number(iv.Redirect.Quantile(0.5)), number(iv.Redirect.Quantile(0.99)), integer(iv.Waits), number(iv.Waited), integer(iv.Reopened)}
		for class := storage.None + 1; class < storage.Classes; class++ {
			cells = append(cells, integer(iv.Failed[class]))
		}
		if err := out.Write(cells); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// HostsCSV writes hosts.jsonl as a table, one line a sample: sums over disks
// and interfaces, CPU of the two sides' processes.
func HostsCSV(w io.Writer, run *results.Run) error {
	out := csv.NewWriter(w)
	if err := out.Write([]string{"time", "duration_seconds", "host", "role", "cores", "cpu_busy_share", "cpu_user_share", "cpu_system_share",
		"cpu_iowait_share", "cpu_steal_share", "busiest_core_share", "load1", "memory_available_bytes", "server_cpu_cores", "client_cpu_cores",
		"server_resident_bytes", "client_resident_bytes", "busiest_disk_share", "disk_read_bytes_per_second", "disk_write_bytes_per_second",
		"net_received_bytes_per_second", "net_sent_bytes_per_second", "retransmitted_segments_per_second", "cost_cpu_seconds", "error"}); err != nil {
		return err
	}
	for s, err := range run.Samples() {
		if err != nil {
			return err
		}
		one := hostSum{disks: map[string]*mean{}}
		one.add(s, 1)
		f := one.figure()
		user, system := "", ""
		if s.CPU != nil {
			user, system = number(s.CPU.User), number(s.CPU.System)
		}
		if err := out.Write([]string{s.Time.UTC().Format(time.RFC3339Nano), number(s.Seconds), text(s.Host), text(s.Role), integer(s.Cores), pointer(f.CPU), user, system,
			pointer(f.IOWait), pointer(f.Steal), pointer(f.BusiestCore), number(s.Load), integer(f.MemoryAvailable), pointer(f.ServerCores), pointer(f.ClientCores),
			integer(f.ServerRSS), integer(f.ClientRSS), pointer(f.DiskBusy), number(f.DiskRead), number(f.DiskWrite),
			number(f.NetReceived), number(f.NetSent), number(f.Retransmits), number(s.Cost), text(s.Error)}); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}
