package export

import (
	"math"

	"weir/monitor"
)

// hostRows returns the metrics of a whole host. The statistics of a server are samples of a host
// without most of them.
func hostRows() shape[monitor.Sample] {
	type sample = monitor.Sample
	s := shape[sample]{group: "host", labels: []string{"host", "role"}}
	s.gauge("host_cores", "Cores of the host.", func(v *sample) float64 { return unlessZero(float64(v.Cores)) })
	s.each("host_cpu_ratio", "Share of the time of all cores, by mode.", Gauge, false, "mode",
		[]string{"user", "system", "irq", "iowait", "steal", "idle"}, cpuOf)
	s.gauge("host_busiest_core_ratio", "Share of time in which the busiest core was busy.", func(v *sample) float64 {
		most := math.NaN()
		for _, x := range v.Core {
			if !(most >= x) {
				most = x
			}
		}
		return most
	})
	s.gauge("host_load1", "Load average over one minute.", func(v *sample) float64 { return ofHost(v, v.Load) })
	memory := func(value func(*monitor.Memory) int64) func(*sample) float64 {
		return ofPart(func(v *sample) *monitor.Memory { return v.Memory }, func(p *monitor.Memory) float64 { return float64(value(p)) })
	}
	s.gauge("host_memory_bytes", "Memory of the host.", memory(func(m *monitor.Memory) int64 { return m.Total }))
	s.gauge("host_memory_available_bytes", "Memory available to programs.", memory(func(m *monitor.Memory) int64 { return m.Available }))
	s.gauge("host_swap_used_bytes", "Memory that is swapped out.", memory(func(m *monitor.Memory) int64 { return m.Swapped }))
	tcp := func(value func(*monitor.TCP) int64) func(*sample) float64 {
		return ofPart(func(v *sample) *monitor.TCP { return v.TCP }, func(p *monitor.TCP) float64 { return float64(value(p)) })
	}
	s.gauge("host_tcp_established", "Established TCP connections.", tcp(func(t *monitor.TCP) int64 { return t.Established }))
	s.counter("host_tcp_retransmitted_segments", "Retransmitted TCP segments.", tcp(func(t *monitor.TCP) int64 { return t.Retransmits }))
	s.counter("host_tcp_listen_drops", "Connections refused because of a full listen queue.",
		tcp(func(t *monitor.TCP) int64 { return t.ListenDrops }))
	s.each("link_busy_ratio", "Share of time in which an emulated link was sending.", Gauge, false, "way",
		[]string{monitor.ToClients, monitor.FromClients}, linkBusy)
	s.counter("host_sampling_cpu_seconds", "CPU time used for monitoring the host.", func(v *sample) float64 { return v.Cost })
	s.rareCounter("host_incomplete_samples", "Incomplete samples.", func(v *sample) float64 { return flag(v.Error != "") })
	return s
}

// linkBusy returns the busy share of one direction of an emulated link.
func linkBusy(v *monitor.Sample, way string) float64 {
	switch {
	case v.Link == nil:
		return math.NaN()
	case way == monitor.ToClients:
		return v.Link.ToClients.Busy
	default:
		return v.Link.FromClients.Busy
	}
}

func cpuOf(v *monitor.Sample, mode string) float64 {
	c := v.CPU
	if c == nil {
		return math.NaN()
	}
	switch mode {
	case "user":
		return c.User
	case "system":
		return c.System
	case "irq":
		return c.IRQ
	case "iowait":
		return c.IOWait
	case "steal":
		return c.Steal
	default:
		return c.Idle
	}
}

// ofHost returns x if v is a sample of a whole host, else NaN.
func ofHost(v *monitor.Sample, x float64) float64 {
	if v.CPU == nil {
		return math.NaN()
	}
	return x
}

// A diskSecond is a disk with the length of the interval of its rates.
type diskSecond struct {
	monitor.Disk
	seconds float64
}

