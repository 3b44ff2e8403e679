package hosts

import (
	"maps"
	"slices"
	"strings"

	"weir/internal/stats"
	"weir/loadtest/analysis/basics"
	"weir/monitor"
)

// throttledShare returns the share of periods in which the clients' CPU quota was used up, or nil
// if there is no quota.
func (h *hostSum) throttledShare() *float64 {
	if h.Quota <= 0 {
		return nil
	}
	return new(stats.Ratio(h.throttled.Or0(), h.periods.Or0()))
}

func (h *hostSum) figure() Host {
	f := Host{HostFigure: h.HostFigure}
	f.spreads = map[string]Ranged{}
	f.CPU, f.IOWait, f.Steal, f.BusiestCore = h.cpu.Value(), h.iowait.Value(), h.steal.Value(), h.core.Value()
	f.CPUWaits, f.IRQ, f.Throttled = h.waits.Value(), h.interrupts.Value(), h.throttledShare()
	f.UserSystem, f.unwatched, f.Kernel = h.UserSystem.Value(), h.others.Or0(), h.kernel.Or0()
	f.Contended, f.Saturated = h.contended.Value(), h.busy.Or0()
	f.ServerCores, f.ClientCores = h.serverCPU.Value(), h.clientCPU.Value()
	for name, d := range h.disks {
		d.idle(h.looks)
		if v := d.busy.Value(); v != nil && !h.aside[name] && (f.DiskBusy == nil || *v > *f.DiskBusy || *v == *f.DiskBusy && name < f.Disk) {
			f.Disk, f.DiskBusy, f.DiskQueue = name, v, d.queue.Value()
			f.keep(ResourceDisk, &d.spread)
		}
	}
	h.fillDisks(&f)
	if f.Scratch = h.scratch(); f.Scratch != nil {
		f.keep(ResourceScratch, &h.disks[f.Scratch.Disk].spread)
	}
	var most *spread
	for core := range basics.Each(h.cores) {
		if mean, ok := core.mean(); ok && (f.MostUsedCore == nil || mean > *f.MostUsedCore) {
			f.MostUsedCore, most = &mean, core
		}
	}
	if most != nil {
		f.keep(ResourceCore, most)
	}
	f.keep(ResourceCPU, &h.allCores)
	f.keep(ResourceGenerator, &h.clients)
	f.DiskRead, f.DiskWrite = h.read.Or0(), h.write.Or0()
	f.NetReceived, f.NetSent = max(h.received.Or0(), h.loReceived.Or0()), max(h.sent.Or0(), h.loSent.Or0())
	f.Retransmits, f.ListenDrops, f.Connections = h.retransmits.Or0(), h.drops.Or0(), h.connections.Or0()
	f.SwapGrowth = h.lastSwap - h.firstSwap
	h.fillNets(&f)
	for _, name := range slices.Sorted(maps.Keys(h.services)) {
		g := h.services[name]
		g.Name = name
		g.Cores, _ = g.used.interval()
		g.Busiest, _ = g.top.interval()
		g.Other, _ = g.rest.interval()
		f.Groups = append(f.Groups, g.GroupFigure)
	}
	if h.server != nil {
		f.Service = h.server.figure()
	}
	if h.link != nil {
		f.Link = h.link.figure()
	}
	return f
}

// leastShare is the minimum traffic of a disk in use, as a share of the busiest disk's traffic.
const leastShare = 0.1

// fillDisks describes the disks that share the busiest disk's work: disks of the same kind (loop
// devices repeat the traffic of the disks below them) with a significant part of its traffic.
func (h *hostSum) fillDisks(f *Host) {
	busiest := h.disks[f.Disk]
	if busiest == nil {
		return
	}
	var mean Mean
	full, used := 0, 0
	for _, name := range slices.Sorted(maps.Keys(h.disks)) { // a fixed order of summation
		d := h.disks[name]
		kind := (&monitor.Disk{Name: name}).Repeats() == (&monitor.Disk{Name: f.Disk}).Repeats()
		if kind && !h.aside[name] && d.busy.Or0() >= 0.01 && d.read.Or0()+d.write.Or0() >= leastShare*(busiest.read.Or0()+busiest.write.Or0()) {
			used++
			mean.Add(d.busy.Or0(), 1)
			if d.busy.Or0() >= diskFull {
				full++
			}
		}
	}
	if used > 1 {
		f.DisksInUse, f.DisksBusy, f.DisksFull = used, mean.Value(), full
	}
}

// fillNets selects the interface whose traffic is closest to its speed.
func (h *hostSum) fillNets(f *Host) {
	most := -1.0
	for name, n := range h.nets {
		if name == Loopback {
			continue
		}
		received, sent := n.received.Or0(), n.sent.Or0()
		if n.speed <= 0 {
			if top := max(received, sent); top > f.UnknownTraffic || top == f.UnknownTraffic && name < f.UnknownName {
				f.UnknownTraffic, f.UnknownName = top, name
			}
			continue
		}
		in, out := stats.Ratio(8*received, n.speed), stats.Ratio(8*sent, n.speed)
		if top := max(in, out); top > most || top == most && name < f.Interface {
			most = top
			f.Interface, f.NetSpeed, f.ReceivedShare, f.SentShare = name, n.speed, &in, &out
			f.keep(ResourceReceived, &n.in)
			f.keep(ResourceSent, &n.out)
		}
	}
}

// scratch returns the disk that holds the copies of files of jobs, or nil if it is not a disk of
// this host.
func (h *hostSum) scratch() *DiskFigure {
	for _, name := range slices.Sorted(maps.Keys(h.disks)) {
		if d := h.disks[name]; h.device != "" && liesOn(h.device, name) {
			return &DiskFigure{Host: h.Host, Disk: name, Busy: d.busy.Value(), Read: d.read.Or0(), Write: d.write.Or0(), Queue: d.queue.Value(),
				IOWait: h.iowait.Value()}
		}
	}
	return nil
}

// liesOn reports whether a device is the disk of that name, or a partition of it: sda1 of sda,
// nvme0n1p2 of nvme0n1.
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
