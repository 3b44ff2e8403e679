package links

import (
	"cmp"
	"slices"
	"strings"

	"weir/internal/cause"
	"weir/internal/stats"
	"weir/loadtest/analysis/fact"
)

// mostEpisodes is the largest number of episodes of a link that findings list.
const mostEpisodes = 100

// named returns a verdict as a Cause, without its evidence.
func (s *subject) named(v verdict) Cause {
	c := Cause{Kind: v.Cause.kind, Detail: v.Detail, Certainty: v.Certainty}
	if v.Certainty == cause.Unknown {
		c = Cause{Kind: Unknown, Certainty: cause.Unknown}
		for _, k := range v.Among {
			c.Among = append(c.Among, s.name(Cause{Kind: k.kind}).Text)
		}
		c.Fact = unknown(c.Among)
		return c
	}
	for i := range s.ends {
		if e := &s.ends[i]; v.Cause.kind == e.h.Cause.kind {
			c.Site = e.name
			if c.Detail == Interface || c.Detail == Capacity || c.Detail == SiteLine {
				c.Kind, c.Shared = Line, s.names(e.other)
			}
			if c.Detail == "" && e.idle {
				c.Kind, c.Detail, c.Shared = Line, SiteLine, s.names(e.other)
			}
		}
	}
	if v.Cause.kind == Line && v.Cause.group >= 0 {
		c.Detail, c.Shared = Trunk, s.names(without(s.block().groups[v.Cause.group], s.index))
	}
	c.Fact = s.name(c)
	return c
}

func (j *judge) names(links []int) (all []string) {
	for _, i := range links {
		all = append(all, j.links[i].plan.Name())
	}
	return all
}

func unknown(among []string) fact.Fact {
	if len(among) < 2 {
		return fact.New("challenge.cause.unknown")
	}
	return fact.New("challenge.cause.among", "among", among)
}

// name returns the fact that names a cause of the subject.
func (s *subject) name(c Cause) fact.Fact {
	site := c.Site
	if site == "" {
		site = map[Kind]string{Source: s.l.plan.From, Dest: s.l.plan.To}[c.Kind]
	}
	switch c.Detail {
	case Disk:
		return fact.New("challenge.cause.disk", "site", site)
	case CPU:
		return fact.New("challenge.cause.cpu", "site", site)
	case Interface:
		return fact.New("challenge.cause.interface", "site", site)
	case Capacity:
		return fact.New("challenge.cause.capacity", "site", site)
	case SiteLine:
		return fact.New("challenge.cause.site_line", "site", site)
	case Refuses:
		return fact.New("challenge.cause.refuses", "site", site)
	case Fails:
		return fact.New("challenge.cause.fails", "site", site)
	case Away:
		return fact.New("challenge.cause.away", "site", site)
	case Full:
		return fact.New("challenge.cause.full", "site", site)
	case Door:
		return fact.New("challenge.cause.door", "site", site)
	case Login:
		return fact.New("challenge.cause.login", "site", site)
	case Checksum:
		return fact.New("challenge.cause.checksum", "site", site)
	case Trunk:
		return fact.New("challenge.cause.trunk", "links", fact.List(c.Shared))
	}
	return s.nameOfKind(c, site)
}

func (s *subject) nameOfKind(c Cause, site string) fact.Fact {
	switch c.Kind {
	case Source, Dest:
		return fact.New("challenge.cause.site", "site", site)
	case Line:
		return fact.New("challenge.cause.line", "link", s.l.plan.Name())
	case Service:
		if c.Detail == Starts {
			return fact.New("challenge.cause.starts")
		}
		if c.Detail == Answers {
			return fact.New("challenge.cause.answers")
		}
		return fact.New("challenge.cause.service")
	case Credentials:
		if c.Detail == Expired {
			return fact.New("challenge.cause.expired")
		}
		if c.Detail == Issuer {
			return fact.New("challenge.cause.issuer")
		}
		return fact.New("challenge.cause.denied")
	}
	return nameOfInjection(c.Detail)
}

func nameOfInjection(detail string) fact.Fact {
	switch detail {
	case Copies:
		return fact.New("challenge.cause.in_flight")
	case SmallFiles:
		return fact.New("challenge.cause.small_files")
	case LargeFiles:
		return fact.New("challenge.cause.large_files")
	case Ceiling:
		return fact.New("challenge.cause.ceiling")
	case Late:
		return fact.New("challenge.cause.late")
	case Start:
		return fact.New("challenge.cause.start")
	case Pacing:
		return fact.New("challenge.cause.control")
	}
	return fact.New("challenge.cause.injection")
}

