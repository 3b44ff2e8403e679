package limits

import (
	"slices"
	"time"

	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/hosts"
	"weir/monitor"
)

// Watch adds the figures of backends in a sample. It reports whether the sample has no other
// figures.
func (bs *Backends) Watch(s *monitor.Sample, from time.Time) (all bool) {
	switch {
	case s.Balancer != nil:
		bs.balanced(s, from)
		return true
	case s.Transfers != nil:
		bs.logged(s)
		return true
	case s.Service != nil:
		if s.Service.Kind == monitor.DataServer {
			bs.addOwnReport(s, from)
		}
		return false
	}
	for i := range bs.hosts {
		if bs.watchedBy(i, s) {
			bs.ofHost(i, s, from)
		}
	}
	return false
}

// watchedBy reports whether a sample is from the machine of a backend's interface and processes.
func (bs *Backends) watchedBy(place int, s *monitor.Sample) bool {
	h := &bs.hosts[place]
	if h.NodeExporter != "" {
		return s.Host == h.Name
	}
	if bs.self != "" {
		return s.Host == bs.self
	}
	return s.Link == nil
}

// Incomplete records the sources of backends whose counters a sample leaves out: their sums then
// lack bytes.
func (bs *Backends) Incomplete(s *monitor.Sample) {
	lacks := func(source string, place int) {
		if bs.lacks == nil {
			bs.lacks = map[sourceOf]bool{}
		}
		bs.lacks[sourceOf{source, place}] = true
	}
	for _, what := range s.LeftOut {
		switch what {
		case monitor.LeftOutBalancer:
			for place := range bs.names {
				lacks(ByBalancer, place)
			}
		case monitor.LeftOutService:
			lacks(ByItself, bs.find(s.Host))
		default:
			for i := range bs.hosts {
				if what == monitor.LeftOutNet+bs.hosts[i].Interface && bs.watchedBy(i, s) {
					lacks(ByInterface, i)
				}
			}
		}
	}
}

// ofHost adds the counters of a backend's machine.
func (bs *Backends) ofHost(place int, s *monitor.Sample, from time.Time) {
	h := &bs.hosts[place]
	net := slices.IndexFunc(s.Nets, func(n monitor.Net) bool { return n.Name == h.Interface })
	proc := slices.IndexFunc(s.Procs, func(p monitor.Proc) bool { return p.Name == h.Name && p.Role == hosts.Server })
	if net < 0 && proc < 0 || s.Seconds <= 0 {
		return
	}
	bs.during(place, from, s.Time, func(sum *backendSum, seconds float64) {
		part := seconds / s.Seconds
		if net >= 0 {
			n := &s.Nets[net]
			sum.hasWire = true
			carried, _ := bs.run.Payload(n)
			sum.wire += part * carried
			if n.Speed > 0 {
				sum.busy.Add(8*float64(max(n.Sent, n.Received))/s.Seconds/n.Speed, seconds)
			}
		}
		if proc >= 0 {
			sum.own.Add((s.Procs[proc].User+s.Procs[proc].System)/s.Seconds, seconds)
		}
	})
	if net >= 0 {
		n := &s.Nets[net]
		carried, _ := bs.run.Payload(n)
		bs.series.At(place, middleOf(from, s.Time)).add(ByInterface, carried)
	}
}

func middleOf(from, to time.Time) time.Time { return from.Add(to.Sub(from) / 2) }

// balanced adds the figures that a balancer reports on the servers behind it.
func (bs *Backends) balanced(s *monitor.Sample, from time.Time) {
	if bs.balancer = s.Balancer.Kind; s.Seconds <= 0 {
		return
	}
	for v := range basics.Each(s.Balancer.Servers) {
		place := bs.behind(v)
		if n := len(bs.whole); n > 0 && s.Time.After(bs.whole[0].From) && from.Before(bs.whole[0].To.Add(lateBytes)) {
			bs.sum(0, place).late += float64(v.Received + v.Sent)
		}
		bs.during(place, from, s.Time, func(sum *backendSum, seconds float64) {
			part := seconds / s.Seconds
			sum.passed += part * float64(v.Received+v.Sent)
			sum.connected += part * float64(v.Connected)
			sum.limit, sum.weight, sum.status = v.Limit, max(sum.weight, v.Weight), v.Status
		})
		bs.during(place, s.Time.Add(-instant), s.Time, func(sum *backendSum, seconds float64) {
			sum.sessions.Add(float64(v.Connections), seconds)
			sum.queue.Add(float64(v.Queue), seconds)
		})
		x := bs.series.At(place, middleOf(from, s.Time))
		x.add(ByBalancer, float64(v.Received+v.Sent))
		x.sessions.Add(float64(v.Connections), s.Seconds)
	}
}

// logged adds the transfers of a backend's log.
func (bs *Backends) logged(s *monitor.Sample) {
	place := bs.place(s.Host)
	for v := range basics.Each(s.Transfers.Spans) {
		if v.Seconds <= 0 {
			continue
		}
		to := v.Begin.Add(basics.Duration(v.Seconds))
		bs.during(place, v.Begin, to, func(sum *backendSum, seconds float64) {
			sum.hasLog = true
			sum.logged += seconds / v.Seconds * float64(v.Moved)
			sum.running.Sum += v.Running * seconds // lines of one second add up
		})
		for at := v.Begin; at.Before(to); at = at.Add(time.Second) {
			_, end := basics.Common(at, at.Add(time.Second), at, to)
			if len(bs.whole) > 0 && !end.Before(bs.whole[0].From) && !at.After(bs.whole[0].To) {
				bs.series.At(place, middleOf(at, end)).add(ByLog, end.Sub(at).Seconds()/v.Seconds*float64(v.Moved))
			}
		}
	}
}

// addOwnReport adds the counters that a data server reports.
func (bs *Backends) addOwnReport(s *monitor.Sample, from time.Time) {
	if s.Seconds <= 0 {
		return
	}
	place, v := bs.find(s.Host), s.Service
	if place < 0 {
		return // clients use another name for it, or never reached it
	}
	bs.during(place, from, s.Time, func(sum *backendSum, seconds float64) {
		part := seconds / s.Seconds
		sum.hasReport, sum.untimely = true, sum.untimely || v.Late
		sum.reported += part * float64(v.Received+v.Sent)
		sum.own.Add((v.User+v.System)/s.Seconds, seconds)
		sum.connected += part * float64(v.Connected)
	})
	bs.during(place, s.Time.Add(-instant), s.Time, func(sum *backendSum, seconds float64) {
		sum.sessions.Add(float64(v.Connections), seconds)
	})
	x := bs.series.At(place, middleOf(from, s.Time))
	x.add(ByItself, float64(v.Received+v.Sent))
	x.sessions.Add(float64(v.Connections), s.Seconds)
}
