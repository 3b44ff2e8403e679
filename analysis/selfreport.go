package analysis

import (
	"fmt"
	"time"

	"weir/monitor"
)

// A ServerFigure is what one server of the service said of itself in one
// step's hold time: means over its seconds.
type ServerFigure struct {
	Kind        string   `json:"kind"`                      // monitor.Redirector, DataServer or ClusterManager
	Cores       float64  `json:"cpu_cores"`                 // that it used
	Share       *float64 `json:"cpu_share"`                 // of what all servers that told used
	Received    *float64 `json:"received_bytes_per_second"` // nil where they are counted when connections end
	Sent        *float64 `json:"sent_bytes_per_second"`
	Operations  *float64 `json:"operations_per_second"`
	Logins      float64  `json:"logins_per_second"`
	Refused     float64  `json:"refused_logins_per_second"`
	Redirects   float64  `json:"redirects_per_second"`
	Errors      float64  `json:"errors_per_second"`
	Connections float64  `json:"connections"`
	Threads     float64  `json:"threads"`
	Queue       int      `json:"queue"` // largest seen
}

// A serverSum gathers the samples of one server in one step. What they count
// is taken by the part of their span that lies in the hold time.
type serverSum struct {
	seconds, cpu, received, sent, operations float64
	logins, refused, redirects, errors       float64
	connections, threads                     mean
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
	t.queue = max(t.queue, v.Queue)
	t.kind, t.late = v.Kind, t.late || v.Late
}

func (t *serverSum) figure() *ServerFigure {
	f := &ServerFigure{
		Kind: t.kind, Cores: ratio(t.cpu, t.seconds), Logins: ratio(t.logins, t.seconds), Refused: ratio(t.refused, t.seconds),
		Redirects: ratio(t.redirects, t.seconds), Errors: ratio(t.errors, t.seconds),
		Connections: ratio(t.connections.sum, t.connections.weight), Threads: ratio(t.threads.sum, t.threads.weight), Queue: t.queue,
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

// serverBytes adds to the sources of a comparison of bytes the counters of
// the servers themselves, all together, for each carries a part of what the
// clients moved. spans are the hold times. Servers that count the bytes of a
// connection when it ends can only be compared over the whole run.
func (d *data) serverBytes(spans [][2]time.Time, overhead float64) []count {
	type sum struct{ bytes, clients, seconds float64 }
	held, whole := map[string]*sum{}, map[string]*sum{}
	late := false
	add := func(to map[string]*sum, s *monitor.Sample) {
		one := to[s.Host]
		if one == nil {
			one = &sum{}
			to[s.Host] = one
		}
		one.bytes += float64(s.Service.Received + s.Service.Sent)
		one.clients += overhead * d.movedIn(s.Time.Add(-duration(s.Seconds)), s.Time)
		one.seconds += s.Seconds
	}
	for _, s := range d.samples {
		if s.Service == nil || s.Seconds <= 0 || s.Service.Kind == monitor.ClusterManager {
			continue
		}
		late = late || s.Service.Late
		add(whole, s)
		if overlap(s, spans) >= inside*s.Seconds {
			add(held, s)
		}
	}
	from, like := held, count{source: "XRootD's counters", shared: true}
	if late {
		from, like = whole, count{source: "XRootD's counters, over the whole run,", shared: true, partial: true}
	}
	if len(from) == 0 {
		return nil
	}
	for _, one := range from {
		if one.seconds > like.seconds {
			like.seconds, like.clients = one.seconds, one.clients
		}
	}
	for _, one := range from { // a server may have been silent for a while
		like.there += one.bytes * ratio(like.seconds, one.seconds)
	}
	if n := len(from); n > 1 {
		like.source = fmt.Sprintf("%s of %d servers", like.source, n)
	}
	return []count{like}
}
