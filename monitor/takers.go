package monitor

import "sync"

// A taker stores one value of a metric in its field.
type taker func(m *metrics, l labels, v float64)

// takers returns the takers of the metrics that are known, by name. Counters that may come several times, with labels
// that do not matter here, are summed.
var takers = sync.OnceValue(func() map[string]taker { //nolint:gochecknoglobals // a table, made when it is first needed
	const most = 1 << 53 // the largest sum
	drops := func(m *metrics, l labels, v float64) { m.net(l).drops += int64(min(v, most)) }
	ops := func(m *metrics, l labels, v float64) { m.disk(l).ops += int64(min(v, most)) }
	return map[string]taker{
		"node_cpu_seconds_total":            takeCPU,
		"node_load1":                        func(m *metrics, _ labels, v float64) { m.load = min(v, mostLoad) },
		"node_time_seconds":                 func(m *metrics, _ labels, v float64) { m.clock = v },
		"node_memory_MemTotal_bytes":        func(m *metrics, _ labels, v float64) { m.memory.Total = int64(v) },
		"node_memory_MemAvailable_bytes":    func(m *metrics, _ labels, v float64) { m.memory.Available = int64(v) },
		"node_memory_SwapTotal_bytes":       func(m *metrics, _ labels, v float64) { m.memory.Swapped += int64(v) },
		"node_memory_SwapFree_bytes":        func(m *metrics, _ labels, v float64) { m.memory.Swapped -= int64(v) },
		"node_netstat_Tcp_RetransSegs":      func(m *metrics, _ labels, v float64) { m.tcp.Retransmits, m.hasTCP = int64(v), true },
		"node_netstat_Tcp_CurrEstab":        func(m *metrics, _ labels, v float64) { m.tcp.Established = int64(v) },
		"node_netstat_TcpExt_ListenDrops":   func(m *metrics, _ labels, v float64) { m.tcp.ListenDrops = int64(v) },
		"node_scrape_collector_success":     takeCollector,
		"node_disk_read_bytes_total":        func(m *metrics, l labels, v float64) { m.disk(l).read = int64(v) },
		"node_disk_written_bytes_total":     func(m *metrics, l labels, v float64) { m.disk(l).write = int64(v) },
		"node_disk_reads_completed_total":   ops,
		"node_disk_writes_completed_total":  ops,
		"node_disk_io_time_seconds_total":   func(m *metrics, l labels, v float64) { m.disk(l).busy = v },
		"node_network_receive_bytes_total":  func(m *metrics, l labels, v float64) { m.net(l).received = int64(v) },
		"node_network_transmit_bytes_total": func(m *metrics, l labels, v float64) { m.net(l).sent = int64(v) },
		"node_network_receive_drop_total":   drops,
		"node_network_transmit_drop_total":  drops,
		"node_network_receive_fifo_total":   drops,
		"node_network_transmit_fifo_total":  drops,
		"node_network_speed_bytes":          takeSpeed,
		"process_cpu_seconds_total":         func(m *metrics, _ labels, v float64) { m.cpu, m.hasProc = v, true },
		"process_resident_memory_bytes":     func(m *metrics, _ labels, v float64) { m.rss, m.hasProc = v, true },
		"process_open_fds":                  func(m *metrics, _ labels, v float64) { m.files = min(v, 1<<40) },
		"process_start_time_seconds":        func(m *metrics, _ labels, v float64) { m.started = v },

		"node_disk_io_time_weighted_seconds_total": func(m *metrics, l labels, v float64) { m.disk(l).queue = v },
		"node_network_receive_packets_total":       func(m *metrics, l labels, v float64) { m.net(l).packetsIn = int64(v) },
		"node_network_transmit_packets_total":      func(m *metrics, l labels, v float64) { m.net(l).packetsOut = int64(v) },
		"weir_serve_payload_sent_bytes_total": func(m *metrics, _ labels, v float64) {
			m.sent, m.weir = min(m.sent+v, 1<<62), true
		},
		"weir_serve_payload_received_bytes_total": func(m *metrics, _ labels, v float64) {
			m.got, m.weir = min(m.got+v, 1<<62), true
		},
	}
})

func takeCPU(m *metrics, l labels, v float64) {
	c := &m.core(l).mode
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

func takeCollector(m *metrics, l labels, v float64) {
	if v == 1 {
		m.collectors = append(m.collectors, l.get("collector"))
	}
}

func takeSpeed(m *metrics, l labels, v float64) {
	if m.speeds == nil {
		m.speeds = map[string]float64{}
	}
	if speed := 8 * v; speed <= mostSpeed {
		m.speeds[l.get("device")] = speed
	}
}
