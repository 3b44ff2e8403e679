package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/analysis"
	"weir/loadtest/analysis/links"
	"weir/storage"
)

// challengeChapter reports on a data challenge: the matrix of its links, the causes of missing
// bytes with advice, and the tables of links, sites, phases and failures.
func challengeChapter(f *analysis.Findings, s *analysis.Series, plots Plots) chapter {
	c := f.Challenge
	matrix := section{Charts: drawings(plots.Matrix)}
	times := section{ID: "rates", Title: "Rates against time", Open: true, Charts: drawings(plots.Challenge)}
	out := chapter{ID: "challenge", Title: "Data challenge", Open: true, Points: wholeFacts(f),
		Parts: filled(matrix, adviceSection(c), linkTable(c), siteTable(c), times, phaseDurations(c), linkFailures(c))}
	if s != nil {
		out.Parts = append(out.Parts, filled(exampleSection(f, s))...)
	}
	return out
}

// wholeFacts returns the facts on the whole challenge: those on single links and sites are in the
// tables.
func wholeFacts(f *analysis.Findings) []string {
	var texts []string
	for i, x := range f.Facts {
		if i > 0 && !strings.HasPrefix(x.Code, "challenge.link") && !strings.HasPrefix(x.Code, "challenge.site.") {
			texts = append(texts, say.Plain(x.Text))
		}
	}
	return texts
}

// challengeCards are the figures of a data challenge that readers look for first.
func challengeCards(c *links.Challenge) []card {
	t := &c.Total
	achieved := card{"Achieved", unit.Percent(t.Ratio), "of the target: " + unit.Bits(t.Achieved) + " of " + unit.Bits(t.Target)}
	if t.Low != nil && t.High != nil {
		achieved.Note = "of the target: " + span(t.Low, t.High, unit.Bits) + " of " + unit.Bits(t.Target)
	}
	attempts := t.Files + t.Failed
	failed := card{"Failed", whole(t.Failed), "of " + say.Plural(int(attempts), "copy")}
	if t.Failed > 0 {
		failed.Note = unit.Percent(float64(t.Failed)/float64(max(1, attempts))) + " of " + whole(attempts) + " copies"
	}
	if t.Expired > 0 {
		failed.Note += "; " + whole(t.Expired) + " by ended credentials"
	}
	held := card{"Links", fmt.Sprintf("%d of %d", t.Held, len(c.Links)), "held 95% of their target for " + unit.Seconds(c.LevelSeconds)}
	return []card{achieved, held,
		{"Copied", amount(t.Bytes), say.Plural(int(t.Files), "file") + " in " + unit.Seconds(c.Seconds)}, failed}
}

// challengeAbout returns the line below the name of a data challenge.
func challengeAbout(f *analysis.Findings, s *analysis.Series) string {
	text := fmt.Sprintf("%s between %s · %s", say.Plural(len(f.Challenge.Links), "link"), say.Plural(len(f.Challenge.Sites), "site"),
		f.Start.UTC().Format("2006-01-02 15:04 MST"))
	if s != nil && s.Plan != nil && s.Plan.Challenge != nil {
		by := s.Plan.Challenge.Inject.By
		text += " · copies by " + map[string]string{"direct": "third-party requests to the sites", "fts": "FTS", "rucio": "Rucio"}[string(by)]
	}
	return say.Plain(text + " · run " + f.Run)
}

// levels reports whether the profile of the challenge has other levels than its highest.
func levels(c *links.Challenge) bool { return c.LevelSeconds > 0 && c.LevelSeconds < 0.98*c.Seconds }

// atLevel returns the achieved share of the target of a link at the highest level, or of the whole
// time if no level is known.
func atLevel(c *links.Challenge, l *links.Link) float64 {
	if c.LevelSeconds > 0 {
		return l.Level
	}
	return l.Ratio
}

// achieved writes a share of the target in whole percent; below 1%, with more digits.
func achieved(x float64) string {
	if x > 0 && x < 0.01 {
		return unit.Percent(x)
	}
	return share(x)
}

// causeText names the cause of a link, with its certainty if it is not certain.
func causeText(c *links.Cause) string {
	if c == nil {
		return ""
	}
	text := strings.TrimSuffix(c.Fact.Text, ".")
	if c.Certainty != "certain" && c.Kind != links.Unknown {
		text += fmt.Sprintf(" (%s)", c.Certainty)
	}
	return text
}

