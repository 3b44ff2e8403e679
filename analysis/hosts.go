package analysis

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"weir/monitor"
	"weir/scenario"
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

// add leaves out what is not known, which is NaN.
func (m *mean) add(x, weight float64) {
	if !math.IsNaN(x) {
		m.sum += x * weight
		m.weight += weight
	}
}

// or0 returns the average, 0 if nothing was added.
func (m *mean) or0() float64 { return ratio(m.sum, m.weight) }

// value returns nil if nothing was added.
func (m *mean) value() *float64 {
	if m.weight <= 0 {
		return nil
	}
	v := m.or0()
	return &v
}

// A hostSum gathers one host's samples in one step.
type hostSum struct {
	HostFigure
	cpu, iowait, steal, core, serverCPU, clientCPU  mean
	read, write, received, sent, loReceived, loSent mean
	retransmits, userSystem, others                 mean
	contended, saturated, waits                     mean
	used                                            usageSum
	disks                                           map[string]*mean
	server                                          *serverSum // nil: it told nothing of itself
	link                                            *linkSum   // nil: it is no emulated link
	device                                          string     // that jobs' copies of files lie on, if they may be here
	scratch                                         *diskSum   // of that; nil: it is none of the host's disks
}

// A diskSum gathers one disk. The zero value is empty.
type diskSum struct {
	name                     string
	busy, read, write, queue mean
}

func (d *diskSum) add(disk *monitor.Disk, weight float64) {
	d.name = disk.Name
	d.busy.add(disk.Busy, weight)
	d.read.add(disk.Read, weight)
	d.write.add(disk.Write, weight)
	d.queue.add(disk.Queue, weight)
}

func (d *diskSum) figure(host string) *DiskFigure {
	return &DiskFigure{Host: host, Disk: d.name, Busy: d.busy.value(), Read: d.read.or0(), Write: d.write.or0(), Queue: d.queue.value()}
}

// liesOn tells whether a device is the disk of that name, or a partition of it:
// sda1 of sda, nvme0n1p2 of nvme0n1.
func liesOn(device, disk string) bool {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(device, "/dev/"), disk)
	if !ok || disk == "" {
		return false
	}
	if last := disk[len(disk)-1]; last >= '0' && last <= '9' && rest != "" {
		if rest, ok = strings.CutPrefix(rest, "p"); !ok || rest == "" {
			return false
		}
	}
	return strings.Trim(rest, "0123456789") == ""
}

// add counts s with the weight of the time it shares with the hold.
func (h *hostSum) add(s *monitor.Sample, weight float64) {
	k := lookAt(s)
	h.Cores = max(h.Cores, s.Cores)
	h.cpu.add(k.cpu, weight)
	h.iowait.add(k.iowait, weight)
	h.steal.add(k.steal, weight)
	h.core.add(k.core, weight)
	h.serverCPU.add(k.serverCores, weight)
	h.clientCPU.add(k.clientCores, weight)
	h.ServerRSS, h.ClientRSS = max(h.ServerRSS, k.serverRSS), max(h.ClientRSS, k.clientRSS)
	if s.CPU != nil {
		h.userSystem.add(s.CPU.User+s.CPU.System, weight)
		h.contend(s, &k, weight)
	}
	if s.Memory != nil && (h.MemoryAvailable == 0 || k.available < h.MemoryAvailable) {
		h.MemoryAvailable = k.available
	}
	if s.TCP != nil {
		h.retransmits.add(k.retransmits, weight)
	}
	if s.Link != nil {
		if h.link == nil {
			h.link = &linkSum{}
		}
		h.link.add(s, weight)
	}
	h.used.add(s, weight)
	if s.Service != nil { // its host is another sample's
		if h.server == nil {
			h.server = &serverSum{}
		}
		h.server.add(s, weight)
		return
	}
	for i := range s.Disks {
		entryOf(&h.disks, s.Disks[i].Name).add(s.Disks[i].Busy, weight)
		if h.device != "" && liesOn(h.device, s.Disks[i].Name) {
			if h.scratch == nil {
				h.scratch = &diskSum{}
			}
			h.scratch.add(&s.Disks[i], weight)
		}
	}
	h.read.add(k.diskRead, weight)
	h.write.add(k.diskWrite, weight)
	h.received.add(k.received, weight)
	h.sent.add(k.sent, weight)
	h.loReceived.add(k.back, weight)
	h.loSent.add(k.looped, weight)
}

