package monitor

// A taker puts one value of a metric where it belongs.
type taker func(m *metrics, l labels, v float64)

// takers returns what to do with a metric of this name; ok is false for one
// that is not known.
func takers(name string) (take taker, ok bool) {
	switch {
	case len(name) > 5 && name[:5] == "node_":
		take = hostTaker(name)
	case len(name) > 8 && name[:8] == "process_":
		take = processTaker(name)
	case len(name) > 5 && name[:5] == "weir_":
		take = weirTaker(name)
	}
	return take, take != nil
}

func hostTaker(name string) taker {
	switch name {
	case "node_cpu_seconds_total":
		return takeCPU
	case "node_load1":
		return func(m *metrics, _ labels, v float64) { m.load = v }
	case "node_time_seconds":
		return func(m *metrics, _ labels, v float64) { m.clock = v }
	case "node_memory_MemTotal_bytes":
		return func(m *metrics, _ labels, v float64) { m.memory.Total = int64(v) }
	case "node_memory_MemAvailable_bytes":
		return func(m *metrics, _ labels, v float64) { m.memory.Available = int64(v) }
	case "node_memory_SwapTotal_bytes":
		return func(m *metrics, _ labels, v float64) { m.memory.Swapped += int64(v) }
	case "node_memory_SwapFree_bytes":
		return func(m *metrics, _ labels, v float64) { m.memory.Swapped -= int64(v) }
	case "node_netstat_Tcp_RetransSegs":
		return func(m *metrics, _ labels, v float64) { m.tcp.Retransmits, m.hasTCP = int64(v), true }
	case "node_netstat_Tcp_CurrEstab":
		return func(m *metrics, _ labels, v float64) { m.tcp.Established = int64(v) }
	case "node_netstat_TcpExt_ListenDrops":
		return func(m *metrics, _ labels, v float64) { m.tcp.ListenDrops = int64(v) }
	case "node_scrape_collector_success":
		return func(m *metrics, l labels, v float64) {
			if v == 1 {
				m.collectors = append(m.collectors, l.get("collector"))
			}
		}
	}
	if take := diskTaker(name); take != nil {
		return take
	}
	return netTaker(name)
}

func takeCPU(m *metrics, l labels, v float64) {
	c := m.core(l)
	switch l.get("mode") {
	case "user", "nice":
		c.User += v
	case "system":
		c.System += v
	case "irq", "softirq":
		c.IRQ += v
	case "iowait":
		c.IOWait += v
	case "steal":
		c.Steal += v
	case "idle":
		c.Idle += v
	}
}

func diskTaker(name string) taker {
	switch name {
	case "node_disk_read_bytes_total":
		return func(m *metrics, l labels, v float64) { m.disk(l).read = int64(v) }
	case "node_disk_written_bytes_total":
		return func(m *metrics, l labels, v float64) { m.disk(l).write = int64(v) }
	case "node_disk_reads_completed_total", "node_disk_writes_completed_total":
		return func(m *metrics, l labels, v float64) { m.disk(l).ops += int64(min(v, 1<<53)) }
	case "node_disk_io_time_seconds_total":
		return func(m *metrics, l labels, v float64) { m.disk(l).busy = v }
	case "node_disk_io_time_weighted_seconds_total":
		return func(m *metrics, l labels, v float64) { m.disk(l).queue = v }
	}
	return nil
}

func netTaker(name string) taker {
	switch name {
	case "node_network_receive_bytes_total":
		return func(m *metrics, l labels, v float64) { m.net(l).received = int64(v) }
	case "node_network_transmit_bytes_total":
		return func(m *metrics, l labels, v float64) { m.net(l).sent = int64(v) }
	case "node_network_receive_packets_total":
		return func(m *metrics, l labels, v float64) { m.net(l).packetsIn = int64(v) }
	case "node_network_transmit_packets_total":
		return func(m *metrics, l labels, v float64) { m.net(l).packetsOut = int64(v) }
	case "node_network_receive_drop_total", "node_network_transmit_drop_total",
		"node_network_receive_fifo_total", "node_network_transmit_fifo_total":
		return func(m *metrics, l labels, v float64) { m.net(l).drops += int64(min(v, 1<<53)) }
	case "node_network_speed_bytes":
		return func(m *metrics, l labels, v float64) {
			if m.speeds == nil {
				m.speeds = map[string]float64{}
			}
			m.speeds[l.get("device")] = 8 * v
		}
	}
	return nil
}

func processTaker(name string) taker {
	switch name {
	case "process_cpu_seconds_total":
		return func(m *metrics, _ labels, v float64) { m.cpu, m.hasProc = v, true }
	case "process_resident_memory_bytes":
		return func(m *metrics, _ labels, v float64) { m.rss, m.hasProc = v, true }
	case "process_open_fds":
		return func(m *metrics, _ labels, v float64) { m.files = min(v, 1<<40) }
	case "process_start_time_seconds":
		return func(m *metrics, _ labels, v float64) { m.started = v }
	}
	return nil
}

// weirTaker knows the metrics of the built-in server. Counters that come with
// labels are summed.
func weirTaker(name string) taker {
	switch name {
	case "weir_serve_payload_sent_bytes_total":
		return func(m *metrics, _ labels, v float64) { m.sent, m.weir = min(m.sent+v, 1<<62), true }
	case "weir_serve_payload_received_bytes_total":
		return func(m *metrics, _ labels, v float64) { m.got, m.weir = min(m.got+v, 1<<62), true }
	}
	return nil
}
