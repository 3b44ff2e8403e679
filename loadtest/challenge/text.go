package challenge

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"weir/internal/say"
	"weir/internal/unit"
)

// Bounds of the text of a plan.
const (
	textWidth = 80 // characters of a line
	textLinks = 20 // lines of tables
)

// A planText writes the description of a challenge.
type planText struct {
	*Estimate
	c *Challenge
}

// WriteText writes a description of the challenge for people: what it will do, the stages, and the
// load of links and sites. Tables have at most 20 lines: the links with the largest targets, and the
// sites with the largest share of a stated limit.
func (c *Challenge) WriteText(w io.Writer) error {
	e := c.Estimate()
	p := planText{e, c}
	t := say.NewTable(w)
	t.Fit(textWidth)
	t.Row("challenge", c.Name)
	t.Row("copies by", p.injectText())
	t.Row("sites", fmt.Sprintf("%d, with %s", len(c.Sites), say.Plural(len(c.Links), "link")))
	t.Row("time", fmt.Sprintf("%v in %s", e.Duration, say.Plural(len(c.Profile), "stage")))
	t.Row("amount", fmt.Sprintf("%s in %s of %s; at most %s (%s/s) of all links together", unit.Bytes(e.Bytes), copies(e.Copies),
		c.Files.Size.Text(), unit.Bits(e.Rate), unit.Bytes(e.Rate)))
	if c.Ceiling > 0 {
		t.Row("ceiling", p.ceilingText())
	}
	t.Row("files", p.filesText())
	t.Row("requests", p.requestsText())
	t.Row("control", p.controlText())
	for _, warning := range c.Warnings() {
		t.Row("warning", warning)
	}
	t.Row("monitored", p.hostsText())
	t.Row("seed", c.Seed)
	if err := t.Flush(); err != nil {
		return err
	}
	for _, table := range []func(io.Writer) error{p.stageTable, p.linkTable, p.siteTable} {
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
		if err := table(w); err != nil {
			return err
		}
	}
	return nil
}

// Warnings returns a sentence for each property of the challenge that will probably keep it from its
// targets, or that needs attention.
func (c *Challenge) Warnings() (all []string) {
	e := c.Estimate()
	if e.Limited {
		all = append(all, fmt.Sprintf("the ceiling of %s is below the sum of the targets: links will have %s of theirs at most",
			both(float64(c.Ceiling)), unit.Percent(c.ceilingShare())))
	}
	for i := range e.Sites {
		if s := &e.Sites[i]; s.Space > 0 && s.SpaceMost > float64(s.Space) {
			all = append(all, fmt.Sprintf("%s needs %s to %s of space, more with more copies in flight, and %s are allowed: lower in_flight "+
				"of the site or its links to be safe", s.Name, unit.Bytes(s.SpaceLeast), unit.Bytes(s.SpaceMost), unit.Bytes(float64(s.Space))))
		}
	}
	slow, worst := 0, 0
	for k := range e.Links {
		if seconds := float64(c.Files.Size.Most()) / e.Links[k].BytesPer; seconds > time.Duration(c.Timeout).Seconds() {
			slow++
			if e.Links[k].BytesPer < e.Links[worst].BytesPer || slow == 1 {
				worst = k
			}
		}
	}
	if slow > 0 {
		all = append(all, fmt.Sprintf("%s: one file of %s takes longer than the timeout of %v at the whole target rate, as on %s (%v): use "+
			"smaller files or a longer timeout", say.Plural(slow, "link"), unit.Bytes(float64(c.Files.Size.Most())), c.Timeout,
			c.Links[worst].Name(), unit.Seconds(float64(c.Files.Size.Most())/e.Links[worst].BytesPer)))
	}
	return all
}

// number writes an expected number of copies.
func number(n float64) string {
	if n < 10_000 {
		return fmt.Sprint(math.Ceil(n))
	}
	return unit.Count(n)
}

