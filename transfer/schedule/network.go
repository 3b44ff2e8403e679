package schedule

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"weir/transfer"
)

// A Network holds the state of all links. It is not safe for concurrent use.
type Network struct {
	rules Rules
	rand  *rand.Rand
	links map[way]*link
	busy  map[string]int // copies of a site, in or out
	in    map[string]int // copies to a site
	out   map[string]int // copies from a site
	most  Limits
}

// Limits are set by administrators, besides Rules.
type Limits struct {
	In, Out map[string]int                          // copies to and from a site at once; absent or 0: no limit
	Link    func(from, to string) (least, most int) // copies at once on a link; 0, 0: Rules. nil: Rules for all
}

// Limit sets the limits. The limits of links are moved into the new range at once; if a link was at
// its former maximum, it starts again.
func (n *Network) Limit(l Limits) {
	if n.most.Link == nil && l.Link == nil {
		n.most = l
		return
	}
	former := map[way]int{}
	for w := range n.links {
		former[w] = n.rulesOf(w).Max
	}
	n.most = l
	for w, one := range n.links {
		r := n.rulesOf(w)
		to := one.limit.N
		if to == former[w] && r.Max > to {
			to = max(to, r.Start)
		}
		if to = min(r.Max, max(r.Min, to)); to != one.limit.N {
			one.limit = Limit{N: to, Success: one.limit.Success, Cause: transfer.LimitFixed,
				Why: fmt.Sprintf("an administrator has changed the limits to %d to %d at once", r.Min, r.Max)}
		}
	}
}

// rulesOf returns the rules of a link.
func (n *Network) rulesOf(w way) Rules {
	r := n.rules
	if n.most.Link == nil {
		return r
	}
	if least, most := n.most.Link(w.from, w.to); most > 0 {
		r.Min, r.Max = least, most
		r.Start = min(max(r.Start, least), most)
	}
	return r
}

type way struct{ from, to string }

// A link is the connection from one site to another.
type link struct {
	limit   Limit
	recent  Recent
	success float64   // of recent copies, 0 to 1
	last    time.Time // time of the last copy's end, good or bad
	failed  time.Time // time of the last failure

	active  int
	sizes   float64 // bytes of the active copies
	since   time.Time
	area    float64 // copies times seconds in this window
	changed time.Time
	moved   float64
	good    int
	bad     int
	rate    float64 // bytes per second recently
}

// New returns a Network without history. The seed determines the random probes.
func New(r Rules, seed uint64) *Network {
	return &Network{
		rules: r.filled(), rand: rand.New(rand.NewPCG(seed, 0x77656972)),
		links: map[way]*link{}, busy: map[string]int{}, in: map[string]int{}, out: map[string]int{},
	}
}

// Rules returns the rules of the network.
func (n *Network) Rules() Rules { return n.rules }

// link returns a link, and stores it if it is new.
func (n *Network) link(from, to string, now time.Time) *link {
	l := n.peek(from, to, now)
	n.links[way{from, to}] = l
	return l
}

// peek returns a link, or a new link if it is not known. It stores nothing.
func (n *Network) peek(from, to string, now time.Time) *link {
	if l := n.links[way{from, to}]; l != nil {
		return l
	}
	return &link{limit: Limit{}.Next(Window{}, n.rulesOf(way{from, to})), success: 1, since: now, changed: now}
}

// Began records that a copy of the given number of bytes begins.
func (n *Network) Began(from, to string, bytes int64, now time.Time) {
	if from == to {
		return // a site verifies a file that it has
	}
	l := n.link(from, to, now)
	l.count(now)
	l.active++
	l.sizes += float64(bytes)
	n.busy[from]++
	n.busy[to]++
	n.out[from]++
	n.in[to]++
}

// Moved records that a running copy has moved more bytes.
func (n *Network) Moved(from, to string, bytes int64, now time.Time) {
	if from != to {
		n.link(from, to, now).moved += float64(bytes)
	}
}

// Left records that a copy of the given number of bytes, recorded by Began, has ended.
func (n *Network) Left(from, to string, bytes int64, now time.Time) {
	if from == to {
		return
	}
	l := n.link(from, to, now)
	l.count(now)
	l.active = max(0, l.active-1)
	l.sizes = max(0, l.sizes-float64(bytes))
	n.busy[from] = max(0, n.busy[from]-1)
	n.busy[to] = max(0, n.busy[to]-1)
	n.out[from] = max(0, n.out[from]-1)
	n.in[to] = max(0, n.in[to]-1)
}

// Learn takes an attempt that ended into account.
func (n *Network) Learn(a transfer.Attempt) {
	counts, good := Counts(a.Fault)
	if !counts || a.Existed || a.Source == a.Dest {
		return // it contains no information about the link
	}
	l := n.link(a.Source, a.Dest, a.End)
	to := 0.0
	if good {
		to = 1
		l.good++
		l.recent.Add(float64(a.Moved), a.End.Sub(a.Begin).Seconds())
	} else {
		l.bad++
		l.failed = a.End
	}
	l.success += (to - l.success) * 0.1
	l.last = a.End
}

// Counts reports whether an attempt with this result is evidence about its link, and if it is,
// whether the result is good.
func Counts(f transfer.ErrorClass) (counts, good bool) {
	switch f {
	case "":
		return true, true
	case transfer.Transient, transfer.Unreachable, transfer.Throttled, transfer.LeaseLost, transfer.Checksum:
		return true, false
	}
	return false, false // caused by the file, or by a person
}

