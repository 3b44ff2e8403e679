package results

import (
	"weir/internal/scan"
	"weir/monitor"
)

// balancer reads what a balancer says of the servers behind it.
func balancer(l *scan.Line, v *monitor.Balancer) {
	*v = monitor.Balancer{Servers: v.Servers[:0]}
	l.Open()
	name(l, `"kind":`, &v.Kind)
	count(l, `"connected":`, &v.Connected)
	count(l, `"received_bytes":`, &v.Received)
	count(l, `"sent_bytes":`, &v.Sent)
	if l.Key(`"servers":`) {
		for l.Array(); l.Next(); {
			v.Servers = append(v.Servers, balanced(l))
		}
	}
	l.Close()
}

func balanced(l *scan.Line) (v monitor.Balanced) {
	l.Open()
	name(l, `"name":`, &v.Name)
	name(l, `"service":`, &v.Service)
	name(l, `"address":`, &v.Address)
	name(l, `"status":`, &v.Status)
	whole(l, `"weight":`, &v.Weight)
	whole(l, `"connections":`, &v.Connections)
	whole(l, `"limit":`, &v.Limit)
	whole(l, `"queue":`, &v.Queue)
	count(l, `"connected":`, &v.Connected)
	count(l, `"received_bytes":`, &v.Received)
	count(l, `"sent_bytes":`, &v.Sent)
	count(l, `"errors":`, &v.Errors)
	l.Close()
	return v
}

// transfers reads what a backend's log says.
func transfers(l *scan.Line, v *monitor.Transfers) {
	*v = monitor.Transfers{Spans: v.Spans[:0]}
	l.Open()
	count(l, `"done":`, &v.Done)
	count(l, `"failed":`, &v.Failed)
	if l.Key(`"spans":`) {
		for l.Array(); l.Next(); {
			var s monitor.TransfersSpan
			l.Open()
			if !l.Key(`"begin":`) || s.Begin.UnmarshalText(l.Bytes()) != nil {
				l.Refuse()
			}
			float(l, `"duration_seconds":`, &s.Seconds)
			count(l, `"moved_bytes":`, &s.Moved)
			float(l, `"running":`, &s.Running)
			l.Close()
			v.Spans = append(v.Spans, s)
		}
	}
	l.Close()
}
