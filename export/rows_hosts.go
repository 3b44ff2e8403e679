package export

import (
	"math"

	"weir/monitor"
)

// hostRows has what is known of a whole host. A server that tells of itself is
// a host without all this.
func hostRows() shape[monitor.Sample] {
	type sample = monitor.Sample
	s := shape[sample]{group: "host", labels: []string{"host", "role"}}
	s.gauge("host_cores", "Cores of the host.", func(v *sample) float64 { return unlessZero(float64(v.Cores)) })
	s.each("host_cpu_ratio", "Share of time that all cores together spent in each mode.", Gauge, false, "mode",
		[]string{"user", "system", "irq", "iowait", "steal", "idle"}, cpuOf)
	s.gauge("host_busiest_core_ratio", "Share of time that the busiest core worked.", func(v *sample) float64 {
		most := math.NaN()
		for _, x := range v.Core {
			if !(most >= x) {
				most = x
			}
		}
		return most
	})
	s.gauge("host_load1", "The kernel's load average over a minute.", func(v *sample) float64 { return ofHost(v, v.Load) })
	memory := func(value func(*monitor.Memory) int64) func(*sample) float64 {
		return of(func(v *sample) *monitor.Memory { return v.Memory }, func(p *monitor.Memory) float64 { return float64(value(p)) })
	}
	s.gauge("host_memory_bytes", "Memory of the host.", memory(func(m *monitor.Memory) int64 { return m.Total }))
	s.gauge("host_memory_available_bytes", "Memory that programs could still get.", memory(func(m *monitor.Memory) int64 { return m.Available }))
	s.gauge("host_swap_used_bytes", "Memory that was moved to disk.", memory(func(m *monitor.Memory) int64 { return m.Swapped }))
	tcp := func(value func(*monitor.TCP) int64) func(*sample) float64 {
		return of(func(v *sample) *monitor.TCP { return v.TCP }, func(p *monitor.TCP) float64 { return float64(value(p)) })
	}
	s.gauge("host_tcp_established", "TCP connections now.", tcp(func(t *monitor.TCP) int64 { return t.Established }))
	s.counter("host_tcp_retransmitted_segments", "TCP segments sent again.", tcp(func(t *monitor.TCP) int64 { return t.Retransmits }))
	s.counter("host_tcp_listen_drops", "Connections that a full listen queue refused.", tcp(func(t *monitor.TCP) int64 { return t.ListenDrops }))
	s.each("link_busy_ratio", "Share of time in which the wire of an emulated link was sending.", Gauge, false, "way", []string{monitor.ToClients, monitor.FromClients}, linkBusy)
	s.counter("host_sampling_cpu_seconds", "CPU time that watching the host took.", func(v *sample) float64 { return v.Cost })
	s.seldom("host_incomplete_samples", "Samples that are not whole.", func(v *sample) float64 { return flag(v.Error != "") })
	return s
}

// linkBusy is how busy one way of an emulated link was.
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

// cpuOf is the share of one mode.
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

// ofHost is x where v is of a whole host.
func ofHost(v *monitor.Sample, x float64) float64 {
	if v.CPU == nil {
		return math.NaN()
	}
	return x
}

// A diskSecond is a disk and how long its rates held.
type diskSecond struct {
	monitor.Disk
	seconds float64
}

func diskRows() shape[diskSecond] {
	s := shape[diskSecond]{group: "disk", labels: []string{"host", "role", "disk"}}
	s.counter("disk_read_bytes", "Bytes read from the disk.", func(d *diskSecond) float64 { return d.Read * d.seconds })
	s.counter("disk_written_bytes", "Bytes written to the disk.", func(d *diskSecond) float64 { return d.Write * d.seconds })
	s.counter("disk_operations", "Operations of the disk.", func(d *diskSecond) float64 { return d.Ops * d.seconds })
	s.gauge("disk_queue", "Mean requests waiting or in service.", func(d *diskSecond) float64 { return d.Queue })
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
	s.gauge("net_speed_bytes_per_second", "Speed of the interface, as its driver says.", func(n *net) float64 { return unlessZero(n.Speed / 8) })
	return s
}

// processRows has what is known of a watched group of processes. Its role is
// that of the processes, not of their host.
func processRows() shape[monitor.Proc] {
	type proc = monitor.Proc
	s := shape[proc]{group: "process", labels: []string{"host", "role", "process"}}
	s.gauge("process_members", "Processes of the group.", func(p *proc) float64 { return float64(p.Count) })
	s.gauge("process_threads", "Threads of the group.", func(p *proc) float64 { return float64(p.Threads) })
	s.each("process_cpu_seconds_total", "CPU time of the group.", Counter, false, "mode", []string{"user", "system"}, func(p *proc, mode string) float64 { return byMode(mode, p.User, p.System) })
	s.gauge("process_resident_bytes", "Memory that the group holds.", func(p *proc) float64 { return float64(p.RSS) })
	s.gauge("process_open_files", "Open files of the group.", func(p *proc) float64 { return float64(p.Files) })
	s.counter("process_read_bytes", "Bytes read by system calls, files and sockets.", func(p *proc) float64 { return float64(p.Read) })
	s.counter("process_written_bytes", "Bytes written by system calls, files and sockets.", func(p *proc) float64 { return float64(p.Written) })
	s.seldom("process_sent_bytes", "Payload sent, as the service itself counts it.", func(p *proc) float64 { return float64(p.Sent) })
	s.seldom("process_received_bytes", "Payload received, as the service itself counts it.", func(p *proc) float64 { return float64(p.Received) })
	return s
}

