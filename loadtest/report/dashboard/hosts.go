package dashboard

import (
	"math"

	"weir/loadtest/analysis/hosts"
	"weir/loadtest/measure"
	"weir/monitor"
)

// A store is a data server.
type store struct {
	track *track // one column: bytes per second
	moved int64
	done  int64
}

// othersName is the store of all data servers beyond mostStores.
const othersName = "(others)"

// store counts iv for its data server.
func (h *history) store(iv *measure.Interval) {
	name := short(iv.Server, mostName)
	s := h.stores[name]
	if s == nil && len(h.stores) >= mostStores {
		name = othersName
		s = h.stores[name]
	}
	if s == nil {
		s = &store{track: newTrack(1)}
		h.stores[name] = s
	}
	s.moved += iv.Moved
	s.done += iv.Done
	i := s.track.add(h.since(iv.Start))
	if i < 0 { // the clock was set back: the bytes are counted, and not drawn
		return
	}
	y := &s.track.cols[0][i]
	if isUnknown(*y) {
		*y = 0
	}
	*y += float32(perSecond(iv.Moved, iv.Seconds))
}

// Columns of a host.
const (
	hostCPU = iota
	hostWait
	hostServer
	hostClient
	hostDiskBusy
	hostRead
	hostWrite
	hostReceived
	hostSent
	hostColumns
)

func hostNames() []string {
	return []string{"cpu", "iowait", "server", "client", "disk_busy", "read", "write", "received", "sent"}
}

// A host contains the measurements of one host.
type host struct {
	name, role string
	cores      int
	track      *track
	busy       float64   // recent load of the host
	now        []float32 // the newest row
	at         float64
}

// Columns of the two sides: cores used by the processes of each side, and available cores.
const (
	serverUsed = iota
	serverCores
	clientUsed
	clientCores
	sideColumns
)

// host adds s to its host and to its side.
func (h *history) host(s *monitor.Sample) {
	if s.Nothing() || s.Service != nil && len(s.Procs) == 0 || s.Balancer != nil || s.Transfers != nil {
		return // its process is among the processes of its host, or it reports on no machine
	}
	name := short(s.Host, mostName)
	x := h.hosts[name]
	if x == nil {
		if len(h.hosts) >= mostHosts {
			return
		}
		x = &host{name: name, track: newTrack(hostColumns), now: make([]float32, hostColumns)}
		h.hosts[name] = x
	}
	x.role, x.cores = short(string(s.Role), mostName), max(x.cores, s.Cores)
	start := h.start
	if start.IsZero() {
		start = s.Time
	}
	p := hosts.NewHostPoint(s, start)
	cores := max(1, float64(x.cores))
	for c, v := range [...]float64{p.CPU, p.IOWait, p.ServerCores / cores, p.ClientCores / cores, p.DiskBusy, p.DiskRead, p.DiskWrite,
		p.Received, p.Sent} {
		if v < 0 {
			v = math.NaN()
		}
		x.now[c] = float32(v)
	}
	x.at = p.At
	const newest = 0.2 // weight of a second in the recent load of a host
	x.busy += newest * (max(0, p.CPU, p.DiskBusy) - x.busy)
	if h.start.IsZero() || p.At < 0 {
		return // before the load
	}
	if i := x.track.add(p.At); i >= 0 {
		for c, v := range x.now {
			x.track.cols[c][i] = v
		}
	}
	h.side(&p, cores)
}

// side adds the CPU use of a host's processes to the second of the sample.
func (h *history) side(p *hosts.HostPoint, cores float64) {
	i := h.sides.add(math.Floor(p.At))
	if i < 0 { // a host that reports late: the previous second at most
		if i = len(h.sides.at) - 2; i < 0 || h.sides.at[i] != math.Floor(p.At) {
			return
		}
	}
	add := func(column int, x float64) {
		y := &h.sides.cols[column][i]
		if isUnknown(*y) {
			*y = 0
		}
		*y += float32(x)
	}
	if p.ServerCores >= 0 {
		add(serverUsed, p.ServerCores)
		add(serverCores, cores)
	}
	if p.ClientCores >= 0 {
		add(clientUsed, p.ClientCores)
		add(clientCores, cores)
	}
}
