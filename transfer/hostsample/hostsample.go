// Package hostsample converts samples of package monitor into the samples that a coordinator stores
// for hosts: its own host, and the hosts of agents.
package hostsample

import (
	"weir/monitor"
	"weir/transfer"
)

// Of returns a sample of a host with the values that a coordinator stores. Its time is the time of
// m, by this machine's clock.
func Of(m *monitor.Sample) transfer.Sample {
	out := transfer.Sample{Time: m.Time, Seconds: m.Seconds, Cores: m.Cores}
	if m.CPU != nil {
		out.CPU = min(max(m.CPU.Busy(), 0), 1) // a sum of shares may be slightly above 1 on a busy machine; such a value is refused
	}
	if m.Memory != nil && m.Memory.Total > 0 {
		out.Total = m.Memory.Total
		out.Memory = 1 - float64(m.Memory.Available)/float64(m.Memory.Total)
	}
	for _, d := range m.Disks {
		if d.Repeats() {
			continue
		}
		out.Read += d.Read
		out.Write += d.Write
	}
	for _, n := range m.Nets {
		if m.Seconds > 0 {
			out.In += float64(n.Received) / m.Seconds
			out.Out += float64(n.Sent) / m.Seconds
		}
	}
	for _, p := range m.Procs {
		if p.Role == "client" {
			out.OwnCPU += p.User + p.System
			out.OwnMemory += p.RSS
		}
	}
	return out
}
