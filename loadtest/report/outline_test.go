package report

import (
	"regexp"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/loadtest/analysis/compare"
	"weir/loadtest/results/resultstest"
)

// A user of a screen reader can go from heading to heading, from table to table and from plot to
// plot: no heading, table or plot is skipped, and each has a name.
func TestOutline(t *testing.T) {
	pages := map[string]string{}
	for name, s := range map[string]resultstest.Service{"typical": resultstest.Typical(), "cluster": cluster(), "hostile": hostile()} {
		f, series := analyzed(t, s)
		pages[name] = page1(t, f, series)
	}
	f, series := analyzed(t, small())
	manyHosts(series, 20, 60)
	pages["hosts"] = page1(t, f, series)
	for name, c := range comparisons(t) {
		pages[name] = compared(t, c)
	}
	for name, page := range pages {
		last := 0
		for _, h := range regexp.MustCompile(`<h([1-6])[^>]*>(.*?)</h[1-6]>`).FindAllStringSubmatch(page, -1) {
			level := int(h[1][0] - '0')
			if level > last+1 || strings.TrimSpace(h[2]) == "" {
				t.Errorf("%s: heading %q of level %d after one of level %d", name, h[2], level, last)
			}
			last = level
		}
		tables, captions := strings.Count(page, "<table>"),
			len(regexp.MustCompile(`<table><caption class="unseen">[^<]+</caption>`).FindAllString(page, -1))
		if tables == 0 || captions != tables {
			t.Errorf("%s: %d tables, %d captions", name, tables, captions)
		}
		for _, link := range regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(page, -1) {
			if !strings.Contains(page, `id="`+link[1]+`"`) {
				t.Errorf("%s: a link leads to %s, which is not there", name, link[1])
			}
		}
	}
}

func compared(t *testing.T, c *compare.Comparison) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, ComparisonHTML(&b, c))
	return b.String()
}

var emptyHead = regexp.MustCompile(`<caption[^>]*>([^<]*)</caption><thead><tr>(?:<th[^>]*>[^<]+</th>)*<th[^>]*></th>`)

// headed fails the test unless the page has one first heading, each column of its tables has a head,
// and its tables can be scrolled with the keyboard.
func headed(t *testing.T, page string) {
	t.Helper()
	if n := strings.Count(page, "<h1>"); n != 1 {
		t.Errorf("%d first headings", n)
	}
	for _, table := range emptyHead.FindAllStringSubmatch(page, -1) {
		t.Errorf("%s: a column without a head", table[1])
	}
	if n, all := strings.Count(page, `<div class="scroll" tabindex="0" role="region"`), strings.Count(page, "<table>"); n != all {
		t.Errorf("%d of %d tables are reached by keyboard", n, all)
	}
}
