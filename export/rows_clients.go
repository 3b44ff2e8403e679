package export

import (
	"math"

	"weir/measure"
	"weir/storage"
)

// A moment is the state of a run at the end of a second.
type moment struct {
	second  measure.Interval // the last line of the second: its step, phase and clients
	planned measure.Event    // of its step; zero where no event told of it
	start   float64          // of the run, seconds since 1970
	jobs    bool             // clients run jobs
}

// infoRows has the one series that tells what the run was.
func infoRows() shape[moment] {
	s := shape[moment]{group: "run", labels: []string{"target", "workload", "model", "driver", "version"}}
	s.gauge("run_info", "Always 1; its labels say what the run was.", func(*moment) float64 { return 1 })
	return s
}

func runRows() shape[moment] {
	s := shape[moment]{group: "run"}
	s.gauge("run_start_time_seconds", "When the run began, in seconds since 1970.", func(m *moment) float64 { return m.start })
	s.counter("measured_seconds", "Time that was measured, of all phases.", func(m *moment) float64 { return m.second.Seconds })
	s.gauge("clients", "Virtual clients running, mean over the second.", func(m *moment) float64 { return m.second.Clients })
	s.gauge("jobs_running", "Jobs running, mean over the second; only of runs with jobs.", func(m *moment) float64 {
		if !m.jobs {
			return math.NaN()
		}
		return m.second.Running
	})
	s.gauge("planned_clients", "Virtual clients of the step, as planned; open model: the most that may be busy at once.", func(m *moment) float64 {
		return unlessZero(float64(m.planned.Clients))
	})
	s.gauge("planned_arrivals_per_second", "Open model: arrivals over all clients, as planned.", func(m *moment) float64 { return unlessZero(m.planned.Rate) })
	s.gauge("step", "Number of the step that is running, from 1.", func(m *moment) float64 { return float64(m.second.Step) })
	s.each("phase", "1 for the phase that the step is in.", Gauge, false, "phase", []string{measure.Ramp, measure.Settle, measure.Hold, measure.Drain},
		func(m *moment, phase string) float64 { return flag(m.second.Phase == phase) })
	return s
}

// unlessZero is NaN, nothing known, for 0.
func unlessZero(x float64) float64 {
	if x == 0 {
		return math.NaN()
	}
	return x
}

func eventRows() shape[measure.Event] {
	s := shape[measure.Event]{group: "events"}
	s.each("events_total", "Things that happened once, by what they were.", Counter, true, "event",
		measure.EventKinds(), func(e *measure.Event, kind string) float64 { return flag(string(e.Kind) == kind) })
	return s
}

