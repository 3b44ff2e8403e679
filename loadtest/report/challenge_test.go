package report

import (
	"bytes"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/loadtest/analysis"
	"weir/loadtest/analysis/links"
	"weir/loadtest/results/resultstest"
)

// challenged analyzes a simulated data challenge.
func challenged(t *testing.T, c resultstest.Challenge) (*analysis.Findings, *analysis.Series) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	require.NoError(t, c.Write(dir))
	return both(t, dir)
}

// The report of a data challenge shows each link with its share, its cause and the next step, and
// fits a terminal of 80 columns.
func TestChallenge(t *testing.T) {
	f, s := challenged(t, resultstest.Rehearsal())
	var summary, text, page bytes.Buffer
	require.NoError(t, Text(&summary, f, Options{Width: 80}))
	golden(t, "challenge.txt", summary.Bytes())
	for _, line := range strings.Split(summary.String(), "\n") {
		if len([]rune(line)) > summaryWidth {
			t.Errorf("%d columns: %s", len([]rune(line)), line)
		}
	}
	require.NoError(t, Text(&text, f, Options{Verbose: true}))
	require.NoError(t, HTML(&page, f, s))
	headed(t, page.String())
	whole := body(t, page.String())
	for _, want := range []string{"A to C", "disks of C", "F does not respond", "What held the links back, and what to do next",
		"Measure the disks alone", "Failed copies", "denied"} {
		if !strings.Contains(text.String(), want) || !strings.Contains(whole, want) {
			t.Errorf("no %q", want)
		}
	}
	for _, want := range []string{"Achieved share of the target rate at the level of 100%", ">62</text>", `class="matrix"`,
		"Links below their target, minute by minute", "A to C against time", "Rate of all links against time", "held 95% of their target"} {
		if !strings.Contains(whole, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if strings.Contains(whole, "The curve") || strings.Contains(whole, "NaN") {
		t.Error("the page has a curve, or a number that is none")
	}
}

// The report of 2,000 links stays small, and shows the sites of the links that miss the most.
func TestChallengeOfThousandsOfLinks(t *testing.T) {
	tier.Slow(t, "analyzes 2,000 links")
	c := resultstest.Grid()
	f, s := challenged(t, c)
	var page bytes.Buffer
	require.NoError(t, HTML(&page, f, s))
	if n := page.Len(); n > 5<<20 {
		t.Errorf("%d bytes", n)
	}
	m := Figures(f, s).Matrix[0].Matrix
	if len(m.Rows) != mostMatrix+1 || m.Columns[0] != c.SiteName(c.Slow()) {
		t.Errorf("%d rows, the first destination is %s", len(m.Rows), m.Columns[0])
	}
	if regexp.MustCompile(`Shown are \d+ of 2000 links`).FindString(body(t, page.String())) == "" {
		t.Error("the page does not say how many links the matrix leaves out")
	}
}

// The table of links shows the copies that carried the flow label of their link, if a link has one.
func TestLabeled(t *testing.T) {
	c := &links.Challenge{Links: []links.Link{{Source: "A", Dest: "B", SciTag: 129, Files: 7, Failed: 3, Labeled: 8},
		{Source: "B", Dest: "A"}}}
	s := linkTable(c)
	i := slices.IndexFunc(s.Head, func(h column) bool { return h.Text == "labeled" })
	if i < 0 || s.Rows[0].Cells[i].Text != "8 of 10 (129)" || s.Rows[1].Cells[i].Text != "-" || !strings.Contains(s.Note, "SciTags") {
		t.Errorf("column %d: %+v, %s", i, s.Rows, s.Note)
	}
	c.Links[0].SciTag = 0
	if s := linkTable(c); slices.ContainsFunc(s.Head, func(h column) bool { return h.Text == "labeled" }) {
		t.Error("there are no labels")
	}
}

// The summary keeps within the width of a terminal whatever the names.
func TestWidth(t *testing.T) {
	f, _ := challenged(t, resultstest.Rehearsal())
	for i := range f.Challenge.Links {
		l := &f.Challenge.Links[i]
		l.Source, l.Dest = strings.Repeat(l.Source, 40), strings.Repeat(l.Dest, 40)
	}
	var text bytes.Buffer
	require.NoError(t, Text(&text, f, Options{Width: 80}))
	for line := range strings.Lines(text.String()) {
		if n := utf8.RuneCountInString(line) - 1; n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// Each cause has a next step of its own kind, and names from outside stay text.
func TestAdvice(t *testing.T) {
	seen := map[string]string{}
	for kind, details := range map[links.Kind][]string{
		links.Source: {links.Disk, links.CPU, links.Interface, links.Capacity, links.SiteLine, links.Refuses, links.Fails, links.Away, links.Full,
			links.Door, links.Login, links.Checksum, ""},
		links.Line:        {links.Trunk, links.Own, ""},
		links.Service:     {links.Queue, links.Starts, links.Answers, ""},
		links.Credentials: {links.Expired, links.Denied, links.Issuer},
		links.Injection:   {links.Copies, links.SmallFiles, links.LargeFiles, links.Ceiling, links.Late, links.Start, links.Pacing},
		links.Unknown:     {""},
	} {
		for _, detail := range details {
			text := advice(&links.Cause{Kind: kind, Detail: detail})
			if other, ok := seen[text]; ok || !strings.HasSuffix(text, ".") {
				t.Errorf("%s %s has the advice of %s: %s", kind, detail, other, text)
			}
			seen[text] = string(kind) + " " + detail
		}
	}
	f, s := challenged(t, resultstest.Challenge{Sites: 3, Links: 3, Minutes: 12, Every: 10, Rate: 1e7, Copies: 4})
	const name = `<script>alert(1)</script>` + "\x1b[2J"
	for i := range f.Challenge.Links {
		f.Challenge.Links[i].Source = name
	}
	for i := range f.Challenge.Sites {
		f.Challenge.Sites[i].Site = name
	}
	for i := range s.Links {
		s.Links[i].Source = name
	}
	var page bytes.Buffer
	require.NoError(t, HTML(&page, f, s))
	if text := body(t, page.String()); strings.Contains(text, "<script>alert") || strings.Contains(text, "\x1b") {
		t.Error("a name is not text")
	}
}

// A challenge without a measured minute, or whose links all held, has a report as well.
func TestEmptyAndHealthyChallenges(t *testing.T) {
	for _, c := range []*links.Challenge{{}, {Links: []links.Link{{Source: "A", Dest: "B"}}, Sites: []links.Site{{Site: "A"}, {Site: "B"}}}} {
		f := &analysis.Findings{Challenge: c, Verdict: "nothing"}
		var page, text bytes.Buffer
		require.NoError(t, HTML(&page, f, nil))
		require.NoError(t, Text(&text, f, Options{}))
		require.NoError(t, HTML(&page, f, &analysis.Series{}))
		if strings.Contains(page.String(), "NaN") {
			t.Error("a number that is none")
		}
	}
	healthy := resultstest.Rehearsal()
	healthy.Healthy = true
	f, s := challenged(t, healthy)
	var page bytes.Buffer
	require.NoError(t, HTML(&page, f, s))
	if strings.Contains(page.String(), "what to do next") || !strings.Contains(page.String(), "12 of 12") {
		t.Error("a healthy challenge has causes")
	}
}
