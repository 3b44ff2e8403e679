package analysis

import (
	"cmp"
	"math"
	"slices"
	"time"

	"weir/monitor"
)

// Roles of hosts and of watched processes.
const (
	client = "client"
	server = "server"
)

// spans returns the contiguous stretches of a step's hold time.
func (t *total) spans() [][2]time.Time {
	var all [][2]time.Time
	for i := range t.seconds {
		s := &t.seconds[i]
		if n := len(all); n > 0 && s.start.Sub(all[n-1][1]) < 50*time.Millisecond {
			all[n-1][1] = s.end()
			continue
		}
		all = append(all, [2]time.Time{s.start, s.end()})
	}
	return all
}

// A mean is an average weighted by time. The zero value is empty.
type mean struct{ sum, weight float64 }

func (m *mean) add(x, weight float64) { m.sum += x * weight; m.weight += weight }

// value returns nil if nothing was added.
func (m *mean) value() *float64 {
	if m.weight <= 0 {
		return nil
	}
	v := ratio(m.sum, m.weight)
	return &v
}

// A hostSum gathers one host's samples in one step.
type hostSum struct {
	HostFigure
	cpu, iowait, steal, core, serverCPU, clientCPU  mean
	read, write, received, sent, loReceived, loSent mean
	retransmits, userSystem                         mean
	used                                            *usageSum // nil: not wanted, as for single points
	disks                                           map[string]*mean
	server                                          *serverSum // nil: it told nothing of itself
}

// add counts s with the weight of the time it shares with the hold.
func (h *hostSum) add(s *monitor.Sample, weight float64) {
	h.Cores = max(h.Cores, s.Cores)
	if s.CPU != nil {
		h.cpu.add(s.CPU.Busy(), weight)
		h.userSystem.add(s.CPU.User+s.CPU.System, weight)
		h.iowait.add(s.CPU.IOWait, weight)
		h.steal.add(s.CPU.Steal, weight)
	}
	if len(s.Core) > 0 {
		h.core.add(slices.Max(s.Core), weight)
	}
	if m := s.Memory; m != nil && (h.MemoryAvailable == 0 || m.Available < h.MemoryAvailable) {
		h.MemoryAvailable = m.Available
	}
	if s.TCP != nil {
		h.retransmits.add(ratio(float64(s.TCP.Retransmits), s.Seconds), weight)
	}
	h.addProcs(s, weight)
	if h.used != nil {
		h.used.add(s, weight)
	}
	if s.Service == nil {
		h.addDevices(s, weight)
		return
	}
	if h.server == nil {
		h.server = &serverSum{}
	}
	h.server.add(s, weight)
}

func (h *hostSum) addProcs(s *monitor.Sample, weight float64) {
	cores, rss := map[string]float64{}, map[string]int64{}
	for _, p := range s.Procs {
		cores[p.Role] += ratio(p.User+p.System, s.Seconds)
		rss[p.Role] += p.RSS
	}
	if c, ok := cores[server]; ok {
		h.serverCPU.add(c, weight)
		h.ServerRSS = max(h.ServerRSS, rss[server])
	}
	if c, ok := cores[client]; ok {
		h.clientCPU.add(c, weight)
		h.ClientRSS = max(h.ClientRSS, rss[client])
	}
}

func (h *hostSum) addDevices(s *monitor.Sample, weight float64) {
	var read, write float64
	for _, disk := range s.Disks {
		if h.disks[disk.Name] == nil {
			h.disks[disk.Name] = &mean{}
		}
		h.disks[disk.Name].add(disk.Busy, weight)
		read, write = read+disk.Read, write+disk.Write
	}
	h.read.add(read, weight)
	h.write.add(write, weight)
	var received, sent, loReceived, loSent float64
	for _, n := range s.Nets {
		if n.Name == loopback {
			loReceived, loSent = float64(n.Received), float64(n.Sent)
			continue
		}
		received, sent = received+float64(n.Received), sent+float64(n.Sent)
	}
	h.received.add(ratio(received, s.Seconds), weight)
	h.sent.add(ratio(sent, s.Seconds), weight)
	h.loReceived.add(ratio(loReceived, s.Seconds), weight)
	h.loSent.add(ratio(loSent, s.Seconds), weight)
}

func (h *hostSum) figure() HostFigure {
	f := h.HostFigure
	f.CPU, f.IOWait, f.Steal, f.BusiestCore = h.cpu.value(), h.iowait.value(), h.steal.value(), h.core.value()
	f.userSystem = h.userSystem.value()
	f.ServerCores, f.ClientCores = h.serverCPU.value(), h.clientCPU.value()
	for name, busy := range h.disks {
		if v := busy.value(); v != nil && (f.DiskBusy == nil || *v > *f.DiskBusy || *v == *f.DiskBusy && name < f.Disk) {
			f.Disk, f.DiskBusy = name, v
		}
	}
	f.DiskRead, f.DiskWrite = ratio(h.read.sum, h.read.weight), ratio(h.write.sum, h.write.weight)
	f.NetReceived = max(ratio(h.received.sum, h.received.weight), ratio(h.loReceived.sum, h.loReceived.weight))
	f.NetSent = max(ratio(h.sent.sum, h.sent.weight), ratio(h.loSent.sum, h.loSent.weight))
	f.Retransmits = ratio(h.retransmits.sum, h.retransmits.weight)
	if h.used != nil {
		h.used.fill(&f)
	}
	if h.server != nil {
		f.Service = h.server.figure()
	}
	return f
}

// hosts fills in what the hosts went through in t's hold time.
func (d *data) hosts(s *Step, t *total) {
	s.Hosts = []HostFigure{}
	for _, h := range d.watched.steps[t.number] {
		s.Hosts = append(s.Hosts, h.figure())
	}
	slices.SortFunc(s.Hosts, func(a, b HostFigure) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Host, b.Host))
	})
	shareServers(s.Hosts)
	s.ServerCores, s.ServerCPU, s.serverByHost = sideCPU(s.Hosts, server, func(h *HostFigure) *float64 { return h.ServerCores })
	s.ClientCores, s.ClientCPU, s.clientByHost = sideCPU(s.Hosts, client, func(h *HostFigure) *float64 { return h.ClientCores })
}

// sideCPU returns how many cores one side used and which share that is of its
// hosts' cores: of the watched processes where there are any, else of whole
// hosts that have this role alone. The share is of whole hosts, too, where it
// is not known how many cores the hosts of the processes have.
func sideCPU(hosts []HostFigure, role string, procs func(*HostFigure) *float64) (cores, share *float64, byHost bool) {
	sum := func(of func(*HostFigure) *float64) (*float64, *float64) {
		var used, all float64
		found, known := false, true
		for i := range hosts {
			if c := of(&hosts[i]); c != nil {
				used, all, found = used+*c, all+float64(hosts[i].Cores), true
				known = known && hosts[i].Cores > 0
			}
		}
		if !found {
			return nil, nil
		}
		if all <= 0 || !known {
			return &used, nil
		}
		part := min(1, ratio(used, all))
		return &used, &part
	}
	if cores, share = sum(procs); share != nil {
		return cores, share, false
	}
	whole, of := sum(func(h *HostFigure) *float64 {
		if h.Role != role || h.CPU == nil {
			return nil
		}
		busy := *h.CPU * math.Max(1, float64(h.Cores))
		return &busy
	})
	if of == nil && cores != nil {
		return cores, nil, false
	}
	return whole, of, true
}
