package links

import (
	"weir/internal/cause"
	"weir/internal/stats"
	"weir/loadtest/analysis/fact"
	"weir/loadtest/challenge"
	"weir/loadtest/measure"
)

// An observation returns the fact of a piece of evidence. Only the evidence of episodes is made
// into text.
type observation func() fact.Fact

// A key identifies a cause: a kind, and the group of links of a shared line.
type key struct {
	kind  Kind
	group int // index of the shared line in the block, -1 for other causes
}

type (
	hypothesis = cause.Hypothesis[key, observation]
	verdict    = cause.Verdict[key, observation]
)

// A judge explains the minutes below the target.
type judge struct {
	sums     *Sums
	plan     *challenge.Challenge
	links    []linkSum
	hosts    *hostSums
	from, to [][]int // links by source and by destination
	direct   bool    // there is no transfer service
	blocks   map[int]*block

	services, issuers []answerSum // by minute: answers of the transfer service and of the issuer of credentials
}

func newJudge(s *Sums) *judge {
	sites := len(s.plan.Sites)
	j := &judge{sums: s, plan: s.plan, links: s.links, hosts: &s.hosts, from: make([][]int, sites), to: make([][]int, sites),
		direct: s.plan.Inject.By == challenge.Direct, blocks: map[int]*block{},
		services: s.answersOf(measure.TransferService), issuers: s.answersOf(measure.Issuer)}
	for i := range s.links {
		l := &s.links[i]
		j.from[l.source], j.to[l.dest] = append(j.from[l.source], i), append(j.to[l.dest], i)
		l.learn(s.minute.Seconds())
	}
	return j
}

// judged returns a minute of a link, or nil if it was not measured long enough or is a pause.
func (j *judge) judged(link, minute int) *minute {
	l := &j.links[link]
	if minute < 0 || minute >= len(l.minutes) || !l.minutes[minute].judged(j.sums.minute.Seconds()) {
		return nil
	}
	return &l.minutes[minute]
}

// A subject has minutes of a link below its target that are judged together, with all hypotheses.
type subject struct {
	*judge
	span   span // of the minutes
	at     int  // index of the first minute
	index  int  // of the link
	l      *linkSum
	m      *minute         // sum of the minutes
	others map[int]*minute // the same of other links, as they are needed

	source, dest, line, service, credentials, injection hypothesis

	ends [2]end // source and destination
}

// An end is one of the two sites of a subject.
type end struct {
	h     *hypothesis
	site  int
	name  string
	role  int   // atSource or atDest
	all   []int // links in the same direction
	other []int // the same without the subject
	away  []int // links in the other direction
	idle  bool  // its disks and cores had little to do
}

// explain returns the cause of minutes below the target that are judged together.
func (j *judge) explain(link int, of span) (*subject, verdict) {
	l := &j.links[link]
	s := &subject{judge: j, span: of, at: of.from, index: link, l: l, m: j.pooled(link, of, true), others: map[int]*minute{}}
	for h, kind := range map[*hypothesis]Kind{&s.source: Source, &s.dest: Dest, &s.line: Line, &s.service: Service,
		&s.credentials: Credentials, &s.injection: Injection} {
		h.Cause = key{kind, -1}
	}
	s.ends = [2]end{
		{h: &s.source, site: l.source, name: l.plan.From, role: atSource, all: j.from[l.source], away: j.to[l.source]},
		{h: &s.dest, site: l.dest, name: l.plan.To, role: atDest, all: j.to[l.dest], away: j.from[l.dest]},
	}
	for i := range s.ends {
		s.ends[i].other = without(s.ends[i].all, link)
	}
	failures{s}.failing()
	s.weir()
	s.atService()
	s.answers()
	if s.capacity() {
		s.capacities()
	}
	for i := range s.ends {
		s.watched(&s.ends[i])
	}
	s.phases()
	all := []hypothesis{s.source, s.dest, s.line, s.credentials, s.injection}
	if !j.direct {
		all = append(all, s.service)
	}
	return s, cause.Judge(all)
}

// without returns links without one of them.
func without(links []int, link int) []int {
	all := make([]int, 0, len(links))
	for _, i := range links {
		if i != link {
			all = append(all, i)
		}
	}
	return all
}

// capacity reports whether a part that carries bytes may be the limit: nothing else holds the link
// back for most of the time.
func (s *subject) capacity() bool { return s.m.open() }

// open reports whether nothing on purpose held the link back for most of the minute.
func (m *minute) open() bool {
	held := 0.0
	for _, reason := range []int{paced, ceiling, failing, largeFile, idle} {
		held += m.share(reason)
	}
	return held < 0.5
}

// learn computes the properties of a link that all of its minutes show together.
func (l *linkSum) learn(length float64) {
	var well, verified []float64
	for i := range l.minutes {
		m := &l.minutes[i]
		if !m.judged(length) || m.below() {
			continue
		}
		if m.perCopy() > 0 {
			well = append(well, m.perCopy())
		}
		if m.ended >= 3 {
			verified = append(verified, m.verification())
		}
	}
	if len(well) > 0 {
		l.base = stats.Quantile(well, 0.9)
	}
	if len(verified) > 0 {
		l.usual = stats.Quantile(verified, 0.5)
	}
	l.elastic, l.elasticKnown = l.elasticity(length)
}

// Limits of the elasticity.
const (
	leastPoints = 12
	leastSpread = 0.1 // standard deviation of the logarithm of the copies
)

// elasticity returns the slope of the logarithm of the rate against that of the running copies in
// minutes below the target: 1 if copies do not hinder each other, 0 if they share a capacity. ok is
// false if the number of copies hardly changed.
func (l *linkSum) elasticity(length float64) (slope float64, ok bool) {
	var n, x, y, xx, xy float64
	for i := range l.minutes {
		m := &l.minutes[i]
		if !m.judged(length) || !m.below() || m.share(failing) > 0.1 {
			continue
		}
		for _, p := range m.part {
			if p.seconds <= 0 || p.running < 0.5*p.seconds || p.moved <= 0 {
				continue
			}
			a, b := log(p.running/p.seconds), log(p.moved/p.seconds)
			n, x, y, xx, xy = n+1, x+a, y+b, xx+a*a, xy+a*b
		}
	}
	if n < leastPoints {
		return 0, false
	}
	variance := xx/n - x*x/n/n
	if variance < leastSpread*leastSpread {
		return 0, false
	}
	return (xy/n - x*y/n/n) / variance, true
}
