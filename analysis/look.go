package analysis

import (
	"math"
	"slices"

	"weir/monitor"
	"weir/scenario"
)

// A look is what one sample says of its host: what hostSum averages
// and tables and plots show. Unknown figures are NaN.
type look struct {
	cpu, iowait, steal, core     float64 // shares
	serverCores, clientCores     float64
	others                       float64 // share of the CPU that programs used which were seen and not watched
	serverRSS, clientRSS         int64
	available                    int64
	diskBusy                     float64 // of the busiest
	diskRead, diskWrite          float64 // per second
	received, sent, looped, back float64 // per second; the latter two through loopback: sent and received
	retransmits                  float64 // per second
}

func lookAt(s *monitor.Sample) look {
	unknown := math.NaN()
	k := look{cpu: unknown, iowait: unknown, steal: unknown, core: unknown, serverCores: unknown, clientCores: unknown, diskBusy: unknown}
	if s.CPU != nil {
		k.cpu, k.iowait, k.steal = s.CPU.Busy(), s.CPU.IOWait, s.CPU.Steal
	}
	if len(s.Core) > 0 {
		k.core = slices.Max(s.Core)
	}
	if s.Memory != nil {
		k.available = s.Memory.Available
	}
	if s.TCP != nil {
		k.retransmits = ratio(float64(s.TCP.Retransmits), s.Seconds)
	}
	k.others = min(ratio(s.Others/float64(max(1, s.Cores)), s.Seconds), k.cpu) // a process that begins to work is seen late, with all it used
	k.serverCores, k.serverRSS = processes(s, server)
	k.clientCores, k.clientRSS = processes(s, client)
	if s.Service == nil {
		k.devices(s)
	}
	return k
}

// processes sums the processes of one role; cores is NaN if there are none.
func processes(s *monitor.Sample, role scenario.Role) (cores float64, resident int64) {
	found := false
	for i := range s.Procs {
		if p := &s.Procs[i]; p.Role == role {
			found = true
			cores += ratio(p.User+p.System, s.Seconds)
			resident += p.RSS
		}
	}
	if !found {
		return math.NaN(), 0
	}
	return cores, max(0, resident)
}

func (k *look) devices(s *monitor.Sample) {
	for i := range s.Disks {
		d := &s.Disks[i]
		if !(k.diskBusy >= d.Busy) {
			k.diskBusy = d.Busy
		}
		if !d.Repeats() {
			k.diskRead, k.diskWrite = k.diskRead+d.Read, k.diskWrite+d.Write
		}
	}
	for i := range s.Nets {
		n := &s.Nets[i]
		if n.Name == loopback {
			k.back, k.looped = ratio(float64(n.Received), s.Seconds), ratio(float64(n.Sent), s.Seconds)
			continue
		}
		k.received, k.sent = k.received+float64(n.Received), k.sent+float64(n.Sent)
	}
	k.received, k.sent = ratio(k.received, s.Seconds), ratio(k.sent, s.Seconds)
}
