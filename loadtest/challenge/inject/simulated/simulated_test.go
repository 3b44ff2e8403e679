package simulated_test

import (
	"context"
	"math"
	"testing"
	"time"

	"weir/internal/require"
	"weir/loadtest/challenge"
	"weir/loadtest/challenge/inject"
	"weir/loadtest/challenge/inject/simulated"
)

var _ inject.Injector = (*simulated.Simulated)(nil)

const mib = 1 << 20

// model returns a model that collects its reports.
func model(t *testing.T, o simulated.Options) (*simulated.Simulated, *[]inject.Report) {
	t.Helper()
	var reports []inject.Report
	o.Report = func(r inject.Report) { reports = append(reports, r) }
	s, err := simulated.New(o)
	require.NoError(t, err)
	return s, &reports
}

// start requests n copies of a size on a link; their ids begin at first.
func start(t *testing.T, s *simulated.Simulated, link, n int, size, first int64) {
	t.Helper()
	var copies []inject.Copy
	for i := range n {
		copies = append(copies, inject.Copy{ID: first + int64(i), Link: link, Source: inject.File{Size: size}})
	}
	require.NoError(t, s.Start(t.Context(), copies))
}

// Rates computed by hand: links 0 and 1 leave site 0 (out 10), link 1 and 2 share a trunk of 6, and
// the copies of link 2 are limited to 1 each.
func TestRatesAreMaxMinFair(t *testing.T) {
	base := simulated.Options{
		Sites: []simulated.Site{{Out: 10 * mib}, {}, {}, {}},
		Links: []simulated.Link{{From: 0, To: 1}, {From: 0, To: 2}, {From: 3, To: 2, PerCopy: mib}},
	}
	trunk := func(o simulated.Options, capacity float64) simulated.Options {
		o.Trunks = []simulated.Trunk{{Links: []int{1, 2}, Capacity: capacity}}
		return o
	}
	slots := trunk(base, 6*mib)
	slots.Sites = []simulated.Site{{Out: 10 * mib}, {In: 3 * mib}, {PerCopy: mib / 2}, {}}
	for _, c := range []struct {
		name   string
		o      simulated.Options
		copies [3]int
		want   [3]float64 // MiB/s of each link
	}{
		{"source only", base, [3]int{1, 1, 1}, [3]float64{5, 5, 1}},
		{"source by copies", base, [3]int{3, 2, 1}, [3]float64{6, 4, 1}},
		{"trunk leaves source capacity", trunk(base, 3*mib), [3]int{1, 1, 2}, [3]float64{9, 1, 2}},
		{"trunk limits all copies", trunk(base, 3*mib), [3]int{1, 3, 3}, [3]float64{8.5, 1.5, 1.5}},
		{"trunk is wide", trunk(base, 100*mib), [3]int{1, 4, 8}, [3]float64{2, 8, 8}},
		{"destination and slow copies", slots, [3]int{4, 2, 2}, [3]float64{3, 1, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := model(t, c.o)
			for i, n := range c.copies {
				start(t, s, i, n, 1000*mib, int64(100*i))
			}
			s.Step(10 * time.Second)
			for i, want := range c.want {
				require.Near(t, "rate of a link", float64(s.Counts(i).Moved)/10/mib, want, 1e-6)
			}
		})
	}
}

// Bytes are conserved: bytes moved and bytes left are those of the copies that were requested, the
// reports have the same sums as the counts, and each copy has one final report.
func TestBytesAreConserved(t *testing.T) {
	s, reports := model(t, simulated.Options{
		Sites: []simulated.Site{{Name: "a", Out: 50 * mib, Failure: 0.1, Slots: 20}, {Name: "b", In: 30 * mib, Checksum: 40 * mib},
			{Name: "c", Outages: []simulated.Outage{{From: 20 * time.Second, To: 40 * time.Second}}}},
		Links:   []simulated.Link{{From: 0, To: 1}, {From: 0, To: 2, PerCopy: 3 * mib}, {From: 2, To: 1, Capacity: 7 * mib}},
		Latency: 2 * time.Second, Spread: 0.5, Starts: 10, Seed: 7,
		Changes: []simulated.Change{{At: 30 * time.Second, Part: simulated.SiteOut, Index: 0, Capacity: 5 * mib}},
	})
	var asked [3]int64
	id, n := int64(0), 0
	for tick := range 1200 {
		if tick < 600 && tick%2 == 0 {
			link, size := tick%3, int64(mib+1000*tick)
			start(t, s, link, 1, size, id)
			asked[link] += size
			id++
			n++
		}
		if tick == 500 {
			require.NoError(t, s.Cancel(t.Context(), []int64{id - 1, id - 2, id - 3, 1 << 40}))
		}
		s.Step(100 * time.Millisecond)
	}
	s.Step(10 * time.Minute)
	final, ended, failed, moved := map[int64]bool{}, 0, 0, int64(0)
	for _, r := range *reports {
		if final[r.ID] {
			t.Fatalf("copy %d has a report after its last: %+v", r.ID, r)
		}
		if r.State.Ended() {
			final[r.ID] = true
			ended++
			moved += r.Moved
			if r.State != inject.Done {
				failed++
			}
			if r.State == inject.Failed && r.Site != "a" && r.Site != "c" {
				t.Errorf("failure without its site: %+v", r)
			}
		}
	}
	var counted int64
	done := 0
	for i := range asked {
		c := s.Counts(i)
		counted += c.Moved
		done += c.Done
		if c.Left != 0 || c.InFlight != 0 || c.Queued != 0 || c.Moved > asked[i] {
			t.Errorf("link %d at the end: %+v of %d bytes", i, c, asked[i])
		}
	}
	if ended != n || done+failed != n || failed < 30 || done < 100 {
		t.Errorf("%d copies, %d ended, %d done, %d failed", n, ended, done, failed)
	}
	if math.Abs(float64(counted-moved)) > float64(n) { // rounded once a copy
		t.Errorf("moved %d by the counts and %d by the reports", counted, moved)
	}
}