func diskRows() shape[diskSecond] {
	s := shape[diskSecond]{group: "disk", labels: []string{"host", "role", "disk"}}
	s.counter("disk_read_bytes", "Bytes read from the disk.", func(d *diskSecond) float64 { return d.Read * d.seconds })
	s.counter("disk_written_bytes", "Bytes written to the disk.", func(d *diskSecond) float64 { return d.Write * d.seconds })
	s.counter("disk_operations", "Operations of the disk.", func(d *diskSecond) float64 { return d.Ops * d.seconds })
	s.gauge("disk_queue", "Requests waiting or in service, mean.", func(d *diskSecond) float64 { return d.Queue })
	s.gauge("disk_busy_ratio", "Share of time with a request in service.", func(d *diskSecond) float64 { return d.Busy })
	return s
}

func netRows() shape[monitor.Net] {
	type net = monitor.Net
	s := shape[net]{group: "net", labels: []string{"host", "role", "interface"}}
	s.counter("net_received_bytes", "Bytes received, headers included.", func(n *net) float64 { return float64(n.Received) })
	s.counter("net_sent_bytes", "Bytes sent, headers included.", func(n *net) float64 { return float64(n.Sent) })
	s.counter("net_received_packets", "Packets received, as the kernel counts them.", func(n *net) float64 { return float64(n.PacketsIn) })
	s.counter("net_sent_packets", "Packets sent, as the kernel counts them.", func(n *net) float64 { return float64(n.PacketsOut) })
	s.counter("net_dropped_packets", "Packets dropped.", func(n *net) float64 { return float64(n.Drops) })
	s.gauge("net_speed_bytes_per_second", "Speed of the interface, as reported by its driver.",
		func(n *net) float64 { return unlessZero(n.Speed / 8) })
	return s
}

// processRows returns the metrics of a monitored group of processes. The role is the role of the
// processes, not of their host.
func processRows() shape[monitor.Proc] {
	type proc = monitor.Proc
	s := shape[proc]{group: "process", labels: []string{"host", "role", "process"}}
	s.gauge("process_members", "Processes of the group.", func(p *proc) float64 { return float64(p.Count) })
	s.gauge("process_threads", "Threads of the group.", func(p *proc) float64 { return float64(p.Threads) })
	s.each("process_cpu_seconds_total", "CPU time of the group.", Counter, false, "mode", []string{"user", "system"},
		func(p *proc, mode string) float64 { return byMode(mode, p.User, p.System) })
	s.gauge("process_resident_bytes", "Resident memory of the group.", func(p *proc) float64 { return float64(p.RSS) })
	s.gauge("process_open_files", "Open files of the group.", func(p *proc) float64 { return float64(p.Files) })
	s.counter("process_read_bytes", "Bytes read by system calls, files and sockets.", func(p *proc) float64 { return float64(p.Read) })
	s.counter("process_written_bytes", "Bytes written by system calls, files and sockets.",
		func(p *proc) float64 { return float64(p.Written) })
	s.rareCounter("process_sent_bytes", "Payload sent, as counted by the service itself.", func(p *proc) float64 { return float64(p.Sent) })
	s.rareCounter("process_received_bytes", "Payload received, as counted by the service itself.",
		func(p *proc) float64 { return float64(p.Received) })
	return s
}