// copies writes an expected number of copies with its noun.
func copies(n float64) string {
	if math.Ceil(n) == 1 {
		return "1 copy"
	}
	return number(n) + " copies"
}

// hostsText describes the machines that are monitored.
func (p planText) hostsText() string {
	all := make([]string, len(p.c.Hosts))
	for i := range p.c.Hosts {
		all[i] = p.c.Hosts[i].Describe()
	}
	sites, hosts := 0, 0
	for i := range p.c.Sites {
		if n := len(p.c.Sites[i].Hosts); n > 0 {
			sites, hosts = sites+1, hosts+n
		}
	}
	if sites > 0 {
		all = append(all, fmt.Sprintf("%s of %s", say.Plural(hosts, "machine"), say.Plural(sites, "site")))
	}
	return strings.Join(all, "; ")
}

func (p planText) injectText() string {
	switch p.c.Inject.By {
	case FTS:
		return "jobs of FTS at " + p.c.Inject.URL
	case Rucio:
		return fmt.Sprintf("rules of Rucio at %s, account %s, scope %s", p.c.Inject.URL, p.c.Inject.Account, p.c.Inject.Scope)
	}
	return "third-party requests of weir to the sites"
}

func (p planText) ceilingText() string {
	text := both(float64(p.c.Ceiling)) + " of all links together"
	if p.Limited {
		text += "; it limits the challenge"
	}
	return text
}

func (p planText) filesText() string {
	sources := 0
	for i := range p.Sites {
		if p.Sites[i].Sources > 0 {
			sources++
		}
	}
	removed := "copies are removed at once"
	if p.c.Files.Linger > 0 {
		removed = fmt.Sprintf("copies are removed after %v", p.c.Files.Linger)
	}
	if p.c.Files.Keep {
		removed += "; the source files are kept"
	}
	return fmt.Sprintf("%d of %s at each of %s, %s made first; %s", p.c.Files.Sources, p.c.Files.Size.Text(), say.Plural(sources, "source"),
		unit.Bytes(p.Sources), removed)
}

// requestsText describes the requests at the largest share.
func (p planText) requestsText() string {
	r := p.Requests
	per := func(n float64) string { return unit.Significant(n) + "/s" }
	text := fmt.Sprintf("at most %s to the sites: COPY %s, removal %s", per(r.Copies+r.Verify+r.Removal), per(r.Copies), per(r.Removal))
	if p.c.Inject.By != Direct {
		text = fmt.Sprintf("to the service at most %s for %s, and at least %s for states; to the sites: removal %s", per(r.Copies),
			map[Method]string{FTS: "submissions", Rucio: "rules"}[p.c.Inject.By], per(r.Polls), per(r.Removal))
	}
	if p.c.Verify {
		text += ", checksum " + per(r.Verify)
	}
	return text
}

// controlText states the bound of control by the size of files.
func (p planText) controlText() string {
	coarse, worst := 0, 0
	for i := range p.Links {
		if p.Links[i].GrainLow > Coarse {
			coarse++
		}
		if p.Links[i].GrainLow > p.Links[worst].GrainLow {
			worst = i
		}
	}
	if coarse == 0 {
		return "files are at most 1/50 of a minute's bytes on each link and stage"
	}
	l := &p.Links[worst]
	at := minutes(l.GrainLow)
	if l.Grain != l.GrainLow {
		at = fmt.Sprintf("%s at 100%%, %s at the smallest share", minutes(l.Grain), at)
	}
	return fmt.Sprintf("one file in flight is the bound on %s, with more than 1/50 of a minute's bytes: on %s to %s it is %s",
		say.Plural(coarse, "link"), l.Source, l.Dest, at)
}

// minutes writes a share of the bytes of a minute, or the number of minutes.
func minutes(share float64) string {
	if share < 1 {
		return unit.Percent(share)
	}
	return unit.Significant(share) + " minutes"
}

