package schedule

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"weir/internal/say"
	"weir/internal/unit"
)

// A File is what is to be copied, and where it can come from.
type File struct {
	Bytes    int64
	Dest     string
	Sources  []string
	Failures map[string]int // how often a source has failed for this file
	Max      map[string]int // copies that a site may have at once; none or 0: any number
}

// A Choice is where a file is copied from.
type Choice struct {
	Source string  // "": from nowhere now
	Wait   string  // the source that is worth waiting for, if Source is ""
	Why    string  // a sentence
	Probe  bool    // it is not the best, but it was not tried for a while
	Ranks  []Ranks // all sources, the best first
}

// Ranks is how good a source is for a file.
type Ranks struct {
	Source  string
	Seconds float64 // until the file is there: waiting, copying, and what failures cost
	Copy    float64 // of these, copying
	Queue   float64 // of these, waiting for the link
	Penalty float64 // of these, since copies from there fail
	Limit   int     // copies at once that the link may have
	Known   bool    // there were copies on this link
	Free    bool    // a copy could begin now
	Full    string  // why not
}

// Rank returns that of the source that was chosen.
func (c Choice) Rank() Ranks {
	for _, r := range c.Ranks {
		if r.Source == c.Source {
			return r
		}
	}
	return Ranks{}
}

// retry is what a failure costs, in seconds: noticing it and trying again.
const retry = 30

// Choose says where a file is copied from now. It changes nothing but the series
// of random numbers: who follows it calls Began.
func (n *Network) Choose(f File, now time.Time) Choice {
	return n.choose(f, now, n.rand.Float64() < n.rules.Probe)
}

// Consider is Choose without probes. It changes nothing.
func (n *Network) Consider(f File, now time.Time) Choice { return n.choose(f, now, false) }

func (n *Network) choose(f File, now time.Time, probe bool) Choice {
	ranks := n.rank(f, now)
	if len(ranks) == 0 {
		return Choice{Why: "no site that has it can be reached"}
	}
	best := ranks[0]
	free := slices.DeleteFunc(slices.Clone(ranks), func(r Ranks) bool { return !r.Free })
	c := Choice{Ranks: ranks}
	switch {
	case len(free) == 0 || !best.Free && free[0].Seconds > best.Seconds:
		c.Wait = best.Source
		c.Why = best.Full
		return c
	case len(free) > 1 && probe:
		c.Source, c.Probe = free[1+n.rand.IntN(len(free)-1)].Source, true
		c.Why = fmt.Sprintf("%s is tried to see how fast it is now", c.Source)
		return c
	}
	c.Source = free[0].Source
	c.Why = free[0].words(len(ranks))
	return c
}

// rank orders the sources by the seconds until the file would be there.
func (n *Network) rank(f File, now time.Time) []Ranks {
	ranks := make([]Ranks, 0, len(f.Sources))
	for _, source := range f.Sources {
		l := n.peek(source, f.Dest, now)
		alone, known := n.seconds(l, float64(f.Bytes))
		r := Ranks{Source: source, Known: known}
		r.Full = n.full(f, source, l, alone, known)
		r.Free = r.Full == ""
		if l.active >= l.limit.N { // one leaves every so often
			mean, _ := n.seconds(l, l.sizes/float64(max(1, l.active)))
			r.Queue = float64(l.active-l.limit.N+1) * mean / float64(l.limit.N)
		}
		r.Penalty = n.penalty(l, alone, now)
		r.Penalty += retry * float64(f.Failures[source])
		r.Copy, r.Limit = alone, l.limit.N
		r.Seconds = r.Queue + r.Copy + r.Penalty
		ranks = append(ranks, r)
	}
	slices.SortStableFunc(ranks, func(a, b Ranks) int { return cmp.Compare(a.Seconds, b.Seconds) })
	return ranks
}

// penalty is what failures are expected to cost: each of them a try again. It
// fades, so that who failed is asked again after a while.
func (n *Network) penalty(l *link, alone float64, now time.Time) float64 {
	if l.success >= 1 || l.failed.IsZero() {
		return 0
	}
	bad := 1 - l.success
	if since := now.Sub(l.last); since > 0 {
		bad *= math.Exp2(-since.Seconds() / n.rules.Forget.Seconds())
	}
	bad = min(bad, 0.95)
	return bad / (1 - bad) * (alone + retry)
}

// full says why a copy cannot begin on a link now, "" if it can.
func (n *Network) full(f File, source string, l *link, seconds float64, known bool) string {
	if n.most.Link != nil {
		if _, most := n.most.Link(source, f.Dest); most > 0 && l.active >= most {
			return fmt.Sprintf("the link from %s to %s has the %s at once that an administrator allows", source, f.Dest, say.Plural(most, "copy"))
		}
	}
	if l.room(seconds, known, n.rules) <= 0 {
		return fmt.Sprintf("the link from %s to %s is full: %s at once (%s)",
			source, f.Dest, say.Plural(l.limit.N, "copy"), l.limit.Why)
	}
	for _, site := range []string{source, f.Dest} {
		if most := f.Max[site]; most > 0 && n.busy[site] >= most {
			return fmt.Sprintf("site %s has the %s at once that it is allowed", site, say.Plural(most, "copy"))
		}
	}
	if most := n.most.Out[source]; most > 0 && n.out[source] >= most {
		return fmt.Sprintf("site %s sends the %s at once that an administrator allows", source, say.Plural(most, "copy"))
	}
	if most := n.most.In[f.Dest]; most > 0 && n.in[f.Dest] >= most {
		return fmt.Sprintf("site %s receives the %s at once that an administrator allows", f.Dest, say.Plural(most, "copy"))
	}
	return ""
}

func (r Ranks) words(of int) string {
	s := fmt.Sprintf("%s would take %s", r.Source, unit.Seconds(r.Seconds))
	if !r.Known {
		s += ", by guess: nothing was copied this way yet"
	}
	if r.Queue > 0 {
		s += fmt.Sprintf(", of which %s waiting", unit.Seconds(r.Queue))
	}
	if r.Penalty > 0.5 {
		s += fmt.Sprintf(", of which %s since copies from there failed", unit.Seconds(r.Penalty))
	}
	if of > 1 {
		s += fmt.Sprintf(": the least of %s", say.Plural(of, "source"))
	}
	return s
}