// observed returns the facts of the evidence for a verdict, and of that against other causes: the
// strongest first, each once.
func observed(v verdict) (evidence, excluded []fact.Fact) {
	evidence, excluded = []fact.Fact{}, []fact.Fact{}
	seen := map[string]bool{}
	add := func(to *[]fact.Fact, all []cause.Evidence[observation], sign cause.Strength) {
		all = slices.Clone(all)
		slices.SortStableFunc(all, func(a, b cause.Evidence[observation]) int { return cmp.Compare(sign*b.Strength, sign*a.Strength) })
		for _, e := range all {
			if f := e.Observation(); sign*e.Strength > 0 && !seen[f.Text] {
				seen[f.Text] = true
				*to = append(*to, f)
			}
		}
	}
	add(&evidence, v.Evidence, 1)
	add(&excluded, v.Excluded, -1)
	return evidence, excluded
}

// A spell is an episode in progress.
type spell struct {
	Episode
	wanted, moved float64
	last          int // index of its last minute
	worst         float64
	subject       *subject
	verdict       verdict
}

// identity distinguishes causes in sums.
func (c *Cause) identity() string {
	return string(c.Kind) + " " + c.Site + " " + strings.Join(c.Shared, " ")
}

// spells returns the episodes of a link, and the cause of each minute below the target.
func (j *judge) spells(link int) (all []*spell, causes map[int]Cause) {
	length := j.sums.minute.Seconds()
	causes = map[int]Cause{}
	for _, of := range j.together(link) {
		s, v := j.explain(link, of)
		c, missing := s.named(v), 0.0
		for at := of.from; at < of.to; at++ {
			if m := j.judged(link, at); m != nil && m.below() {
				causes[at], missing = c, missing+m.missing()
			}
		}
		var now *spell
		if n := len(all); n > 0 && all[n-1].last >= of.from-2 && all[n-1].identity() == c.identity() && all[n-1].Detail == c.Detail &&
			all[n-1].Certainty == c.Certainty {
			now = all[n-1]
		} else {
			now = &spell{Episode: Episode{Cause: c, From: float64(of.from) * length}, worst: -1}
			all = append(all, now)
		}
		now.last, now.To = of.to-1, float64(of.to)*length
		now.wanted, now.moved, now.Missing = now.wanted+s.m.wanted, now.moved+s.m.moved, now.Missing+missing
		if missing > now.worst {
			now.worst, now.subject, now.verdict = missing, s, v
			now.Cause = c
		}
	}
	for _, e := range all {
		e.Ratio = stats.Ratio(e.moved, e.wanted)
		e.Evidence, e.Excluded = observed(e.verdict)
		e.subject, e.verdict = nil, verdict{}
	}
	return all, causes
}

// minutes returns the number of minutes of an episode.
func (e *Episode) minutes(length float64) int { return int((e.To-e.From)/length + 0.5) }

// A tally sums episodes by cause.
type tally struct {
	shares  []*Share
	index   map[string]*Share
	certain map[*Share]float64 // missing bytes of certain verdicts
	worst   map[*Share]float64 // missing bytes of the episode that gives the detail
	missing float64
}

func newTally() *tally {
	return &tally{index: map[string]*Share{}, certain: map[*Share]float64{}, worst: map[*Share]float64{}}
}

// add adds an episode. together leaves out the other links of a line.
func (t *tally) add(e *Episode, minutes int, together bool) {
	c := e.Cause
	if together {
		c.Shared = nil
		if c.Kind == Unknown {
			c.Among, c.Fact = nil, unknown(nil)
		}
	}
	s := t.index[c.identity()]
	if s == nil {
		s = &Share{Cause: c}
		t.index[c.identity()] = s
		t.shares = append(t.shares, s)
	}
	if e.Missing > t.worst[s] {
		t.worst[s] = e.Missing
		s.Cause = c
	}
	s.Minutes += minutes
	s.Missing += e.Missing
	t.missing += e.Missing
	if e.Certainty == cause.Certain {
		t.certain[s] += e.Missing
	}
}

// result returns the shares, the most missing bytes first.
func (t *tally) result() []Share {
	all := []Share{}
	for _, s := range t.shares {
		s.Ratio = stats.Ratio(s.Missing, t.missing)
		if s.Kind != Unknown {
			s.Certainty = cause.Likely
			if 2*t.certain[s] > s.Missing {
				s.Certainty = cause.Certain
			}
		}
		all = append(all, *s)
	}
	slices.SortStableFunc(all, func(a, b Share) int { return cmp.Compare(b.Missing, a.Missing) })
	return all
}