// count adds the copies and time since the last change to the area.
func (l *link) count(now time.Time) {
	if d := now.Sub(l.changed).Seconds(); d > 0 {
		l.area += d * float64(l.active)
	}
	l.changed = now
}

// Tick adapts the limits, and returns the changes, without ids. It should be called about once a
// second.
func (n *Network) Tick(now time.Time) (changes []transfer.LimitChange) {
	for w, l := range n.links {
		span := now.Sub(l.since)
		if span < n.rules.Span {
			continue
		}
		l.count(now)
		s := span.Seconds()
		seen := Window{Rate: l.moved / s, Active: l.area / s, Good: l.good, Bad: l.bad}
		if before := l.limit.N; seen.Active > 0 || seen.Good+seen.Bad > 0 {
			if l.limit = l.limit.Next(seen, n.rulesOf(w)); l.limit.N != before {
				changes = append(changes, transfer.LimitChange{Time: now, Source: w.from, Dest: w.to, Before: before, Limit: l.limit.N,
					Cause: l.limit.Cause, Why: l.limit.Why, Rate: seen.Rate, Success: l.limit.Success})
			}
		}
		switch {
		case seen.Active == 0 && seen.Rate == 0:
			l.rate = 0 // a fading mean would still report copies that are over
		case l.rate == 0:
			l.rate = seen.Rate
		default:
			l.rate += (seen.Rate - l.rate) * max(weight, min(1, s/30))
		}
		l.since, l.area, l.moved, l.good, l.bad = now, 0, 0, 0, 0
	}
	slices.SortFunc(changes, func(a, b transfer.LimitChange) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Dest, b.Dest))
	})
	return changes
}

// Links returns all links, sorted by name.
func (n *Network) Links() []transfer.Link {
	links := make([]transfer.Link, 0, len(n.links))
	for w, l := range n.links {
		links = append(links, transfer.Link{
			Source: w.from, Dest: w.to, Active: l.active, Limit: l.limit.N, Cause: l.limit.Cause, Why: l.limit.Why, Rate: l.rate,
			Success: l.success,
		})
	}
	slices.SortFunc(links, func(a, b transfer.Link) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Dest, b.Dest))
	})
	return links
}

// Active returns the number of copies of a site, in and out.
func (n *Network) Active(site string) int { return n.busy[site] }

// room returns the number of further copies, with the given duration, that may be handed out on a
// link. Small files may wait at their mover, so that the next file is always available.
func (l *link) room(seconds float64, known bool, r Rules) int {
	ahead := 1.0
	if known {
		ahead = min(64, max(1, r.Ahead.Seconds()/max(seconds, 1e-6)))
	}
	return int(math.Ceil(float64(l.limit.N)*ahead)) - l.active
}

// seconds predicts the duration of a copy by itself; known is true if the link has recent copies.
// The duration on an unknown link is the mean of the predictions of the other links, or else an
// optimistic guess, so that the link is tried.
func (n *Network) seconds(l *link, bytes float64) (s float64, known bool) {
	if s, ok := l.recent.Seconds(bytes); ok {
		return s, true
	}
	var sum, count float64
	for _, other := range n.links {
		if s, ok := other.recent.Seconds(bytes); ok {
			sum += math.Log(max(s, 1e-6))
			count++
		}
	}
	if count > 0 {
		return math.Exp(sum / count), false
	}
	return 0.01 + bytes/100e6, false
}

// A Kept link is the state of a link that is kept when the coordinator restarts.
type Kept struct {
	Source  string    `json:"source"`
	Dest    string    `json:"dest"`
	Limit   Limit     `json:"limit"`
	Recent  Recent    `json:"recent"`
	Success float64   `json:"success"`
	Last    time.Time `json:"last,omitzero"`
	Failed  time.Time `json:"failed,omitzero"`
	Rate    float64   `json:"rate_bytes_per_second"`
}

// Forget removes the links of a site that takes part in no copy.
func (n *Network) Forget(site string) {
	maps.DeleteFunc(n.links, func(w way, _ *link) bool { return w.from == site || w.to == site })
}

// Keep returns the state of all links to be kept, sorted by name.
func (n *Network) Keep() []Kept {
	kept := make([]Kept, 0, len(n.links))
	for w, l := range n.links {
		kept = append(kept, Kept{
			Source: w.from, Dest: w.to, Limit: l.limit, Recent: l.recent,
			Success: l.success, Last: l.last, Failed: l.failed, Rate: l.rate,
		})
	}
	slices.SortFunc(kept, func(a, b Kept) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Dest, b.Dest))
	})
	return kept
}

// Load restores the kept links. Limits stay within the current rules, and unfinished trials are
// forgotten.
func (n *Network) Load(kept []Kept, now time.Time) {
	for _, k := range kept {
		l := n.link(k.Source, k.Dest, now)
		if r := n.rulesOf(way{k.Source, k.Dest}); r.Min < r.Max && k.Limit.N > 0 {
			l.limit = k.Limit
			if l.limit.Before > 0 {
				l.limit.N, l.limit.Before = l.limit.Before, 0
			}
			l.limit.N = min(r.Max, max(r.Min, l.limit.N))
			l.limit.Seen, l.limit.Sum = 0, 0
		}
		l.recent, l.success, l.last, l.failed, l.rate = k.Recent, k.Success, k.Last, k.Failed, k.Rate
	}
}
