package analysis

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/loadtest/measure"
	"weir/loadtest/results/resultstest"
	"weir/monitor"
)

// overlap returns how many seconds of the sample lie within spans.
func overlap(s *monitor.Sample, spans [][2]time.Time) float64 {
	from, sum := s.Time.Add(-duration(s.Seconds)), 0.0
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

// figuresOf does for one step what watched does for all, with every sample in
// memory and none of its indexes.
func figuresOf(samples []*monitor.Sample, t *total) []HostFigure {
	spans, sums := t.spans(), map[string]*hostSum{}
	for _, s := range samples {
		weight := overlap(s, spans)
		if weight <= 0 {
			continue
		}
		if sums[s.Host] == nil {
			sums[s.Host] = &hostSum{HostFigure: HostFigure{Host: s.Host, Role: s.Role}}
		}
		sums[s.Host].add(s, weight)
	}
	all := []HostFigure{}
	for _, h := range sums {
		all = append(all, h.figure())
	}
	slices.SortFunc(all, func(a, b HostFigure) int { return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Host, b.Host)) })
	shareServers(all)
	return all
}

// heldBytes sums what interfaces sent in samples within the measurement times.
func heldBytes(d *data, samples []*monitor.Sample) (there, clients, seconds float64) {
	var spans [][2]time.Time
	for _, t := range d.held() {
		spans = append(spans, t.spans()...)
	}
	for _, s := range samples {
		if s.Seconds <= 0 || overlap(s, spans) < inside*s.Seconds {
			continue
		}
		v := d.span(s.Time.Add(-duration(s.Seconds)), s)
		for _, n := range s.Nets {
			bytes, _ := d.payload(&n)
			there += bytes
			clients += d.overhead() * v.moved
			seconds += s.Seconds
		}
	}
	return there, clients, seconds
}

func TestStreamingGivesWhatMemoryGave(t *testing.T) {
	tier.Slow(t, "analyzes long runs twice")
	for name, change := range map[string]func(*resultstest.Service){
		"typical": func(*resultstest.Service) {},
		"samples begin anywhere": func(s *resultstest.Service) {
			s.Sample = func(x *monitor.Sample) { x.Time = x.Time.Add(370 * time.Millisecond) }
		},
		"samples of ten seconds": func(s *resultstest.Service) { s.Sample = func(x *monitor.Sample) { x.Seconds = 10 } },
		"out of order": func(s *resultstest.Service) {
			s.Sample = func(x *monitor.Sample) { x.Time = x.Time.Add(time.Duration(x.Time.Second()%3) * -7 * time.Second) }
		},
		"steps overlap": func(s *resultstest.Service) {
			s.Interval = func(iv *measure.Interval) {
				iv.Start = iv.Start.Add(time.Duration(iv.Step) * -5 * time.Second)
			}
		},
		"holes in the hold": func(s *resultstest.Service) {
			s.Interval = func(iv *measure.Interval) { iv.Seconds = 0.25 * float64(iv.Start.Second()%4) }
		},
		"servers tell": func(s *resultstest.Service) {
			s.Sample = func(x *monitor.Sample) {
				if x.Role == server {
					x.Service = &monitor.Service{Kind: monitor.DataServer, User: 0.5, Sent: int64(x.Time.Second()) << 20, Ops: map[string]int64{"read": 7},
						Queue: x.Time.Second()}
				}
			}
		},
		"no time passes": func(s *resultstest.Service) { s.Sample = func(x *monitor.Sample) { x.Seconds = 0 } },
	} {
		t.Run(name, func(t *testing.T) {
			s := resultstest.Typical()
			s.Clients = s.Clients[:5]
			change(&s)
			run := written(t, s)
			d, err := load(run)
			require.NoError(t, err)
			var samples []*monitor.Sample
			for s, err := range run.Samples() {
				require.NoError(t, err)
				samples = append(samples, s)
			}
			slices.SortStableFunc(samples, func(a, b *monitor.Sample) int { return a.Time.Compare(b.Time) })
			for _, total := range d.held() {
				var got Step
				d.hosts(&got, total)
				if diff := gocmp.Diff(figuresOf(samples, total), got.Hosts, gocmp.AllowUnexported(HostFigure{}, groupFigure{}, ranged{}, WayFigure{}),
					cmpopts.EquateApprox(1e-12, 1e-12)); diff != "" {
					t.Errorf("step %d (-in memory +streaming):\n%s", total.number, diff)
				}
			}
			there, clients, seconds := heldBytes(d, samples)
			for _, c := range d.watched.bytes.counts {
				if c.source == "interface eth0 of store.example.org" {
					there, clients, seconds = there-c.there, clients-c.clients, seconds-c.seconds
				}
			}
			if math.Abs(there)+math.Abs(clients)+math.Abs(seconds) > 1e-3 {
				t.Errorf("bytes of the interface differ by %v, of the clients by %v, in %v s", there, clients, seconds)
			}
		})
	}
}

func TestSeriesAreInOrderOfTime(t *testing.T) {
	s := resultstest.Typical()
	s.Clients = s.Clients[:2]
	s.Sample = func(x *monitor.Sample) { x.Time = x.Time.Add(time.Duration(x.Time.Second()%3) * -7 * time.Second) }
	_, series, err := AnalyzeWithSeries(written(t, s))
	require.NoError(t, err)
	if len(series.Hosts) != 2 {
		t.Fatalf("%d hosts", len(series.Hosts))
	}
	for _, h := range series.Hosts {
		if len(h.Points) != 20 || !slices.IsSortedFunc(h.Points, func(a, b HostPoint) int { return cmp.Compare(a.At, b.At) }) {
			t.Errorf("%s: %d points, want 20 in order", h.Host, len(h.Points))
		}
	}
}
