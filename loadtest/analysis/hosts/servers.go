package hosts

import (
	"weir/internal/stats"
	"weir/monitor"
)

// A serverSum sums the samples of one server in one step. Counters are weighted by the part of
// their span that lies in the measurement time.
type serverSum struct {
	seconds, cpu, received, sent, operations float64
	logins, refused, redirects, errors       float64
	connections, threads, busy, waiting      Mean
	waits, limited                           float64
	queue                                    int
	kind                                     string
	late                                     bool
}

func (t *serverSum) add(s *monitor.Sample, weight float64) {
	v, part := s.Service, stats.Ratio(weight, s.Seconds)
	t.seconds += weight
	t.cpu += part * (v.User + v.System)
	t.received += part * float64(v.Received)
	t.sent += part * float64(v.Sent)
	t.operations += part * float64(v.Operations())
	t.logins += part * float64(v.Logins)
	t.refused += part * float64(v.Refused)
	t.redirects += part * float64(v.Redirects)
	t.errors += part * float64(v.Errors)
	t.connections.Add(float64(v.Connections), weight)
	t.threads.Add(float64(v.Threads), weight)
	t.busy.Add(float64(max(0, v.Threads-v.Idle)), weight)
	t.waiting.Add(float64(v.Queue), weight)
	t.waits += part * float64(v.Waits)
	t.limited += part * float64(v.Limited)
	t.queue = max(t.queue, v.Queue)
	t.kind, t.late = v.Kind, t.late || v.Late
}

func (t *serverSum) figure() *ServerFigure {
	f := &ServerFigure{
		Kind: t.kind, Cores: stats.Ratio(t.cpu, t.seconds), Logins: stats.Ratio(t.logins, t.seconds), Refused: stats.Ratio(t.refused, t.seconds),
		Redirects: stats.Ratio(t.redirects, t.seconds), Errors: stats.Ratio(t.errors, t.seconds),
		Connections: t.connections.Or0(), Threads: t.threads.Or0(), Queue: t.queue,
		Busy: t.busy.Or0(), QueueMean: t.waiting.Or0(),
		Waits: stats.Ratio(t.waits, t.seconds), Limited: stats.Ratio(t.limited, t.seconds),
	}
	if !t.late {
		received, sent, operations := stats.Ratio(t.received, t.seconds), stats.Ratio(t.sent, t.seconds), stats.Ratio(t.operations, t.seconds)
		f.Received, f.Sent, f.Operations = &received, &sent, &operations
	}
	return f
}

// ShareServers fills in the share of each server in the CPU time of all servers.
func ShareServers(hosts []HostFigure) {
	all := 0.0
	for i := range hosts {
		if s := hosts[i].Service; s != nil {
			all += s.Cores
		}
	}
	for i := range hosts {
		if s := hosts[i].Service; s != nil && all > 0 {
			share := stats.Ratio(s.Cores, all)
			s.Share = &share
		}
	}
}
