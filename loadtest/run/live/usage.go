package live

import (
	"fmt"
	"slices"
	"time"

	"weir/loadtest/measure"
	"weir/monitor"
)

// The sides whose processes are monitored.
const (
	serverSide = iota
	clientSide
	sides
)

// A cpuUsage sums up the CPU time of each side's processes while a step is measured.
// A sample counts with the share of it that the measurement covers, as in the
// analysis: of short steps most samples also cover the ramp and the step before.
// Samples whose share is not known yet when the step's line is written are left out.
type cpuUsage struct {
	measured [][2]time.Time // spans of this step
	known    time.Time      // up to here the spans are known
	pending  []hostSample   // samples that end later
	sums     [sides]hostCores
	last     [sides]hostCores // of this step, the newest sample of each host
}

// hostCores has core seconds, used and available, of each host.
type hostCores map[string][2]float64

func (c *hostCores) add(host string, used, available float64) {
	if *c == nil {
		*c = hostCores{}
	}
	sum := (*c)[host]
	(*c)[host] = [2]float64{sum[0] + used, sum[1] + available}
}

// A hostSample has the CPU time of both sides in a sample.
type hostSample struct {
	host      string
	from, to  time.Time
	available float64        // core seconds
	used      [sides]float64 // core seconds; below 0 if no process is monitored
}

// interval adds an interval of the clients.
func (u *cpuUsage) interval(v *measure.Interval) {
	end := v.Start.Add(time.Duration(v.Seconds * float64(time.Second)))
	if n := len(u.measured); v.Phase == measure.Measured {
		if n > 0 && !v.Start.After(u.measured[n-1][1].Add(50*time.Millisecond)) {
			u.measured[n-1][1] = end
		} else {
			u.measured = append(u.measured, [2]time.Time{v.Start, end})
		}
	}
	if end.After(u.known) {
		u.known = end
		u.count()
	}
}

// sample adds a sample of the monitor.
func (u *cpuUsage) sample(s *monitor.Sample) {
	h := hostSample{host: s.Host, from: s.Time.Add(-time.Duration(s.Seconds * float64(time.Second))), to: s.Time,
		available: s.Seconds * float64(s.Cores), used: [sides]float64{-1, -1}}
	for i := range s.Procs {
		p, side := &s.Procs[i], clientSide
		if p.Role == "server" {
			side = serverSide
		}
		h.used[side] = max(h.used[side], 0) + p.User + p.System
	}
	for side, used := range h.used {
		if used >= 0 {
			delete(u.last[side], h.host)
			u.last[side].add(h.host, used, h.available)
		}
	}
	u.pending = append(u.pending, h)
	u.count()
}

// count adds the samples whose measured share is known.
func (u *cpuUsage) count() {
	u.pending = slices.DeleteFunc(u.pending, func(h hostSample) bool {
		if h.to.After(u.known) {
			return false
		}
		share := 0.0
		for _, m := range u.measured {
			from, to := h.from, h.to
			if m[0].After(from) {
				from = m[0]
			}
			if m[1].Before(to) {
				to = m[1]
			}
			share += max(to.Sub(from).Seconds(), 0)
		}
		share /= max(h.to.Sub(h.from).Seconds(), 1e-9)
		for side, used := range h.used {
			if share > 0 && used >= 0 {
				u.sums[side].add(h.host, share*used, share*h.available)
			}
		}
		return true
	})
}

// reset begins a step.
func (u *cpuUsage) reset() { u.measured, u.sums, u.last = nil, [sides]hostCores{}, [sides]hostCores{} }

// share returns the share of the busiest host's cores, below 0 if it is not known: the share in the
// measurement or, before it begins, in the last second.
func (u *cpuUsage) share(side int) float64 {
	from := u.sums[side]
	if len(from) == 0 {
		from = u.last[side]
	}
	most := -1.0
	for _, h := range from {
		if h[1] > 0 {
			most = max(most, h[0]/h[1])
		}
	}
	return most
}

func (u *cpuUsage) text(side int) string {
	share := u.share(side)
	if share < 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100*share)
}
