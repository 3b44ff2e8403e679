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

// A File is a file to be copied, with the sources that have it.
type File struct {
	Bytes    int64
	Dest     string
	Sources  []string
	Failures map[string]int // number of failures of each source for this file
	Max      map[string]int // copies that a site may have at once; absent or 0: no limit
}

// A Choice is the source selected for a file.
type Choice struct {
	Source string  // "": no source can be used now
	Wait   string  // the source worth waiting for, if Source is ""
	Why    string  // a sentence
	Probe  bool    // the source is not the best, but is probed after some time
	Ranks  []Ranks // all sources, the best first
}

// Ranks is the predicted cost of a source for a file.
type Ranks struct {
	Source  string
	Seconds float64 // until the file has arrived: waiting, copying, and the cost of failures
	Copy    float64 // part of Seconds for copying
	Queue   float64 // part of Seconds for waiting for the link
	Penalty float64 // part of Seconds because copies from the source fail
	Limit   int     // maximum number of copies at once on the link
	Known   bool    // there were copies on this link
	Free    bool    // a copy could begin now
	Full    string  // the reason if it could not
}

// Rank returns the rank of the chosen source.
func (c Choice) Rank() Ranks {
	for _, r := range c.Ranks {
		if r.Source == c.Source {
			return r
		}
	}
	return Ranks{}
}

// retry is the cost of a failure, in seconds: noticing it and trying again.
const retry = 30

// Choose selects the source of a file. It changes only the sequence of random numbers: a caller
// that follows it must call Began.
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

// rank orders the sources by the predicted seconds until the file would have arrived.
func (n *Network) rank(f File, now time.Time) []Ranks {
	ranks := make([]Ranks, 0, len(f.Sources))
	for _, source := range f.Sources {
		l := n.peek(source, f.Dest, now)
		alone, known := n.seconds(l, float64(f.Bytes))
		r := Ranks{Source: source, Known: known}
		r.Full = n.full(f, source, l, alone, known)
		r.Free = r.Full == ""
		if l.active >= l.limit.N { // the queue advances each time a copy ends
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

// penalty returns the expected cost of failures: each of them causes a retry. It fades, so that a
// failed source is tried again after a while.
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

// full returns the reason for which a copy cannot begin on a link now, "" if it can.
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
