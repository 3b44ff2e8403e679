package resultstest

import (
	"time"

	"weir/link"
	"weir/loadtest/measure"
	"weir/monitor"
)

// Irregular returns changes of a service that give its samples and intervals unusual times or
// durations.
func Irregular() map[string]func(*Service) {
	return map[string]func(*Service){
		"typical":                func(*Service) {},
		"samples begin anywhere": func(s *Service) { s.Sample = func(x *monitor.Sample) { x.Time = x.Time.Add(370 * time.Millisecond) } },
		"samples of ten seconds": func(s *Service) { s.Sample = func(x *monitor.Sample) { x.Seconds = 10 } },
		"out of order": func(s *Service) {
			s.Sample = func(x *monitor.Sample) { x.Time = x.Time.Add(time.Duration(x.Time.Second()%3) * -7 * time.Second) }
		},
		"steps overlap": func(s *Service) {
			s.Interval = func(iv *measure.Interval) { iv.Start = iv.Start.Add(time.Duration(iv.Step) * -5 * time.Second) }
		},
		"holes in the hold": func(s *Service) {
			s.Interval = func(iv *measure.Interval) { iv.Seconds = 0.25 * float64(iv.Start.Second()%4) }
		},
		"no time passes": func(s *Service) { s.Sample = func(x *monitor.Sample) { x.Seconds = 0 } },
	}
}

// Overlap returns the seconds of a sample that lie within spans.
func Overlap(s *monitor.Sample, spans [][2]time.Time) float64 {
	from, sum := s.Time.Add(-time.Duration(s.Seconds*float64(time.Second))), 0.0
	for _, span := range spans {
		a, b := from, s.Time
		if span[0].After(a) {
			a = span[0]
		}
		if span[1].Before(b) {
			b = span[1]
		}
		sum += max(0, b.Sub(a).Seconds())
	}
	return sum
}

// LinkSample returns a sample of one second of an emulated link: busy is the share of the time in
// which its direction to the clients was used, late the p99 of the delay beyond the specified
// delay, in seconds.
func LinkSample(name string, step int, at time.Time, busy, late float64) *monitor.Sample {
	way := link.Traffic{Packets: 100, Bytes: int64(busy * 250e3), Busy: busy, Late: link.Quantiles{P99: late, Max: 2 * late}}
	return &monitor.Sample{
		Time: at, Seconds: 1, Host: name, Role: "other", Step: step,
		Nets: []monitor.Net{{Name: monitor.ToClients, Sent: way.Bytes, Speed: 2e6}, {Name: monitor.FromClients, Speed: 2e6}},
		Link: &monitor.Link{ToClients: way, FromClients: link.Traffic{Packets: 100}},
	}
}