// contend adds what processes used that were not watched, as far as s found the CPU
// used up: from almostFull on in part, from saturated on as a whole.
func (h *hostSum) contend(s *monitor.Sample, k *look, weight float64) {
	h.others.add(k.others, weight)
	if s.Waits != nil {
		h.waits.add(*s.Waits, weight)
	}
	full, watched := min(max(0, (k.cpu-almostFull)/(saturated-almostFull)), 1), 0.0
	for i := range s.Procs {
		watched += ratio(s.Procs[i].User+s.Procs[i].System, s.Seconds)
	}
	lost := full * max(s.CPU.User+s.CPU.System-ratio(watched, float64(s.Cores)), k.others, 0)
	h.saturated.add(full, weight)
	h.contended.add(lost, weight)
}

func (h *hostSum) figure() HostFigure {
	f := h.HostFigure
	f.CPU, f.IOWait, f.Steal, f.BusiestCore = h.cpu.value(), h.iowait.value(), h.steal.value(), h.core.value()
	f.CPUWaits = h.waits.value()
	f.userSystem, f.unwatched = h.userSystem.value(), h.others.or0()
	f.Contended, f.saturated = h.contended.value(), h.saturated.or0()
	f.ServerCores, f.ClientCores = h.serverCPU.value(), h.clientCPU.value()
	for name, busy := range h.disks {
		if v := busy.value(); v != nil && (f.DiskBusy == nil || *v > *f.DiskBusy || *v == *f.DiskBusy && name < f.Disk) {
			f.Disk, f.DiskBusy = name, v
		}
	}
	f.DiskRead, f.DiskWrite = h.read.or0(), h.write.or0()
	f.NetReceived = max(h.received.or0(), h.loReceived.or0())
	f.NetSent = max(h.sent.or0(), h.loSent.or0())
	f.Retransmits = h.retransmits.or0()
	h.used.fill(&f)
	if h.server != nil {
		f.Service = h.server.figure()
	}
	if h.link != nil {
		f.Link = h.link.figure()
	}
	return f
}

// hosts fills in what the hosts went through in t's hold time.
func (d *data) hosts(s *Step, t *total) {
	s.Hosts = []HostFigure{}
	for _, h := range d.watched.steps[t.number] {
		s.Hosts = append(s.Hosts, h.figure())
		if h.scratch != nil && s.Jobs != nil {
			if one := h.scratch.figure(h.Host); s.Scratch == nil || value(one.Busy) > value(s.Scratch.Busy) || value(one.Busy) == value(s.Scratch.Busy) && one.Host < s.Scratch.Host {
				s.Scratch = one
			}
		}
	}
	slices.SortFunc(s.Hosts, func(a, b HostFigure) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Host, b.Host))
	})
	shareServers(s.Hosts)
	s.ServerCores, s.ServerCPU, s.serverByHost = sideCPU(s.Hosts, server, func(h *HostFigure) *float64 { return h.ServerCores })
	s.ClientCores, s.ClientCPU, _ = sideCPU(s.Hosts, client, func(h *HostFigure) *float64 { return h.ClientCores })
}

// sideCPU returns how many cores one side used and which share that is of its
// hosts' cores: of the watched processes where there are any, else of whole
// hosts that have this role alone. The share is of whole hosts, too, where it
// is not known how many cores the hosts of the processes have.
func sideCPU(hosts []HostFigure, role scenario.Role, procs func(*HostFigure) *float64) (cores, share *float64, byHost bool) {
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