// linkTable is the table of all links, the worst first.
func linkTable(c *links.Challenge) section {
	s := section{ID: "links", Title: "Links, the worst first", Open: true,
		Note: "Target and achieved are means over the time with a target, with the 95% interval of the mean; within 5% is the share of the " +
			"minutes whose rate was within 5% of the target; waiting are the copies that the service has not begun; the cause took the most bytes."}
	every := make([]*links.Link, len(c.Links))
	for i := range c.Links {
		every[i] = &c.Links[i]
	}
	fields := []field[*links.Link]{
		{"!<link", (*links.Link).Name},
		{"!target", func(l *links.Link) string { return unit.Bits(l.Target) }},
		{"!achieved", func(l *links.Link) string { return unit.Bits(l.Achieved) }},
		{".interval", func(l *links.Link) string { return span(l.Low, l.High, unit.Bits) }},
		{"!%", func(l *links.Link) string { return achieved(l.Ratio) }},
		{"!at " + share(c.Level), func(l *links.Link) string { return achieved(atLevel(c, l)) }},
		{"within 5%", func(l *links.Link) string { return share(l.Within) }},
		{"files", func(l *links.Link) string { return whole(l.Files) }},
		{"!failed", func(l *links.Link) string { return whole(l.Failed) }},
		{".~failures", func(l *links.Link) string { return failureText(l.Failures) }},
		{"labeled", labeledText},
		{".in flight", func(l *links.Link) string { return unit.Significant(l.Flight) }},
		{".waiting", func(l *links.Link) string { return unit.Significant(l.Queued) }},
		{"!~cause", func(l *links.Link) string { return causeText(l.Cause) }},
	}
	if levels(c) {
		s.Note += fmt.Sprintf(" The column \"at %s\" has the achieved share while the targets were at their highest level.", share(c.Level))
	} else {
		fields = slices.DeleteFunc(fields, func(x field[*links.Link]) bool { return strings.HasPrefix(x.head, "!at ") })
	}
	if slices.ContainsFunc(c.Links, func(l links.Link) bool { return l.SciTag > 0 }) {
		s.Note += " Labeled are the copies that carried the flow label (SciTags) of their link: it was passed on with their requests. " +
			"Whether the sites marked the packets is not measured."
	} else {
		fields = slices.DeleteFunc(fields, func(x field[*links.Link]) bool { return x.head == "labeled" })
	}
	tabulate(&s, every, func(*links.Link) bool { return false }, fields)
	if n := len(c.Links) - len(s.Rows); n > 0 {
		s.Note += fmt.Sprintf(" The other %d links are in challenge.csv.", n)
	}
	return s
}

// labeledText writes the copies that carried the flow label of their link, and the label.
func labeledText(l *links.Link) string {
	if l.SciTag == 0 {
		return "-"
	}
	return fmt.Sprintf("%s of %s (%d)", whole(l.Labeled), whole(l.Files+l.Failed), l.SciTag)
}

