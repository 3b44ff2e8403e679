package links

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"weir/internal/cause"
	"weir/internal/tier"
	"weir/internal/unit"
	"weir/loadtest/challenge"
	"weir/loadtest/challenge/inject/simulated"
	"weir/loadtest/workload"
)

// A problem changes a challenge at random, and knows the causes that are right then.
type problem struct {
	name  string
	right func(l *challenge.Link, c *Cause) bool
}

// problems returns one to three problems, which it has made.
func problems(r *rand.Rand, c *challenge.Challenge, o *simulated.Options, disks map[int]float64) (all []problem) {
	for range 1 + r.IntN(3) {
		site, link, share := r.IntN(len(c.Sites)), r.IntN(len(c.Links)), 0.3+1.2*r.Float64()
		name := c.Sites[site].Name
		at := func(l *challenge.Link, x *Cause) bool {
			return x.Site == name && (x.Kind == Source && l.From == name || x.Kind == Dest && l.To == name || x.Kind == Line)
		}
		self := func(kind Kind) func(*challenge.Link, *Cause) bool {
			return func(l *challenge.Link, x *Cause) bool { return *l == c.Links[link] && x.Kind == kind }
		}
		switch r.IntN(10) {
		case 0:
			o.Sites[site].In, disks[site] = share*rate, share*rate
			all = append(all, problem{"disk of " + name, at})
		case 1:
			o.Sites[site].Out = share * rate
			all = append(all, problem{"source " + name, at})
		case 2:
			disks[site] = 1e-6 // always busy: no reason for anything
			all = append(all, problem{"foreign traffic on the disk of " + name, func(*challenge.Link, *Cause) bool { return false }})
		case 3:
			o.Links[link].Capacity = share / 2 * rate
			all = append(all, problem{"line " + c.Links[link].Name(), self(Line)})
		case 4:
			o.Sites[site].Outages = []simulated.Outage{{From: 6 * time.Minute, To: 9 * time.Minute}}
			all = append(all, problem{name + " is away", at})
		case 5:
			o.Sites[site].Failure = 0.3
			all = append(all, problem{name + " fails", at})
		case 6:
			c.Links[link].InFlight = 1 + r.IntN(2)
			all = append(all, problem{"limit of copies of " + c.Links[link].Name(), self(Injection)})
		case 7:
			c.Ceiling = unit.Bitrate(8 * 6 * rate)
			all = append(all, problem{"ceiling", func(_ *challenge.Link, x *Cause) bool { return x.Kind == Injection }})
		case 8:
			c.Inject.By, o.Starts = challenge.FTS, 4
			all = append(all, problem{"starts", func(_ *challenge.Link, x *Cause) bool { return x.Kind == Service }})
		case 9:
			o.Sites[site].Slots = 2
			all = append(all, problem{"door of " + name, at})
		}
	}
	return all
}

// A cause that is certain is one of the problems of the challenge, for each minute of each link.
func TestCertainIsRight(t *testing.T) {
	t.Parallel()
	runs, certain, wrong := 12, 0, 0
	right, unknown, misled := 0, 0, 0 // leading causes of links that did not hold their targets
	if tier.IsFull() {
		runs = 200
	}
	for seed := range runs {
		random := rand.New(rand.NewPCG(uint64(seed), 17))
		m := twelve()
		c, disks := m.plan, map[int]float64{}
		c.Files.Size = workload.Dist{Fixed: unit.Size(rate)}
		o := simulated.Of(&c)
		o.Latency, o.Spread, o.Seed = 500*time.Millisecond, 0.5, uint64(seed)
		for i := range o.Links {
			o.Links[i].PerCopy = rate / 2
		}
		all := problems(random, &c, &o, disks)
		sums := simulate(t, &c, o, disks)
		found, _ := sums.Result()
		for i := range found.Links {
			l := &found.Links[i]
			plan := sums.links[sums.index[[2]string{l.Source, l.Dest}]].plan
			switch {
			case l.Held() || l.Cause == nil:
			case l.Cause.Kind == Unknown:
				unknown++
			case isRight(all, plan, l.Cause):
				right++
			default:
				misled++
				if testing.Verbose() {
					t.Logf("run %d, %s: %s, but %s: %v", seed, l.Name(), l.Cause.Fact.Text, namesOf(all), l.Cause.Evidence)
				}
			}
			for _, e := range l.Episodes {
				if e.Certainty != cause.Certain {
					continue
				}
				if certain++; !isRight(all, plan, &e.Cause) {
					wrong++
					t.Errorf("run %d, %s, %v to %v s: %s, but the problems are %s: %v", seed, l.Name(), e.From, e.To, e.Fact.Text,
						namesOf(all), e.Evidence)
				}
			}
		}
	}
	t.Logf("%d of %d certain episodes are right; leading causes: %d right, %d unknown, %d wrong", certain-wrong, certain, right,
		unknown, misled)
	if certain < runs {
		t.Errorf("only %d episodes in %d runs are certain", certain, runs)
	}
}

func isRight(all []problem, l *challenge.Link, c *Cause) bool {
	for _, p := range all {
		if p.right(l, c) {
			return true
		}
	}
	return false
}

func namesOf(all []problem) string {
	var names []string
	for _, p := range all {
		names = append(names, p.name)
	}
	return strings.Join(names, ", ")
}
