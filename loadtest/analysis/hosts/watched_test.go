package hosts_test

import (
	"path/filepath"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/hosts"
	"weir/loadtest/analysis/steps"
	"weir/loadtest/results"
	"weir/loadtest/results/resultstest"
	"weir/monitor"
)

func TestStreamingGivesWhatMemoryGave(t *testing.T) {
	tier.Slow(t, "analyzes long runs twice")
	changes := resultstest.Irregular()
	changes["servers tell"] = func(s *resultstest.Service) {
		s.Sample = func(x *monitor.Sample) {
			if x.Role == hosts.Server {
				x.Service = &monitor.Service{Kind: monitor.DataServer, User: 0.5, Sent: int64(x.Time.Second()) << 20, Ops: map[string]int64{"read": 7},
					Queue: x.Time.Second()}
			}
		}
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			s := resultstest.Typical()
			s.Clients = s.Clients[:5]
			change(&s)
			dir := filepath.Join(t.TempDir(), "run")
			require.NoError(t, s.Write(dir))
			run, err := results.Open(dir)
			require.NoError(t, err)
			d, err := steps.Load(run, nil, func([]byte) error { return nil })
			require.NoError(t, err)
			w := hosts.NewWatched(d.HoldTimes(), d.Begin(), "")
			var samples []*monitor.Sample
			for s, err := range run.Samples() {
				require.NoError(t, err)
				samples = append(samples, s)
				w.Add(s, s.Time.Add(-basics.Duration(s.Seconds)))
			}
			slices.SortStableFunc(samples, func(a, b *monitor.Sample) int { return a.Time.Compare(b.Time) })
			for _, total := range d.Held() {
				got := []hosts.HostFigure{}
				for _, h := range w.Figures(total.Number) {
					got = append(got, h.HostFigure)
				}
				hosts.ShareServers(got)
				if diff := gocmp.Diff(hosts.InMemory(samples, total.Spans()), got, gocmp.AllowUnexported(hosts.WayFigure{}),
					cmpopts.EquateApprox(1e-12, 1e-12)); diff != "" {
					t.Errorf("step %d (-in memory +streaming):\n%s", total.Number, diff)
				}
			}
		})
	}
}
