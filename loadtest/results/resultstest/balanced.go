package resultstest

import (
	"fmt"
	"math"
	"time"

	"weir/loadtest/measure"
	"weir/monitor"
)

// Balanced returns a GridFTP service of several servers, gftp-1 and so on, behind HAProxy, with the
// given shares of its files. All sources of data exist: the clients' measurements of 192.0.2.11 and
// so on, the servers' machines with an interface eth1, their transfer logs, and HAProxy's sessions.
// The CPU of each machine is busy in proportion to its share of the files, on the machine with the
// largest share to 95% from 32 clients on.
func Balanced(shares ...float64) Service {
	s := Typical()
	s.File, s.Clients, s.Duration = 8<<20, []int{4, 8, 16, 32, 64}, 10
	s.Balancer = monitor.BalancerConfig{HAProxy: "/run/haproxy/admin.sock"}
	for i := range shares {
		s.Hosts = append(s.Hosts, monitor.Host{Name: fmt.Sprintf("gftp-%d", i+1), Role: "server", Address: []string{dataAddress(i)},
			Interface:    "eth1",
			NodeExporter: fmt.Sprintf("http://gftp-%d:9100/metrics", i+1), TransferLog: fmt.Sprintf("/var/log/gftp-%d.log", i+1)})
	}
	b := &balanced{s: &s, shares: shares}
	s.Interval = func(iv *measure.Interval) { b.part(iv, 0, *iv) }
	s.More = b.others
	s.MoreSamples = b.samples
	return s
}

func dataAddress(i int) string { return fmt.Sprintf("192.0.2.%d", 11+i) }

type balanced struct {
	s      *Service
	shares []float64
	whole  measure.Interval // the last second's interval, before it was divided
	moved  []int64          // by server, in that second
}

// part sets iv to the part of whole that server i processed.
func (b *balanced) part(iv *measure.Interval, i int, whole measure.Interval) {
	if i == 0 {
		b.whole, b.moved = whole, make([]int64, len(b.shares))
	}
	done := int64(math.Round(b.shares[i] * float64(whole.Done)))
	iv.Server, iv.Done, iv.Begun, iv.Tasks = dataAddress(i), done, done, done
	iv.Moved, iv.Wire = done*b.s.File, done*(b.s.File+300)
	b.moved[i] = iv.Moved
}

func (b *balanced) others(iv *measure.Interval) []*measure.Interval {
	var all []*measure.Interval
	for i := 1; i < len(b.shares); i++ {
		other := &measure.Interval{Start: iv.Start, Seconds: iv.Seconds, Step: iv.Step, Phase: iv.Phase, Clients: iv.Clients, Kind: iv.Kind}
		b.part(other, i, b.whole)
		all = append(all, other)
	}
	return all
}

func (b *balanced) samples(end time.Time, step int) []*monitor.Sample {
	behind := &monitor.Balancer{Kind: monitor.HAProxy}
	var all []*monitor.Sample
	most := 0.0
	for _, share := range b.shares {
		most = max(most, share)
	}
	for i, share := range b.shares {
		name, moved := b.s.Hosts[i].Name, b.moved[i]
		packets := moved/1448 + 1
		busy := 0.95 * min(1, b.whole.Clients/32) * share / most
		all = append(all, &monitor.Sample{Time: end, Seconds: 1, Host: name, Role: "server", Step: step, Cores: 8,
			CPU:    &monitor.CPU{User: 0.2 * busy, System: 0.8 * busy, Idle: 1 - busy},
			Memory: &monitor.Memory{Total: 64 << 30, Available: 60 << 30},
			Nets: []monitor.Net{{Name: "eth1", Sent: moved + 66*packets, PacketsOut: packets, Received: 33 * packets, PacketsIn: packets / 2,
				Speed: 1e11}}, Cost: 0.0005},
			&monitor.Sample{Time: end, Seconds: 1, Host: name, Role: "server", Step: step, Transfers: &monitor.Transfers{Done: moved / b.s.File,
				Spans: []monitor.TransfersSpan{{Begin: end.Add(-time.Second), Seconds: 1, Moved: moved, Running: b.whole.Clients * share}}}})
		behind.Servers = append(behind.Servers, monitor.Balanced{Name: name, Service: "gridftp", Status: "UP", Weight: 1, Limit: 1000,
			Connections: int(math.Round(b.whole.Clients * share)), Connected: moved / b.s.File, Received: 200, Sent: 1200})
	}
	return append(all, &monitor.Sample{Time: end, Seconds: 1, Host: "balancer", Role: "other", Step: step, Balancer: behind})
}