// serviceRows returns the statistics that a server of the service reports.
func serviceRows() shape[monitor.Service] {
	type service = monitor.Service
	s := shape[service]{group: "service", labels: []string{"host", "service_kind", "program"}}
	s.gauge("service_threads", "Threads of the server's pool.", func(v *service) float64 { return float64(v.Threads) })
	s.gauge("service_idle_threads", "Idle threads of the pool.", func(v *service) float64 { return float64(v.Idle) })
	s.gauge("service_queue", "Jobs that are waiting for a thread.", func(v *service) float64 { return float64(v.Queue) })
	s.gauge("service_connections", "Open connections.", func(v *service) float64 { return float64(v.Connections) })
	s.each("service_cpu_seconds_total", "CPU time of the server.", Counter, false, "mode", []string{"user", "system"},
		func(v *service, mode string) float64 { return byMode(mode, v.User, v.System) })
	for _, c := range []struct {
		name, help string
		of         func(*service) int64
	}{
		{"thread_limit_met", "Requests for a thread beyond the limit of the pool.", func(v *service) int64 { return v.Limited }},
		{"connected", "Accepted connections.", func(v *service) int64 { return v.Connected }},
		{"received_bytes", "Bytes received, protocol included.", func(v *service) int64 { return v.Received }},
		{"sent_bytes", "Bytes sent, protocol included.", func(v *service) int64 { return v.Sent }},
		{"logins", "Attempted logins.", func(v *service) int64 { return v.Logins }},
		{"proven_logins", "Authenticated logins.", func(v *service) int64 { return v.Proven }},
		{"refused_logins", "Failed authentications.", func(v *service) int64 { return v.Refused }},
		{"redirects", "Redirects of clients to other servers.", func(v *service) int64 { return v.Redirects }},
		{"errors", "Error responses.", func(v *service) int64 { return v.Errors }},
		{"waits", "Responses that asked clients to wait.", func(v *service) int64 { return v.Waits }},
		{"async_operations", "Asynchronous operations of the file system.", func(v *service) int64 { return v.Async }},
		{"vector_segments", "Segments of vector reads and writes.", func(v *service) int64 { return v.Segments }},
	} {
		s.counter("service_"+c.name, c.help, func(v *service) float64 { return float64(c.of(v)) })
	}
	s.each("service_requests_total", "Requests by kind.", Counter, true, "request",
		[]string{"open", "refresh", "read", "preread", "readv", "writev", "write", "sync", "getfile", "putfile", "other"},
		func(v *service, kind string) float64 { return float64(v.Ops[kind]) })
	return s
}

// balancedRows returns the statistics that a balancer reports for each server behind it.
func balancedRows() shape[monitor.Balanced] {
	type server = monitor.Balanced
	s := shape[server]{group: "backend", labels: []string{"service", "backend"}}
	s.gauge("backend_sessions", "Open sessions with the server.", func(v *server) float64 { return float64(v.Connections) })
	s.gauge("backend_session_limit", "Limit of concurrent sessions; 0: no limit.", func(v *server) float64 { return float64(v.Limit) })
	s.gauge("backend_queue", "Sessions queued for the server.", func(v *server) float64 { return float64(v.Queue) })
	s.gauge("backend_weight", "Weight in the distribution of new sessions.", func(v *server) float64 { return float64(v.Weight) })
	s.counter("backend_connected", "Sessions started.", func(v *server) float64 { return float64(v.Connected) })
	s.counter("backend_received_bytes", "Bytes passed from clients.", func(v *server) float64 { return float64(v.Received) })
	s.counter("backend_sent_bytes", "Bytes passed to clients.", func(v *server) float64 { return float64(v.Sent) })
	s.counter("backend_errors", "Failed connections and aborted responses.", func(v *server) float64 { return float64(v.Errors) })
	return s
}

// transferRows returns the transfers in the log of a backend, counted at their end.
func transferRows() shape[monitor.Transfers] {
	type transfers = monitor.Transfers
	s := shape[transfers]{group: "transfers", labels: []string{"host"}}
	s.counter("transfers_done", "Transfers that succeeded.", func(v *transfers) float64 { return float64(v.Done) })
	s.counter("transfers_failed", "Transfers that failed.", func(v *transfers) float64 { return float64(v.Failed) })
	s.counter("transfers_moved_bytes", "Payload of ended transfers.", func(v *transfers) float64 {
		sum := int64(0)
		for i := range v.Spans {
			sum += v.Spans[i].Moved
		}
		return float64(sum)
	})
	return s
}
