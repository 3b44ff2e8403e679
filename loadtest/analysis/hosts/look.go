package hosts

import (
	"math"
	"slices"
	"strings"

	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/monitor"
)

// Loopback is the interface for a machine's traffic with itself. It counts every byte as sent and
// as received.
const Loopback = "lo"

// A Look has the figures of a host in one sample: hostSum averages them, tables and plots show
// them. Unknown figures are NaN.
type Look struct {
	Cpu, Iowait, Steal, Core     float64 // shares
	ServerCores, ClientCores     float64
	others                       float64 // share of the CPU that programs used that were seen but not watched
	kernel                       float64 // share of the CPU that threads of the kernel used
	ServerRSS, ClientRSS         int64
	Available                    int64
	DiskBusy                     float64 // of the busiest
	DiskRead, DiskWrite          float64 // per second
	Received, Sent, Looped, Back float64 // per second; the latter two: sent and received through loopback
	Retransmits                  float64 // per second
}

// LookAt returns the figures of a sample.
func LookAt(s *monitor.Sample) Look {
	unknown := math.NaN()
	k := Look{Cpu: unknown, Iowait: unknown, Steal: unknown, Core: unknown, DiskBusy: unknown}
	if s.CPU != nil {
		k.Cpu, k.Iowait, k.Steal = s.CPU.Busy(), s.CPU.IOWait, s.CPU.Steal
	}
	if len(s.Core) > 0 {
		k.Core = slices.Max(s.Core)
	}
	if s.Memory != nil {
		k.Available = s.Memory.Available
	}
	if s.TCP != nil {
		k.Retransmits = stats.Ratio(float64(s.TCP.Retransmits), s.Seconds)
	}
	cores := float64(max(1, s.Cores))
	k.others = min(stats.Ratio(s.Others/cores, s.Seconds), k.Cpu) // a new process is seen late, with all its CPU time
	k.kernel = min(stats.Ratio(s.Kernel/cores, s.Seconds), k.Cpu)
	k.ServerCores, k.ServerRSS = Processes(s, Server)
	k.ClientCores, k.ClientRSS = Processes(s, Client)
	if s.Service == nil {
		k.devices(s)
	}
	return k
}

// Processes returns the sums of the processes of one role; cores is NaN if there are no such
// processes.
func Processes(s *monitor.Sample, role monitor.Role) (cores float64, resident int64) {
	found := false
	for p := range basics.Each(s.Procs) {
		if p.Role == role {
			found = true
			cores += stats.Ratio(p.User+p.System, s.Seconds)
			resident += p.RSS
		}
	}
	if !found {
		return math.NaN(), 0
	}
	return cores, max(0, resident)
}

func (k *Look) devices(s *monitor.Sample) {
	for d := range basics.Each(s.Disks) {
		if !(k.DiskBusy >= d.Busy) {
			k.DiskBusy = d.Busy
		}
		if !d.Repeats() {
			k.DiskRead, k.DiskWrite = k.DiskRead+d.Read, k.DiskWrite+d.Write
		}
	}
	for n := range basics.Each(s.Nets) {
		if n.Name == Loopback {
			k.Back, k.Looped = stats.Ratio(float64(n.Received), s.Seconds), stats.Ratio(float64(n.Sent), s.Seconds)
			continue
		}
		k.Received, k.Sent = k.Received+float64(n.Received), k.Sent+float64(n.Sent)
	}
	k.Received, k.Sent = stats.Ratio(k.Received, s.Seconds), stats.Ratio(k.Sent, s.Seconds)
	for _, what := range s.LeftOut {
		switch {
		case strings.HasPrefix(what, monitor.LeftOutDisk):
			k.DiskRead, k.DiskWrite = math.NaN(), math.NaN()
		case what == monitor.LeftOutNet+Loopback:
			k.Back, k.Looped = math.NaN(), math.NaN()
		case strings.HasPrefix(what, monitor.LeftOutNet):
			k.Received, k.Sent = math.NaN(), math.NaN()
		}
	}
}
