package links

import (
	"slices"

	"weir/internal/stats"
	"weir/link"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/challenge"
	"weir/monitor"
)

// hostSums are the sums of the samples by site and minute, and those of weir's own machine.
type hostSums struct {
	sites  map[string][]int // by name of a host: indexes of sites
	lines  map[string]int   // by name of an emulated line, in the same way
	bySite [][]usage
	own    []usage
	nets   map[string]*netSum // by host
}

// A usage sums samples of the hosts of a site in a minute: shares of resources times seconds.
type usage struct {
	seconds        float32 // of samples
	disk, cpu      resource
	received, sent resource // of the interface
	in, out        resource // of the site's emulated line
	dropped        [2]int64 // packets, to the site and from it
}

// A resource sums the usage of a resource: share times seconds, and the seconds.
type resource struct{ sum, seconds float32 }

func (r *resource) add(share, seconds float64) {
	r.sum, r.seconds = r.sum+float32(share*seconds), r.seconds+float32(seconds)
}

// mean returns the mean share. ok is false if it was not measured.
func (r *resource) mean() (share float64, ok bool) {
	return stats.Ratio(float64(r.sum), float64(r.seconds)), r.seconds > 0
}

func newHostSums(c *challenge.Challenge) hostSums {
	h := hostSums{sites: map[string][]int{}, lines: map[string]int{}, bySite: make([][]usage, len(c.Sites)),
		nets: map[string]*netSum{}}
	for i := range c.Sites {
		h.lines[monitor.LinkHost(c.Sites[i].Name)] = i
		for _, host := range c.Sites[i].Hosts {
			if !slices.Contains(h.sites[host.Name], i) {
				h.sites[host.Name] = append(h.sites[host.Name], i)
			}
		}
	}
	return h
}

// add adds a sample to its sites. A sample of a client belongs to weir's own machine.
func (h *hostSums) add(minute int, m *monitor.Sample) {
	if m.Link != nil {
		if i, known := h.lines[m.Host]; known {
			usageAt(&h.bySite[i], minute).line(m)
		}
		return
	}
	h.network(m)
	for _, i := range h.sites[m.Host] {
		usageAt(&h.bySite[i], minute).add(m)
	}
	if m.Role == monitor.RoleClient || m.Role == monitor.RoleBoth {
		usageAt(&h.own, minute).add(m)
	}
}

func usageAt(all *[]usage, i int) *usage {
	for len(*all) <= i {
		*all = append(*all, usage{})
	}
	return &(*all)[i]
}

// line adds the sample of the emulated line of the site.
func (u *usage) line(m *monitor.Sample) {
	u.seconds += float32(m.Seconds)
	for i, way := range []*link.Traffic{&m.Link.ToClients, &m.Link.FromClients} {
		[]*resource{&u.in, &u.out}[i].add(min(1, way.Busy), m.Seconds)
		u.dropped[i] += way.Dropped
	}
}

func (u *usage) add(m *monitor.Sample) {
	u.seconds += float32(m.Seconds)
	if c := m.CPU; c != nil {
		share := c.Busy()
		if m.Waits != nil {
			share = max(share, min(1, 2**m.Waits)) // a quota or other guests take the cores
		}
		u.cpu.add(min(1, share), m.Seconds)
	}
	busy, known := 0.0, false
	for d := range basics.Each(m.Disks) {
		if !d.Repeats() {
			busy, known = max(busy, d.Busy), true
		}
	}
	if known {
		u.disk.add(min(1, busy), m.Seconds)
	}
	var in, out float64
	for n := range basics.Each(m.Nets) {
		if n.Speed > 0 {
			in = max(in, stats.Ratio(8*float64(n.Received), n.Speed*m.Seconds))
			out = max(out, stats.Ratio(8*float64(n.Sent), n.Speed*m.Seconds))
		}
	}
	if in > 0 || out > 0 {
		u.received.add(in, m.Seconds)
		u.sent.add(out, m.Seconds)
	}
}

// join adds the sums of another minute.
func (u *usage) join(o *usage) {
	u.seconds += o.seconds
	for _, r := range [][2]*resource{{&u.disk, &o.disk}, {&u.cpu, &o.cpu}, {&u.received, &o.received}, {&u.sent, &o.sent},
		{&u.in, &o.in}, {&u.out, &o.out}} {
		r[0].sum, r[0].seconds = r[0].sum+r[1].sum, r[0].seconds+r[1].seconds
	}
	for i, n := range o.dropped {
		u.dropped[i] += n
	}
}
