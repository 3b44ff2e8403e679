package calibration

import (
	"slices"

	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/monitor"
	"weir/storage"
)

// A Step has the measurements of one side in one step. Rates are measured in the hold, unless too
// few files ended in it; counts by file or byte cover the whole step, from before the first
// operation to after the last, so that no operation is split.
type Step struct {
	Number, Clients int
	Held, All       measure.Window // the hold, and all of the step
	Done, Moved     int64          // operations that ended well and bytes, in all phases
	Failed          int64
	Broken          int64 // operations that were cancelled
	ClientCPU       *float64
	ServerCPU       *float64
	Local           bool               // the server's processes were watched on this machine
	Services        []*monitor.Service // counts of each server
	Net             int64              // bytes on the interfaces of this machine, the greater of loopback and all others

	here, busy, used float64 // seconds of this machine's cores: there, not idle, used by both sides
}

// useful reports whether rates follow from the step.
func (s *Step) useful() bool { return s.Done > 0 && s.Held.Seconds > 0 }

// slow reports whether so few files ended in the hold that their number depends on chance. The
// whole step is more exact then: all files that began in it end in it.
func (s *Step) slow() bool { return s.Held.Done < fewHeld*int64(s.Clients) }

// fewHeld is the number of files that each client needs in a hold.
const fewHeld = 2

// span returns the window for rates and times.
func (s *Step) span() *measure.Window {
	if s.slow() {
		return &s.All
	}
	return &s.Held
}

func (s *Step) quantile(q float64) *float64 {
	h := &s.span().Latency
	if h.Count() == 0 {
		return nil
	}
	v := h.Quantile(q)
	return &v
}

// Steps reads the steps of a run, by their number.
func Steps(run *results.Run) ([]Step, error) {
	byNumber := map[int]*Step{}
	external := len(run.Plan.Command) > 0
	step := func(n int) *Step {
		if byNumber[n] == nil {
			byNumber[n] = &Step{Number: n}
		}
		return byNumber[n]
	}
	for iv, err := range run.Intervals() {
		if err != nil {
			return nil, err
		}
		step(iv.Step).add(iv, external)
	}
	for s, err := range run.Samples() {
		if err != nil {
			return nil, err
		}
		if byNumber[s.Step] != nil {
			byNumber[s.Step].watch(s, external)
		}
	}
	var all []Step
	for _, planned := range run.Plan.Steps {
		if s := byNumber[planned.Number]; s != nil {
			s.Clients = planned.Clients
			s.settle()
			all = append(all, *s)
		}
	}
	slices.SortFunc(all, func(a, b Step) int { return a.Number - b.Number })
	return all, nil
}

// add counts an interval.
func (s *Step) add(iv *measure.Interval, external bool) {
	s.Done += iv.Done
	s.Moved += iv.Moved
	for class, n := range iv.Failed {
		if class == storage.Canceled {
			s.Broken += n
		} else {
			s.Failed += n
		}
	}
	if external {
		plus(&s.ClientCPU, iv.CPU)
	}
	if iv.Clients > 0 || iv.Done > 0 { // else it was the other side's turn
		s.All.Add(iv)
	}
	if iv.Phase == measure.Measured {
		s.Held.Add(iv)
	}
}

// watch adds a sample of a host.
func (s *Step) watch(v *monitor.Sample, external bool) {
	if v.Service != nil {
		s.Services = append(s.Services, v.Service)
		return
	}
	own := false
	for _, p := range v.Procs {
		s.used += p.User + p.System
		own = own || p.Role == "client"
		switch {
		case p.Role == "server":
			plus(&s.ServerCPU, p.User+p.System)
			s.Local = true
		case p.Role == "client" && !external:
			plus(&s.ClientCPU, max(0, p.User+p.System-v.Cost))
		}
	}
	if cores := float64(v.Cores) * v.Seconds; own && v.CPU != nil { // the machine where the clients are
		s.here += cores
		s.busy += cores * (v.CPU.User + v.CPU.System)
	}
	var lo, others int64
	for _, n := range v.Nets {
		if n.Name == "lo" {
			lo += n.Received
		} else {
			others += n.Received + n.Sent
		}
	}
	s.Net += max(lo, others)
}

// others returns the share of this machine's CPU that neither side used; 0 if unknown.
func (s *Step) others() float64 {
	if s.here <= 0 {
		return 0
	}
	return max(0, s.busy-s.used) / s.here
}

// settle prefers the servers' own statistics: they are exact, and available also if the servers are
// elsewhere.
func (s *Step) settle() {
	if len(s.Services) == 0 {
		return
	}
	s.ServerCPU = nil
	for _, v := range s.Services {
		plus(&s.ServerCPU, v.User+v.System)
	}
}

func plus(sum **float64, x float64) {
	if *sum == nil {
		*sum = new(float64)
	}
	**sum += x
}
