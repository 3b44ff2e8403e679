package weir

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"weir/internal/require"
)

// TestVoice finds words in the pages for users that are not native technical English, as far as a
// list of words allows: each of these was common in this project and has a better word. It also
// finds the phrases that TestGoVoice finds in Go.
func TestVoice(t *testing.T) {
	better := map[*regexp.Regexp]string{}
	for pattern, word := range map[string]string{
		`\b[Tt]old\b`: "reported, distinguished", `\b[Nn]obody\b`: "no client, no user, nothing", `\b(,|who) too\b`: "also",
		`, too[.,;]`: "also", `\bhangs? on\b`: "depends on", `\bin the crowd\b|\bin a crowd\b`: "many clients",
		`\b[Tt]roop|\b[Mm]uster`: "workers",
		`\bis that true\b`:       "a statement", `\bgoes? home\b|\bgone home\b`: "leave", `\bno number of\b`: "out of range",
	} {
		better[regexp.MustCompile(pattern)] = word
	}
	pages, err := filepath.Glob("*.md")
	require.NoError(t, err)
	err = filepath.WalkDir("docs", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil || len(pages) < 25 || !slices.Contains(pages, "CHANGELOG.md") {
		t.Fatalf("pages %q, %v", pages, err)
	}
	for _, page := range pages {
		text := require.File(t, page)
		code := false
		for i, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(line, "```") {
				code = !code
			}
			if code {
				continue
			}
			checkVoice(t, page, i+1, line)
			for pattern, word := range better {
				if found := pattern.FindString(line); found != "" && !strings.Contains(line, "user nobody") {
					t.Errorf("%s:%d: %q: write %s", page, i+1, found, word)
				}
			}
		}
		// A long page begins with a table of contents.
		if lines := strings.Split(string(text), "\n"); len(lines) > 100 && strings.HasPrefix(page, "docs/") && page != "docs/benchmarks.md" &&
			strings.Count(strings.Join(lines[:40], "\n"), "](#") < 2 {
			t.Errorf("%s has %d lines and no table of contents", page, len(lines))
		}
	}
}
