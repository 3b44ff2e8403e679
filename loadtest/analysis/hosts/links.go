package hosts

import (
	"slices"

	"weir/internal/stats"
	"weir/link"
	"weir/monitor"
)

// A linkSum sums one link's samples in one step.
type linkSum struct {
	ways       [2]waySum // to and from the clients
	down, cost Mean
}

type waySum struct {
	carried, busy, dropped, lost, cut, wait, late Mean
	spread                                        spread // of busy
	rate, lateMax                                 float64
}

func (l *linkSum) add(s *monitor.Sample, weight float64) {
	v := s.Link
	l.down.Add(map[bool]float64{true: 1}[v.Down], weight)
	l.cost.Add(stats.Ratio(v.Cost, s.Seconds), weight)
	for i, t := range []*link.Traffic{&v.ToClients, &v.FromClients} {
		w := &l.ways[i]
		name := []string{monitor.ToClients, monitor.FromClients}[i]
		if k := slices.IndexFunc(s.Nets, func(n monitor.Net) bool { return n.Name == name }); k >= 0 {
			w.rate = max(w.rate, s.Nets[k].Speed)
		}
		for _, x := range []struct {
			m *Mean
			n int64
		}{{&w.carried, t.Bytes}, {&w.dropped, t.Dropped}, {&w.lost, t.Lost}, {&w.cut, t.Cut}} {
			x.m.Add(stats.Ratio(float64(x.n), s.Seconds), weight)
		}
		w.busy.Add(t.Busy, weight)
		w.spread.add(t.Busy, weight, weight >= Inside*s.Seconds)
		if t.Packets > 0 {
			w.wait.Add(t.Wait.P99, weight)
			w.late.Add(t.Late.P99, weight)
		}
		w.lateMax = max(w.lateMax, t.Late.Max)
	}
}

func (l *linkSum) figure() *LinkFigure {
	f := &LinkFigure{Down: l.down.Or0(), Cost: l.cost.Or0()}
	for i, to := range []*WayFigure{&f.ToClients, &f.FromClients} {
		w := &l.ways[i]
		*to = WayFigure{
			Carried: w.carried.Or0(), Rate: w.rate, Dropped: w.dropped.Or0(), Lost: w.lost.Or0(), Cut: w.cut.Or0(),
			Wait: w.wait.Or0(), Late: w.late.Or0(), LateMax: w.lateMax,
		}
		if w.rate > 0 {
			to.Busy = w.busy.Value()
			to.busy, _ = w.spread.interval()
		}
	}
	return f
}
