package export

import (
	"math"

	"weir/loadtest/measure"
	"weir/storage"
)

// A moment is the state of a run at the end of a second.
type moment struct {
	second  measure.Interval // the last line of the second: its step, phase and clients
	planned measure.Event    // of its step; zero without an event
	start   float64          // of the run, seconds since 1970
	jobs    bool             // clients run jobs
}

// infoRows returns the series that describes the run.
func infoRows() shape[moment] {
	s := shape[moment]{group: "run", labels: []string{"target", "workload", "model", "driver", "version"}}
	s.gauge("run_info", "Always 1; the labels describe the run.", func(*moment) float64 { return 1 })
	return s
}

func runRows() shape[moment] {
	s := shape[moment]{group: "run"}
	s.gauge("run_start_time_seconds", "Start of the run, in seconds since 1970.", func(m *moment) float64 { return m.start })
	s.counter("measured_seconds", "Measured time of all phases.", func(m *moment) float64 { return m.second.Seconds })
	s.gauge("clients", "Running virtual clients, mean over the second.", func(m *moment) float64 { return m.second.Clients })
	s.gauge("jobs_running", "Running jobs, mean over the second; only in runs with jobs.", func(m *moment) float64 {
		if !m.jobs {
			return math.NaN()
		}
		return m.second.Running
	})
	s.gauge("planned_clients", "Planned virtual clients of the step; open model: the limit of busy clients.", func(m *moment) float64 {
		return unlessZero(float64(m.planned.Clients))
	})
	s.gauge("planned_arrivals_per_second", "Open model: planned arrivals of all clients.",
		func(m *moment) float64 { return unlessZero(m.planned.Rate) })
	s.gauge("step", "Number of the running step, from 1.", func(m *moment) float64 { return float64(m.second.Step) })
	s.each("phase", "1 for the current phase of the step.", Gauge, false, "phase", []string{measure.Ramp, measure.Warmup, measure.Measured,
		measure.GracefulStop}, func(m *moment, phase string) float64 { return flag(m.second.Phase == phase) })
	return s
}

// unlessZero returns NaN for 0, which means unknown.
func unlessZero(x float64) float64 {
	if x == 0 {
		return math.NaN()
	}
	return x
}

func eventRows() shape[measure.Event] {
	s := shape[measure.Event]{group: "events"}
	s.each("events_total", "Events, by kind.", Counter, true, "event",
		measure.EventKinds(), func(e *measure.Event, kind string) float64 { return flag(string(e.Kind) == kind) })
	return s
}

// operationRows returns the counters of each kind of operation on each data server, by each
// population of clients.
func operationRows() shape[measure.Interval] {
	type iv = measure.Interval
	s := shape[iv]{group: "operations", labels: []string{"kind", "server", "population"}}
	s.counter("moved_bytes", "Payload moved, counted when it moves.", func(v *iv) float64 { return float64(v.Moved) })
	s.counter("operations_begun", "Operations started.", func(v *iv) float64 { return float64(v.Begun) })
	s.counter("operations_done", "Operations that succeeded.", func(v *iv) float64 { return float64(v.Done) })
	s.counter("operation_seconds", "Sum of the latencies of operations that succeeded.", func(v *iv) float64 { return v.Latency.Sum() })
	s.counter("tasks", "Completed tasks; a task is the operations between two pauses.", func(v *iv) float64 { return float64(v.Tasks) })
	s.counter("sessions", "Connections made.", func(v *iv) float64 { return float64(v.Sessions) })
	s.rareCounter("tls_handshakes", "TLS handshakes of ended operations.", func(v *iv) float64 { return float64(v.Handshakes) })
	s.rareCounter("tls_resumed", "TLS handshakes that resumed an earlier TLS session.", func(v *iv) float64 { return float64(v.Resumed) })
	s.rareCounter("wire_bytes", "Bytes on connections, both directions, of ended operations.", func(v *iv) float64 { return float64(v.Wire) })
	s.rareCounter("discarded_bytes", "Payload that was counted but not copied to memory, of ended operations.",
		func(v *iv) float64 { return float64(v.Discarded) })
	s.rareCounter("operations_retried", "Retries of operations.", func(v *iv) float64 { return float64(v.Retried) })
	s.rareCounter("operations_verified", "Operations whose payload was verified as correct.",
		func(v *iv) float64 { return float64(v.Verified) })
	s.rareCounter("operations_unverifiable", "Operations to be verified without a reference checksum.",
		func(v *iv) float64 { return float64(v.Unverifiable) })
	s.rareCounter("operations_wrong", "Operations done whose payload a check found wrong after they had ended.",
		func(v *iv) float64 { return float64(v.Wrong) })
	s.rareCounter("operations_encoded", "Reads of files of unknown size that were answered in a content encoding which was not requested.",
		func(v *iv) float64 { return float64(v.Encoded) })
	s.rareCounter("arrivals_missed", "Open model: planned arrivals that were never started.", func(v *iv) float64 { return float64(v.Missed) })
	s.rareCounter("waits", "Requests of the service to wait and retry.", func(v *iv) float64 { return float64(v.Waits) })
	s.rareCounter("waited_seconds", "Sum of the times that clients waited for that reason.", func(v *iv) float64 { return v.Waited })
	s.rareCounter("reopened", "Files reopened after the loss of their data server.", func(v *iv) float64 { return float64(v.Reopened) })
	s.rareCounter("renewed", "Credentials that client processes read again because they were renewed.",
		func(v *iv) float64 { return float64(v.Renewed) })
	s.rareCounter("signed", "Requests that were signed because the service demands it.", func(v *iv) float64 { return float64(v.Signed) })
	s.rareCounter("think_seconds", "Sum of the planned pauses that began.", func(v *iv) float64 { return v.Think })
	s.rareCounter("paused_seconds", "Sum of the pauses of clients after failed tasks.", func(v *iv) float64 { return v.Paused })
	s.rareCounter("retry_after_seconds", "Sum of the pauses of clients that the service asked for (Retry-After).",
		func(v *iv) float64 { return v.RetryAfter })
	s.rareCounter("client_program_cpu_seconds", "CPU time of ended external client programs.", func(v *iv) float64 { return v.CPU })
	s.rareCounter("jobs_begun", "Jobs started.", func(v *iv) float64 { return float64(v.Started) })
	s.rareCounter("jobs_done", "Jobs that completed.", func(v *iv) float64 { return float64(v.Ended) })
	s.rareCounter("jobs_failed", "Jobs that failed, without those that crashed.", func(v *iv) float64 { return float64(v.JobsFailed) })
	s.rareCounter("jobs_crashed", "Jobs that crashed: a request timed out.", func(v *iv) float64 { return float64(v.Crashed) })
	s.rareCounter("events_done", "Events that jobs completed.", func(v *iv) float64 { return float64(v.Events) })
	s.rareCounter("used_bytes", "Payload that jobs processed.", func(v *iv) float64 { return float64(v.Used) })
	s.rareCounter("staged_bytes", "Payload that jobs copied to a scratch disk.", func(v *iv) float64 { return float64(v.Staged) })
	s.rareCounter("output_files", "Files that jobs wrote to the target.", func(v *iv) float64 { return float64(v.Outputs) })
	s.rareCounter("output_bytes", "Payload of the files that jobs wrote to the target.", func(v *iv) float64 { return float64(v.Output) })
	s.rareCounter("job_output_seconds", "Sum of the times that jobs spent writing files.", func(v *iv) float64 { return v.OutputTime })
	s.rareCounter("job_compute_seconds", "Sum of the compute times of jobs; for programs see weir_client_program_cpu_seconds_total.",
		func(v *iv) float64 { return v.Compute })
	failures(&s)
	return s
}

