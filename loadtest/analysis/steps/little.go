package steps

import (
	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
)

// Limits of Little's law.
const (
	LeastCycles  = 20 // operations per client with pauses: with fewer, pauses cut at the edges of the measurement weigh too much
	littleEnough = 1e-9
)

// little returns the share of the clients' time that recorded operations and pauses explain: N =
// X*(R+Z) with N the mean number of active clients, X*R the operations in progress (and sessions
// being closed after them) and X*Z the clients in pauses. Pauses end late on a busy machine: the
// delay is recorded, and the generator's check evaluates it. It returns nil if the result would be
// meaningless: in the open model, with few pauses per client, and for runs of versions that did not
// record the time of operations that the measurement cuts.
//
// Pauses, and the computing of jobs, count in full in the interval in which they begin or end: in a
// steady state, the parts cut at the start and at the end of the measurement cancel except for
// about one part in the number of operations per client.
func (d *Run) little(s *Working) *float64 {
	if d.Plan.Model == scenario.OpenModel || s.ActiveClients < littleEnough {
		return nil
	}
	pauses := s.ThinkSeconds + s.Paused + s.RetryAfter + s.closingSeconds
	if s.Jobs != nil && !s.OneByOne {
		return basics.Part(s.RunningJobs*s.Duration+pauses, s.Duration*s.ActiveClients)
	}
	cycles := stats.Ratio(float64(s.Done+s.Errors), s.ActiveClients)
	if s.BusySeconds == 0 || s.ThinkSeconds+s.ComputeSeconds > 0 && cycles < LeastCycles {
		return nil
	}
	sum := s.BusySeconds + pauses + s.ComputeSeconds
	if s.Jobs == nil {
		sum += s.lateSeconds
	}
	return basics.Part(sum, s.Duration*s.ActiveClients)
}

// inRequests reports whether a job's time is the sum of the times of its requests and of its
// computing. This is not the case if the job requests the next events while it computes, reads from
// a copy, burns a CPU that it may have to share, or is a program: the total time of these jobs is
// compared with the clients' time.
func (d *Run) inRequests() bool {
	j := d.Plan.Work.Job
	return d.Plan.Work.Kind == workload.JobWork && j != nil && j.Access != "staged" && j.Ahead == 0 && !j.Burn
}