// operationRows has what is counted of each kind of operation on each data server.
func operationRows() shape[measure.Interval] {
	type iv = measure.Interval
	s := shape[iv]{group: "operations", labels: []string{"kind", "server"}}
	s.counter("moved_bytes", "Payload moved, counted when it moves.", func(v *iv) float64 { return float64(v.Moved) })
	s.counter("operations_begun", "Operations started.", func(v *iv) float64 { return float64(v.Begun) })
	s.counter("operations_done", "Operations ended well.", func(v *iv) float64 { return float64(v.Done) })
	s.counter("operation_seconds", "Latency of operations ended well, summed.", func(v *iv) float64 { return v.Latency.Sum() })
	s.counter("tasks", "Tasks ended; a task is the operations between two pauses.", func(v *iv) float64 { return float64(v.Tasks) })
	s.counter("sessions", "Connections made.", func(v *iv) float64 { return float64(v.Sessions) })
	s.seldom("wire_bytes", "Bytes on connections, both ways, of operations that ended.", func(v *iv) float64 { return float64(v.Wire) })
	s.seldom("discarded_bytes", "Payload that was counted but never copied to memory, of operations that ended.", func(v *iv) float64 { return float64(v.Discarded) })
	s.seldom("operations_retried", "Operations tried again.", func(v *iv) float64 { return float64(v.Retried) })
	s.seldom("operations_verified", "Operations whose payload was checked and right.", func(v *iv) float64 { return float64(v.Verified) })
	s.seldom("operations_unverifiable", "Operations to be checked of which nobody knows what is right.", func(v *iv) float64 { return float64(v.Unverifiable) })
	s.seldom("arrivals_missed", "Open model: planned arrivals that never started.", func(v *iv) float64 { return float64(v.Missed) })
	s.seldom("waits", "Times that the service told a client to wait and ask again.", func(v *iv) float64 { return float64(v.Waits) })
	s.seldom("waited_seconds", "How long clients did so, summed.", func(v *iv) float64 { return v.Waited })
	s.seldom("reopened", "Files opened again because their data server was lost.", func(v *iv) float64 { return float64(v.Reopened) })
	s.seldom("think_seconds", "Planned pauses that began, summed.", func(v *iv) float64 { return v.Think })
	s.seldom("paused_seconds", "Time that clients spent in pauses after failed tasks, summed.", func(v *iv) float64 { return v.Paused })
	s.seldom("client_program_cpu_seconds", "CPU time of external client programs that ended.", func(v *iv) float64 { return v.CPU })
	s.seldom("jobs_begun", "Jobs begun.", func(v *iv) float64 { return float64(v.Started) })
	s.seldom("jobs_done", "Jobs that came to their end.", func(v *iv) float64 { return float64(v.Ended) })
	s.seldom("jobs_failed", "Jobs that a failure ended, but for those that crashed.", func(v *iv) float64 { return float64(v.JobsFailed) })
	s.seldom("jobs_crashed", "Jobs that ended because a request was not answered in time.", func(v *iv) float64 { return float64(v.Crashed) })
	s.seldom("events_done", "Events that jobs were through with.", func(v *iv) float64 { return float64(v.Events) })
	s.seldom("used_bytes", "Payload that jobs worked on.", func(v *iv) float64 { return float64(v.Used) })
	s.seldom("staged_bytes", "Payload that jobs had copied to a scratch disk.", func(v *iv) float64 { return float64(v.Staged) })
	s.seldom("job_compute_seconds", "Time for which jobs computed, summed; of programs see weir_client_program_cpu_seconds_total.", func(v *iv) float64 { return v.Compute })
	failures(&s)
	return s
}

// failures adds a row for each class.
func failures(s *shape[measure.Interval]) {
	s.add("operations_failed_total", "Operations failed, by class; canceled: the run ended first.", Counter, true, nil)
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

// durationRows has the histograms of one kind of operation in one second, on all
// servers together: buckets of each server would be more than most databases like.
func durationRows() shape[measure.Sum] {
	s := shape[measure.Sum]{group: "durations", labels: []string{"kind"}}
	s.histogram("latency_seconds", "Duration of operations ended well; open model: from their planned start.", func(d *measure.Sum) *measure.Histogram { return &d.Latency })
	s.histogram("first_byte_seconds", "From the start of operations to their first byte.", func(d *measure.Sum) *measure.Histogram { return &d.FirstByte })
	s.histogram("connect_seconds", "From the start of sessions to their transport connection.", func(d *measure.Sum) *measure.Histogram { return &d.Connect })
	s.histogram("login_seconds", "From the start of sessions to their authentication.", func(d *measure.Sum) *measure.Histogram { return &d.Login })
	s.histogram("redirect_seconds", "From the start of operations to being sent to another server.", func(d *measure.Sum) *measure.Histogram { return &d.Redirect })
	s.histogram("late_seconds", "Actual minus planned start of tasks: the load generator's own delay.", func(d *measure.Sum) *measure.Histogram { return &d.Late })
	s.histogram("job_seconds", "Wall clock time of jobs that came to their end.", func(d *measure.Sum) *measure.Histogram { return &d.Wall })
	for _, q := range []struct {
		name, what string
		share      float64
	}{{"p50", "Median", 0.5}, {"p90", "90% quantile", 0.9}, {"p99", "99% quantile", 0.99}, {"max", "Longest", 1}} {
		s.gauge("latency_"+q.name+"_seconds", q.what+" of the latencies of the last second, within 1%.", func(d *measure.Sum) float64 {
			if d.Latency.Count() == 0 {
				return math.NaN()
			}
			return d.Latency.Quantile(q.share)
		})
	}
	return s
}
