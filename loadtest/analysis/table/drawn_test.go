package table

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Tables with vertical bars are read as they are on pages, in wikis and on terminals.
func TestDrawnTables(t *testing.T) {
	for name, text := range map[string]string{
		"Markdown":               "| clients | **MB/s** |\n|--------:|:--|\n| 1 | 10 |\n| 2 | 20 |\n",
		"Markdown without frame": "clients | MB/s\n--- | ---\n1 | 10\n2 | 20\n",
		"psql":                   " clients | MB/s \n---------+------\n       1 |   10\n       2 |   20\n(2 rows)\n",
		"mysql": "+---------+------+\n| clients | MB/s |\n+---------+------+\n" +
			"|       1 |   10 |\n|       2 |   20 |\n+---------+------+\n",
		"reStructuredText": "+---------+------+\n| clients | MB/s |\n+=========+======+\n" +
			"| 1       | 10   |\n+---------+------+\n| 2       | 20   |\n+---------+------+\n",
		"Jira":       "||clients||MB/s||\n|1|10|\n|2|20|\n",
		"TWiki":      "| *clients* | *MB/s* |\n| 1 | 10 |\n| 2 | 20 |\n",
		"DokuWiki":   "^ clients ^ MB/s ^\n| 1 | 10 |\n| 2 | 20 |\n",
		"MediaWiki":  "{| class=\"wikitable\"\n|+ a caption\n! clients !! style=\"x\" | MB/s\n|-\n| 1 || 10\n|-\n| 2\n| 20\n|}\n",
		"bars alone": "|clients|MB/s|\n|1|10|\n|2|20|\n",
	} {
		table := read(t, text, Options{})
		if d := cmp.Diff([][]float64{{1, 2}, {10e6, 20e6}}, [][]float64{xs(table.Found[Clients]), xs(table.Found[Throughput])}); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	_, err := Read("t.md", strings.NewReader("| clients | MB/s |\n|---|---|\n| 1 | x |\n"), Options{})
	if at := new(Error); !errors.As(err, &at) || at.Line != 3 || at.Column != 7 {
		t.Errorf("%v", err)
	}
}