// failures adds a row for each error class.
func failures(s *shape[measure.Interval]) {
	s.add("operations_failed_total", "Operations that failed, by class; canceled: the run ended first.", Counter, true, nil)
	first := len(s.rows) - 1
	m := s.rows[first].metric
	m.Labels = append(append([]string(nil), s.labels...), "class")
	s.rows = s.rows[:first]
	for class := storage.None + 1; class < storage.Classes; class++ {
		s.rows = append(s.rows, row[measure.Interval]{
			metric: m, label: Label{"class", class.String()}, rare: true, of: func(v *measure.Interval) float64 { return float64(v.Failed[class]) },
		})
	}
}

// durationRows returns the histograms of each kind of operation by each population, for all servers
// together: buckets of each server would be too many series.
func durationRows() shape[measure.Sum] {
	s := shape[measure.Sum]{group: "durations", labels: []string{"kind", "population"}}
	s.histogram("latency_seconds", "Duration of operations that succeeded; open model: from the planned start.",
		func(d *measure.Sum) *measure.Histogram { return &d.Latency })
	s.histogram("first_byte_seconds", "Time to first byte of operations.", func(d *measure.Sum) *measure.Histogram { return &d.FirstByte })
	s.histogram("connect_seconds", "Time from the start of sessions to the transport connection.",
		func(d *measure.Sum) *measure.Histogram { return &d.Connect })
	s.histogram("tls_handshake_seconds", "Duration of TLS handshakes, the first of an operation.",
		func(d *measure.Sum) *measure.Histogram { return &d.Handshake })
	s.histogram("login_seconds", "Time from the start of sessions to the end of authentication.",
		func(d *measure.Sum) *measure.Histogram { return &d.Login })
	s.histogram("redirect_seconds", "Time from the start of operations to the first redirect.",
		func(d *measure.Sum) *measure.Histogram { return &d.Redirect })
	s.histogram("late_seconds", "Actual minus planned start of tasks: the load generator's own delay.",
		func(d *measure.Sum) *measure.Histogram { return &d.Late })
	s.histogram("job_seconds", "Wall clock time of jobs that completed.", func(d *measure.Sum) *measure.Histogram { return &d.Wall })
	for _, q := range []struct {
		name, what string
		share      float64
	}{{"p50", "Median", 0.5}, {"p90", "90% quantile", 0.9}, {"p99", "99% quantile", 0.99}, {"max", "Longest", 1}} {
		s.gauge("latency_"+q.name+"_seconds", q.what+" of the latencies of the last second, exact to 1%.", func(d *measure.Sum) float64 {
			if d.Latency.Count() == 0 {
				return math.NaN()
			}
			return d.Latency.Quantile(q.share)
		})
	}
	return s
}
