package links

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"weir/internal/cause"
	"weir/loadtest/analysis/basics"
	"weir/loadtest/analysis/fact"
)

// mostNamed and mostSites are the numbers of links below their targets and of sites at their
// capacities that facts name, and longest is that of the letters of a headline.
const (
	mostNamed = 10
	mostSites = 4
	longest   = 100
)

// Text returns the facts as lines; the first line is the headline.
func (c *Challenge) Text() string { return strings.Join(fact.Texts(c.Headline), "\n") }

// facts returns the result: the headline, then one fact per line.
func (c *Challenge) facts() []fact.Fact {
	all := []fact.Fact{c.headline()}
	if c.Seconds == 0 {
		return all
	}
	t := &c.Total
	all = append(all, fact.New("challenge.total", "achieved", t.Achieved, "low", t.Low, "high", t.High, "target", t.Target, "ratio", t.Ratio))
	if c.Interrupted {
		all = append(all, fact.New("challenge.interrupted", "seconds", c.Seconds, "planned", c.Planned))
	}
	all = append(all, c.linkFacts()...)
	if t.Service >= 0.05 {
		all = append(all, fact.New("challenge.service", "share", t.Service))
	}
	if t.Injection >= 0.05 {
		all = append(all, fact.New("challenge.injection", "share", t.Injection))
	}
	all = append(all, c.siteFacts()...)
	if t.Failed > 0 {
		all = append(all, fact.New("challenge.failed", "failed", t.Failed, "ended", t.Failed+t.Files))
	}
	if t.Expired > 0 {
		all = append(all, fact.New("challenge.expired", "failed", t.Expired))
	}
	if ended := c.tagged(); ended > 0 {
		all = append(all, fact.New("challenge.labeled", "labeled", t.Labeled, "ended", ended))
	}
	if c.Clock != nil {
		all = append(all, fact.New("challenge.clock", "seconds", c.Clock))
	}
	return all
}

// tagged returns the number of copies that ended on links with a flow label.
func (c *Challenge) tagged() (ended int64) {
	for l := range basics.Each(c.Links) {
		if l.SciTag > 0 {
			ended += l.Files + l.Failed
		}
	}
	return ended
}

// siteFacts returns the sites that reached their stated capacities in a minute.
func (c *Challenge) siteFacts() (all []fact.Fact) {
	rest := 0
	for s := range basics.Each(c.Sites) {
		for _, side := range []*Side{&s.In, &s.Out} {
			switch {
			case side.Usage == nil || *side.Usage < atLimit:
			case len(all) >= mostSites:
				rest++
			case side == &s.In:
				all = append(all, fact.New("challenge.site.in", "site", s.Site, "rate", side.Max, "capacity", side.Capacity))
			default:
				all = append(all, fact.New("challenge.site.out", "site", s.Site, "rate", side.Max, "capacity", side.Capacity))
			}
		}
	}
	if rest > 0 {
		all = append(all, fact.New("challenge.site.more", "sites", rest))
	}
	return all
}

// linkFacts returns the links that did not hold their targets.
func (c *Challenge) linkFacts() (all []fact.Fact) {
	rest := 0
	for l := range basics.Each(c.Links) {
		switch {
		case l.Held() || l.Target == 0 || c.LevelSeconds == 0:
		case len(all) == mostNamed:
			rest++
		case l.Cause == nil || l.Cause.Kind == Unknown:
			all = append(all, fact.New("challenge.link.unknown", "link", l.Name(), "ratio", l.Level))
		case l.Cause.Certainty == cause.Certain:
			all = append(all, fact.New("challenge.link.certain", "link", l.Name(), "ratio", l.Level, "cause", l.Cause.Fact.Shown()))
		default:
			all = append(all, fact.New("challenge.link.likely", "link", l.Name(), "ratio", l.Level, "cause", l.Cause.Fact.Shown()))
		}
	}
	if rest > 0 {
		all = append(all, fact.New("challenge.links.more", "links", rest))
	}
	return all
}

// headline returns the number of links that held the highest level, and the worst link with its
// cause, on a line of at most 100 letters if the names allow.
func (c *Challenge) headline() fact.Fact {
	used, held := 0, c.Total.Held
	for l := range basics.Each(c.Links) {
		if l.Target > 0 {
			used++
		}
	}
	if used == 0 {
		return fact.New("challenge.nothing")
	}
	if c.LevelSeconds == 0 {
		return fact.New("challenge.short", "seconds", c.Seconds)
	}
	if held == used {
		return fact.New("challenge.held.all", "links", used, "level", c.Level, "seconds", c.LevelSeconds)
	}
	worst := c.worst()
	short := fact.New("challenge.held.some", "held", held, "links", used, "level", c.Level, "seconds", c.LevelSeconds,
		"link", worst.Name(), "ratio", worst.Level)
	if worst.Cause == nil {
		return short
	}
	if all := c.sharedCause(worst, held, used); all.Code != "" && utf8.RuneCountInString(all.Text) <= longest {
		return all
	}
	whole := fact.New("challenge.held.cause", "held", held, "links", used, "level", c.Level, "seconds", c.LevelSeconds,
		"link", worst.Name(), "ratio", worst.Level, "cause", worst.Cause.Fact.Shown())
	if utf8.RuneCountInString(whole.Text) <= longest {
		return whole
	}
	if utf8.RuneCountInString(short.Text) <= longest {
		return short
	}
	return fact.New("challenge.held.count", "held", held, "links", used, "level", c.Level, "seconds", c.LevelSeconds)
}

// sharedCause returns the headline that names all links with the cause of the worst link, or an empty
// fact if it is the cause of no other link.
func (c *Challenge) sharedCause(worst *Link, held, used int) fact.Fact {
	n, from, to := 0, worst.Source, worst.Dest
	low, high := worst.Level, worst.Level
	for l := range basics.Each(c.Links) {
		if l.Target == 0 || l.Cause == nil || l.Cause.Kind == Unknown || l.Cause.Fact.Text != worst.Cause.Fact.Text {
			continue
		}
		n++
		low, high = min(low, l.Level), max(high, l.Level)
		if l.Source != worst.Source {
			from = ""
		}
		if l.Dest != worst.Dest {
			to = ""
		}
	}
	if n < 2 {
		return fact.Fact{}
	}
	text := fmt.Sprintf("%.0f%%", 100*low)
	if to := fmt.Sprintf("%.0f%%", 100*high); to != text {
		text += " to " + to
	}
	ratio := fact.As(low, text)
	shown := worst.Cause.Fact.Shown()
	switch {
	case to != "":
		return fact.New("challenge.held.to", "held", held, "links", used, "level", c.Level, "seconds", c.LevelSeconds,
			"below", n, "site", to, "ratio", ratio, "cause", shown)
	case from != "":
		return fact.New("challenge.held.from", "held", held, "links", used, "level", c.Level, "seconds", c.LevelSeconds,
			"below", n, "site", from, "ratio", ratio, "cause", shown)
	}
	return fact.New("challenge.held.several", "held", held, "links", used, "level", c.Level, "seconds", c.LevelSeconds,
		"below", n, "ratio", ratio, "cause", shown)
}

// worst returns the link with the lowest share of its target at the highest level.
func (c *Challenge) worst() *Link {
	for l := range basics.Each(c.Links) {
		if l.Target > 0 {
			return l
		}
	}
	return &c.Links[0]
}