// A copy takes the latency, the wait for a slot and the service, the bytes and the checksum.
func TestLifeOfACopy(t *testing.T) {
	s, reports := model(t, simulated.Options{
		Sites: []simulated.Site{{Name: "a", Slots: 1, Out: mib}, {Name: "b", Checksum: 2 * mib}},
		Links: []simulated.Link{{From: 0, To: 1}}, Latency: 3 * time.Second, Starts: 2, Begin: time.Unix(0, 0),
	})
	start(t, s, 0, 2, 4*mib, 0) // 0: 3 s to 9 s; 1: 9 s to 15 s, of these 2 s checksum
	at := map[int64]float64{}
	for range 200 {
		s.Step(100 * time.Millisecond)
		if c := s.Counts(0); s.Now() == 8*time.Second && (c.Moved != 4*mib || c.Left != 4*mib || c.Queued != 1 || c.InFlight != 2) {
			t.Errorf("at 8 s: %+v", c)
		}
	}
	for _, r := range *reports {
		if r.State == inject.Done {
			at[r.ID] = float64(r.At.UnixMilli()) / 1000
			if r.Moved != 4*mib || !r.Verified || r.Begin.UnixMilli() != 3000+6000*r.ID {
				t.Errorf("report %+v", r)
			}
		}
	}
	require.Near(t, "end of the first copy", at[0], 9, 1e-3)
	require.Near(t, "end of the second copy", at[1], 15, 1e-3)
}

// A silent service reports no bytes before the end; tokens end; Resume reports unknown copies.
func TestSilentServiceAndTokens(t *testing.T) {
	s, reports := model(t, simulated.Options{
		Sites: []simulated.Site{{Name: "a", Slots: 1}, {Name: "b"}}, Links: []simulated.Link{{From: 0, To: 1, Capacity: mib}},
		Silent: true, TokenLife: 5 * time.Second,
	})
	start(t, s, 0, 3, 4*mib, 0) // 0 to 4 s, 4 to 8 s; the third could begin at 8 s only
	s.Step(3 * time.Second)
	if c := s.Counts(0); c.Moved != 0 || c.Left != 12*mib {
		t.Errorf("silent: %+v", c)
	}
	s.Step(7 * time.Second)
	if c := s.Counts(0); c.Moved != 8*mib || c.Done != 2 || c.Failed != 1 || c.Left != 0 {
		t.Errorf("at the end: %+v", c)
	}
	require.NoError(t, s.Resume(t.Context(), []inject.Copy{{ID: 77}}))
	s.Step(time.Second)
	expired, resumed := 0, 0
	for _, r := range *reports {
		if !r.State.Ended() && r.Moved != -1 {
			t.Errorf("a silent service reported bytes: %+v", r)
		}
		if r.Expired && r.Site == "b" {
			expired++
		}
		if r.ID == 77 && r.State == inject.Failed {
			resumed++
		}
	}
	if expired != 1 || resumed != 1 || s.Health().Requests != 1 || s.Health().Requests != 0 {
		t.Errorf("%d expired, %d resumed", expired, resumed)
	}
}

// Run steps with the clock, faster by Scale.
func TestRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan inject.Report, 10)
	o := simulated.Options{
		Sites: []simulated.Site{{Name: "a"}, {Name: "b"}}, Links: []simulated.Link{{From: 0, To: 1, Capacity: mib}},
		Scale: 1000, Begin: time.Now(), Report: func(r inject.Report) {
			if r.State.Ended() {
				ended <- r
			}
		},
	}
	s, err := simulated.New(o)
	require.NoError(t, err)
	over := make(chan struct{})
	go func() { s.Run(ctx); close(over) }()
	start(t, s, 0, 1, 100*mib, 1)
	if r := <-ended; r.State != inject.Done || r.At.Sub(r.Begin).Round(time.Millisecond) != 100*time.Millisecond {
		t.Errorf("%+v took %v of the clock", r, r.At.Sub(r.Begin))
	}
	cancel()
	<-over
}

// Of takes sites, links and capacities from a challenge; New refuses impossible models.
func TestOptions(t *testing.T) {
	o := simulated.Of(&challenge.Challenge{
		Sites: []challenge.Site{{Name: "a", Out: 8e6, InFlight: 3}, {Name: "b", In: 16e6}}, Seed: 4,
		Links: []challenge.Link{{From: "b", To: "a"}},
	})
	if o.Links[0] != (simulated.Link{From: 1, To: 0}) || o.Sites[0].Out != 1e6 ||
		o.Sites[1].In != 2e6 || o.Sites[0].Slots != 3 || o.Seed != 4 {
		t.Errorf("%+v", o)
	}
	for _, bad := range []simulated.Options{
		{Links: []simulated.Link{{From: 0, To: 1}}},
		{Trunks: []simulated.Trunk{{Links: []int{0}}}},
		{Changes: []simulated.Change{{Part: simulated.OfTrunk}}},
		{Changes: []simulated.Change{{Part: 99}}},
		{Spread: 2},
	} {
		if _, err := simulated.New(bad); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}
