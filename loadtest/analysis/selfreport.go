package analysis

import (
	"fmt"

	"weir/monitor"
)

// A ServerFigure is what one server of the service said of itself in one step's measurement time: means over its seconds.
type ServerFigure struct {
	Kind        string   `json:"kind"`                      // monitor.Redirector, DataServer or ClusterManager
	Cores       float64  `json:"cpu_cores"`                 // that it used
	Share       *float64 `json:"cpu_share"`                 // of the use of all servers that report
	Received    *float64 `json:"received_bytes_per_second"` // nil where they are counted when connections end
	Sent        *float64 `json:"sent_bytes_per_second"`
	Operations  *float64 `json:"operations_per_second"`
	Logins      float64  `json:"logins_per_second"`
	Refused     float64  `json:"refused_logins_per_second"`
	Redirects   float64  `json:"redirects_per_second"`
	Errors      float64  `json:"errors_per_second"`
	Connections float64  `json:"connections"`
	Threads     float64  `json:"threads"`
	Busy        float64  `json:"busy_threads"`
	Limited     float64  `json:"thread_limit_met_per_second"` // times that one more thread was wanted than is allowed
	Queue       int      `json:"queue"`                       // largest seen
	QueueMean   float64  `json:"queue_mean"`
	Waits       float64  `json:"waits_per_second"`
}

// A serverSum gathers the samples of one server in one step. What they count is taken by the part of their span that
// lies in the measurement time.
type serverSum struct {
	seconds, cpu, received, sent, operations float64
	logins, refused, redirects, errors       float64
	connections, threads, busy, waiting      mean
	waits, limited                           float64
	queue                                    int
	kind                                     string
	late                                     bool
}

func (t *serverSum) add(s *monitor.Sample, weight float64) {
	v, part := s.Service, ratio(weight, s.Seconds)
	t.seconds += weight
	t.cpu += part * (v.User + v.System)
	t.received += part * float64(v.Received)
	t.sent += part * float64(v.Sent)
	t.operations += part * float64(v.Operations())
	t.logins += part * float64(v.Logins)
	t.refused += part * float64(v.Refused)
	t.redirects += part * float64(v.Redirects)
	t.errors += part * float64(v.Errors)
	t.connections.add(float64(v.Connections), weight)
	t.threads.add(float64(v.Threads), weight)
	t.busy.add(float64(max(0, v.Threads-v.Idle)), weight)
	t.waiting.add(float64(v.Queue), weight)
	t.waits += part * float64(v.Waits)
	t.limited += part * float64(v.Limited)
	t.queue = max(t.queue, v.Queue)
	t.kind, t.late = v.Kind, t.late || v.Late
}

func (t *serverSum) figure() *ServerFigure {
	f := &ServerFigure{
		Kind: t.kind, Cores: ratio(t.cpu, t.seconds), Logins: ratio(t.logins, t.seconds), Refused: ratio(t.refused, t.seconds),
		Redirects: ratio(t.redirects, t.seconds), Errors: ratio(t.errors, t.seconds),
		Connections: t.connections.or0(), Threads: t.threads.or0(), Queue: t.queue,
		Busy: t.busy.or0(), QueueMean: t.waiting.or0(),
		Waits: ratio(t.waits, t.seconds), Limited: ratio(t.limited, t.seconds),
	}
	if !t.late {
		received, sent, operations := ratio(t.received, t.seconds), ratio(t.sent, t.seconds), ratio(t.operations, t.seconds)
		f.Received, f.Sent, f.Operations = &received, &sent, &operations
	}
	return f
}

// shareServers fills in which part of the servers' CPU time each used.
func shareServers(hosts []HostFigure) {
	all := 0.0
	for i := range hosts {
		if s := hosts[i].Service; s != nil {
			all += s.Cores
		}
	}
	for i := range hosts {
		if s := hosts[i].Service; s != nil && all > 0 {
			share := ratio(s.Cores, all)
			s.Share = &share
		}
	}
}

// addServer counts s, in whose span the clients' bytes are expected to be so many.
func (b *byteSums) addServer(s *monitor.Sample, expected float64, v *span, held bool) {
	b.late = b.late || s.Service.Late
	there := float64(s.Service.Received + s.Service.Sent)
	entryOf(&b.whole, s.Host).add(there, expected, v)
	if held {
		entryOf(&b.held, s.Host).add(there, expected, v)
	}
}

// servers compares the counters of the servers themselves, all together, for each carries a part of what the clients
// moved. Servers that count the bytes of a connection when it ends can only be compared over the whole run.
func (b *byteSums) servers() []count {
	from, like := b.held, count{source: "XRootD's counters", shared: true}
	if b.late {
		from, like = b.whole, count{source: "XRootD's counters, over the whole run,", shared: true, partial: true}
	}
	if len(from) == 0 {
		return nil
	}
	longest, there := addUp(from)
	like.there, like.clients, like.seconds, like.edges = there, longest.clients, longest.seconds, longest.edges
	if n := len(from); n > 1 {
		like.source = fmt.Sprintf("%s of %d servers", like.source, n)
	}
	return []count{like}
}