// serviceRows has what a server of the service says of itself.
func serviceRows() shape[monitor.Service] {
	type service = monitor.Service
	s := shape[service]{group: "service", labels: []string{"host", "service_kind", "program"}}
	s.gauge("service_threads", "Threads of the server's pool.", func(v *service) float64 { return float64(v.Threads) })
	s.gauge("service_idle_threads", "Threads of the pool that wait for work.", func(v *service) float64 { return float64(v.Idle) })
	s.gauge("service_queue", "Jobs that wait for a thread.", func(v *service) float64 { return float64(v.Queue) })
	s.gauge("service_connections", "Connections now.", func(v *service) float64 { return float64(v.Connections) })
	s.each("service_cpu_seconds_total", "CPU time of the server.", Counter, false, "mode", []string{"user", "system"}, func(v *service, mode string) float64 { return byMode(mode, v.User, v.System) })
	for _, c := range []struct {
		name, help string
		of         func(*service) int64
	}{
		{"thread_limit_met", "Times that another thread was wanted and none was allowed.", func(v *service) int64 { return v.Limited }},
		{"connected", "Connections that were made.", func(v *service) int64 { return v.Connected }},
		{"received_bytes", "Bytes received, protocol included.", func(v *service) int64 { return v.Received }},
		{"sent_bytes", "Bytes sent, protocol included.", func(v *service) int64 { return v.Sent }},
		{"logins", "Logins tried.", func(v *service) int64 { return v.Logins }},
		{"proven_logins", "Logins of clients that proved who they are.", func(v *service) int64 { return v.Proven }},
		{"refused_logins", "Authentications that failed.", func(v *service) int64 { return v.Refused }},
		{"redirects", "Answers that sent clients to other servers.", func(v *service) int64 { return v.Redirects }},
		{"errors", "Answers that were errors.", func(v *service) int64 { return v.Errors }},
		{"waits", "Answers that told clients to wait.", func(v *service) int64 { return v.Waits }},
		{"async_operations", "Asynchronous operations of the file system.", func(v *service) int64 { return v.Async }},
		{"vector_segments", "Parts of vector reads and writes.", func(v *service) int64 { return v.Segments }},
	} {
		s.counter("service_"+c.name, c.help, func(v *service) float64 { return float64(c.of(v)) })
	}
	s.each("service_requests_total", "Requests by kind.", Counter, true, "request",
		[]string{"open", "refresh", "read", "preread", "readv", "writev", "write", "sync", "getfile", "putfile", "other"},
		func(v *service, kind string) float64 { return float64(v.Ops[kind]) })
	return s
}

// balancedRows has what a balancer says of each server behind it.
func balancedRows() shape[monitor.Balanced] {
	type server = monitor.Balanced
	s := shape[server]{group: "backend", labels: []string{"service", "backend"}}
	s.gauge("backend_sessions", "Sessions with the server now.", func(v *server) float64 { return float64(v.Connections) })
	s.gauge("backend_session_limit", "Most sessions that it may have at once; 0: no limit.", func(v *server) float64 { return float64(v.Limit) })
	s.gauge("backend_queue", "Sessions that wait for it.", func(v *server) float64 { return float64(v.Queue) })
	s.gauge("backend_weight", "Its part of new sessions, in proportion to the others'.", func(v *server) float64 { return float64(v.Weight) })
	s.counter("backend_connected", "Sessions that began.", func(v *server) float64 { return float64(v.Connected) })
	s.counter("backend_received_bytes", "Bytes from clients that the balancer passed.", func(v *server) float64 { return float64(v.Received) })
	s.counter("backend_sent_bytes", "Bytes to clients that the balancer passed.", func(v *server) float64 { return float64(v.Sent) })
	s.counter("backend_errors", "Connections that failed and answers that broke off.", func(v *server) float64 { return float64(v.Errors) })
	return s
}

// transferRows has what a backend's own log says of transfers, when they end.
func transferRows() shape[monitor.Transfers] {
	type transfers = monitor.Transfers
	s := shape[transfers]{group: "transfers", labels: []string{"host"}}
	s.counter("transfers_done", "Transfers that ended well.", func(v *transfers) float64 { return float64(v.Done) })
	s.counter("transfers_failed", "Transfers that did not.", func(v *transfers) float64 { return float64(v.Failed) })
	s.counter("transfers_moved_bytes", "Payload of those that ended.", func(v *transfers) float64 {
		sum := int64(0)
		for i := range v.Spans {
			sum += v.Spans[i].Moved
		}
		return float64(sum)
	})
	return s
}