func (p planText) stageTable(w io.Writer) error {
	t := say.NewTable(w, "stage", "from", "duration", "share", "all links at its end")
	sum := 0.0
	for i := range p.c.Links {
		sum += float64(p.c.Links[i].Rate)
	}
	var from unit.Duration
	for i, s := range p.c.Profile {
		share := s.At.String()
		if s.Ramp {
			share = "ramp to " + share
		}
		if i < textLinks || i == len(p.c.Profile)-1 {
			t.Row(i+1, from, s.For, share, both(min(sum*float64(s.At), sum*p.c.ceilingShare())))
		} else if i == textLinks {
			t.Row("...")
		}
		from += s.For
	}
	return t.Flush()
}

func (p planText) linkTable(w io.Writer) error {
	links := slices.Clone(p.Links)
	if len(links) > textLinks {
		slices.SortStableFunc(links, func(a, b LinkEstimate) int { return cmp.Compare(b.Rate, a.Rate) })
	}
	t := say.NewTable(w, "link", "bit/s", "byte/s", "amount", "copies", "requests", "file/min")
	t.Cut(textWidth)
	for i := range links[:min(len(links), textLinks)] {
		l := &links[i]
		t.Row(l.Source+" to "+l.Dest, compact(unit.Bits(l.BytesPer), "bit/s"), compact(unit.Bytes(l.BytesPer), "B"),
			unit.Bytes(l.Bytes), number(l.Copies), number(l.Requests), minutes(l.Grain))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if n := len(links) - textLinks; n > 0 {
		rest := 0.0
		for i := range links[textLinks:] {
			rest += links[textLinks+i].BytesPer
		}
		_, err := fmt.Fprintf(w, "and %s more with smaller targets, together %s\n", say.Plural(n, "link"), both(8*rest))
		return err
	}
	return nil
}

// compact removes the base unit, which the column has: "1 Gbit/s" becomes "1 G".
func compact(text, base string) string { return strings.TrimSpace(strings.TrimSuffix(text, base)) }

func (p planText) siteTable(w io.Writer) error {
	sites := slices.Clone(p.Sites)
	if len(sites) > textLinks {
		slices.SortStableFunc(sites, func(a, b SiteEstimate) int {
			return cmp.Or(cmp.Compare(b.load(), a.load()), cmp.Compare(b.In+b.Out, a.In+a.Out))
		})
	}
	t := say.NewTable(w, "site", "in, bit/s", "out, bit/s", "space at least", "at most", "requests")
	t.Cut(textWidth)
	for i := range sites[:min(len(sites), textLinks)] {
		s := &sites[i]
		t.Row(s.Name, ofLimit(8*s.In, float64(s.InLimit), bits), ofLimit(8*s.Out, float64(s.OutLimit), bits),
			ofLimit(s.SpaceLeast, float64(s.Space), unit.Bytes), unit.Bytes(s.SpaceMost), unit.Significant(s.RequestsPs)+"/s")
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if n := len(sites) - textLinks; n > 0 {
		_, err := fmt.Fprintf(w, "and %s more with a smaller share of their limits\n", say.Plural(n, "site"))
		return err
	}
	return nil
}

func bits(x float64) string { return compact(unit.Bits(x/8), "bit/s") }

// ofLimit writes an amount, with its share of a limit that is known.
func ofLimit(x, limit float64, text func(float64) string) string {
	if limit > 0 {
		return fmt.Sprintf("%s (%.0f%%)", text(x), 100*x/limit)
	}
	return text(x)
}

// load returns the largest share of the stated limits of the site, 0 without limits.
func (s *SiteEstimate) load() (most float64) {
	for _, x := range [][2]float64{{8 * s.In, float64(s.InLimit)}, {8 * s.Out, float64(s.OutLimit)}, {s.SpaceLeast, float64(s.Space)}} {
		if x[1] > 0 {
			most = max(most, x[0]/x[1])
		}
	}
	return most
}
