package conduct

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"weir/internal/require"
	"weir/loadtest/challenge"
	"weir/loadtest/challenge/control"
	"weir/loadtest/challenge/inject"
	"weir/loadtest/challenge/inject/simulated"
)

// model is a simulated injector whose time passes with the clock of the bubble.
type model struct {
	*simulated.Simulated
	stop  chan struct{}
	ended chan struct{}
}

func openModel(o simulated.Options) func(context.Context, inject.Config) (inject.Injector, error) {
	return func(_ context.Context, c inject.Config) (inject.Injector, error) {
		o.Report, o.Begin = c.Report, time.Now()
		s, err := simulated.New(o)
		if err != nil {
			return nil, err
		}
		m := &model{s, make(chan struct{}), make(chan struct{})}
		go func() {
			defer close(m.ended)
			ticks := time.NewTicker(50 * time.Millisecond)
			defer ticks.Stop()
			for {
				select {
				case <-ticks.C:
					s.Step(50 * time.Millisecond)
				case <-m.stop:
					return
				}
			}
		}()
		return m, nil
	}
}

// Close implements inject.Injector.
func (m *model) Close() error {
	close(m.stop)
	<-m.ended
	return m.Simulated.Close()
}

// TestRates: with the controller, each link has its target within 3% over a minute where nothing
// limits, by links.jsonl. A link that cannot have its target does not slow down the others.
func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := testChallenge(stage(time.Minute, .5), stage(2*time.Minute, 1), stage(time.Minute, .25))
		c.Verify = false
		for i := range c.Links {
			c.Links[i].Rate *= 4 // a file is 1/240 of the bytes of a minute
		}
		o := simulated.Options{Latency: 300 * time.Millisecond, Spread: .3, Seed: 1}
		for _, s := range c.Sites {
			o.Sites = append(o.Sites, simulated.Site{Name: s.Name, PerCopy: 20 * fakeRate})
		}
		for i := range c.Links {
			o.Links = append(o.Links, simulated.Link{From: i, To: (i + 1) % 3})
		}
		o.Links[2].Capacity = 2 * fakeRate // half of its target
		r := newRig(t, c)
		r.Injector = openModel(o)
		r.Controller = func(o control.Options) Controller { return control.New(o) }
		require.NoError(t, Run(r.Config))
		got := readRecord(t, r.Dir)
		moved, target := map[string]map[int]float64{}, map[string]map[int]float64{}
		begin := got.links[0].Start
		for _, l := range got.links {
			name, minute := l.Source+l.Dest, int(l.Start.Sub(begin)/time.Minute)
			if moved[name] == nil {
				moved[name], target[name] = map[int]float64{}, map[int]float64{}
			}
			moved[name][minute] += float64(l.Moved)
			target[name][minute] += l.Target * l.Seconds
		}
		for _, name := range []string{"AB", "BC"} {
			for minute := range 4 {
				if of := moved[name][minute] / target[name][minute]; minute > 0 && math.Abs(of-1) > .03 || math.Abs(of-1) > .1 {
					t.Errorf("%s has %.3f of its target in minute %d", name, of, minute)
				}
			}
		}
		require.Near(t, "CA over its target in minute 2", moved["CA"][2]/target["CA"][2], .5, .03)
		reasons := map[challenge.Reason]int{}
		for _, l := range got.links {
			if l.Stage == 2 && l.Source == "C" {
				reasons[l.Reason]++
			}
		}
		if reasons[challenge.Saturated]+reasons[challenge.Raised] < 100 {
			t.Errorf("reasons of the link that is limited: %v", reasons)
		}
	})
}