// failureText lists failures by class and end: "12 denied (destination)".
func failureText(all []links.Failure) string {
	var parts []string
	for _, x := range all {
		text := fmt.Sprintf("%s %s", whole(x.Copies), x.Class)
		if x.End != links.EndUnknown && x.End != "" {
			text += " (" + x.End + ")"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// siteTable compares the traffic of each site with its capacity, the site with the highest usage
// first.
func siteTable(c *links.Challenge) section {
	s := section{ID: "sites", Title: "Sites", Open: true,
		Note: "Sums of the links of a site. Busiest is the busiest minute, as a share of the " +
			"capacity that the plan states."}
	every := make([]*links.Site, len(c.Sites))
	for i := range c.Sites {
		every[i] = &c.Sites[i]
	}
	least := func(x *links.Site) float64 { return min(reached(&x.In), reached(&x.Out)) }
	slices.SortStableFunc(every, func(a, b *links.Site) int { return cmp.Compare(least(a), least(b)) })
	side := func(of func(*links.Site) *links.Side) []field[*links.Site] {
		return []field[*links.Site]{
			{"mean", func(x *links.Site) string { return unit.Bits(of(x).Mean) }},
			{"target", func(x *links.Site) string { return unit.Bits(of(x).Target) }},
			{"%", func(x *links.Site) string { return sideShare(of(x)) }},
			{"busiest", func(x *links.Site) string { return busiestMinute(of(x)) }},
		}
	}
	in := side(func(x *links.Site) *links.Side { return &x.In })
	out := side(func(x *links.Site) *links.Side { return &x.Out })
	in[0].head, out[0].head = "in: mean", "out: mean"
	tabulate(&s, every, func(*links.Site) bool { return false },
		slices.Concat([]field[*links.Site]{{"<site", func(x *links.Site) string { return x.Site }}}, in, out))
	return s
}

// reached returns the share of the target that a side of a site reached, 1 without a target.
func reached(x *links.Side) float64 {
	if x.Target <= 0 {
		return 1
	}
	return x.Mean / x.Target
}

func sideShare(x *links.Side) string {
	if x.Target <= 0 {
		return "-"
	}
	return achieved(reached(x))
}

// busiestMinute writes the rate of the busiest minute, with its share of the capacity.
func busiestMinute(x *links.Side) string {
	text := unit.Bits(x.Max)
	if x.Usage != nil {
		text += ", " + share(*x.Usage) + " of " + unit.Bits(*x.Capacity)
	}
	return text
}

// phaseDurations is the table of the durations of the phases of copies.
func phaseDurations(c *links.Challenge) section {
	s := section{ID: "durations", Title: "Durations of copies, median and p99",
		Note: "Of copies that arrived. Queue is from the request to the first byte, transfer to the last byte, verification to the end. " +
			"A dash: the service does not report that phase."}
	var every []*links.Link
	for i := range c.Links {
		if c.Links[i].Whole != nil {
			every = append(every, &c.Links[i])
		}
	}
	of := func(phase func(*links.Link) *links.Phase) func(l *links.Link) string {
		return func(l *links.Link) string {
			if p := phase(l); p != nil {
				return unit.Seconds(p.P50) + ", " + unit.Seconds(p.P99)
			}
			return "-"
		}
	}
	tabulate(&s, every, func(*links.Link) bool { return false }, []field[*links.Link]{
		{"<link", (*links.Link).Name},
		{"queue", of(func(l *links.Link) *links.Phase { return l.Queue })},
		{"transfer", of(func(l *links.Link) *links.Phase { return l.Transfer })},
		{"verification", of(func(l *links.Link) *links.Phase { return l.Verify })},
		{"whole copy", of(func(l *links.Link) *links.Phase { return l.Whole })},
	})
	return s
}

// A failureGroup has the failures of one class at one site.
type failureGroup struct {
	class  storage.Class
	site   string // "": unknown
	copies int64
	links  int
}

// linkFailures is the table of failures by class and site.
func linkFailures(c *links.Challenge) section {
	groups := map[failureGroup]*failureGroup{}
	for i := range c.Links {
		l := &c.Links[i]
		for _, x := range l.Failures {
			key := failureGroup{class: x.Class, site: map[string]string{links.EndSource: l.Source, links.EndDest: l.Dest}[x.End]}
			if groups[key] == nil {
				groups[key] = &failureGroup{class: key.class, site: key.site}
			}
			groups[key].copies += x.Copies
			groups[key].links++
		}
	}
	s := section{ID: "linkfailures", Title: "Failed copies", Open: true,
		Note: "The site is that to which the service, or the site itself, attributes the failure."}
	if c.Total.Expired > 0 {
		s.Note += fmt.Sprintf(" %s failed since their credentials had ended; they are counted here as well.",
			say.Capital(say.Plural(int(c.Total.Expired), "copy")))
	}
	order := slices.SortedFunc(maps.Values(groups), func(a, b *failureGroup) int {
		return cmp.Or(cmp.Compare(b.copies, a.copies), cmp.Compare(a.class, b.class), cmp.Compare(a.site, b.site))
	})
	tabulate(&s, order, func(*failureGroup) bool { return false }, []field[*failureGroup]{
		{"<class", func(g *failureGroup) string { return g.class.String() }},
		{"<site", func(g *failureGroup) string { return cmp.Or(g.site, "unknown") }},
		{"copies", func(g *failureGroup) string { return whole(g.copies) }},
		{"links", func(g *failureGroup) string { return fmt.Sprint(g.links) }},
		{"~what it means", func(g *failureGroup) string { means, _ := meaning(g.class); return means }},
		{".~what to look at", func(g *failureGroup) string { _, look := meaning(g.class); return look }},
	})
	return s
}
