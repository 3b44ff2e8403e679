package export

import "weir/monitor"

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
