package weir

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestVoice holds the pages for users to native technical English, as far as a list of words can: each of these was
// common in this project and has a better word.
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
	pages, err := filepath.Glob("docs/*.md")
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range append(pages, "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		code := false
		for i, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(line, "```") {
				code = !code
			}
			if code {
				continue
			}
			for pattern, word := range better {
				if found := pattern.FindString(line); found != "" && !strings.Contains(line, "user nobody") {
					t.Errorf("%s:%d: %q: write %s", page, i+1, found, word)
				}
			}
		}
		// Whoever opens a long page sees what is on it.
		if lines := strings.Split(string(text), "\n"); len(lines) > 100 && strings.HasPrefix(page, "docs/") && page != "docs/benchmarks.md" &&
			strings.Count(strings.Join(lines[:40], "\n"), "](#") < 2 {
			t.Errorf("%s has %d lines and no table of contents", page, len(lines))
		}
	}
}
