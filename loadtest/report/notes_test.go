package report

import (
	"bytes"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/loadtest/analysis"
)

// Notes are separate from checks that warn, on a terminal and in the page; a check that its note
// covers completely is not listed twice.
func TestNotesStandApart(t *testing.T) {
	f := &analysis.Findings{Name: "a run", Validity: analysis.Validity{Status: analysis.Suspect, Checks: []analysis.Check{
		{Name: "errors", Status: analysis.Warn, Detail: "3 of 100 operations failed", Effect: "the effect"},
		{Name: "verification", Status: analysis.Skipped, Detail: "the why"},
	}, Notes: []analysis.Note{{Check: "verification", Unchecked: "the why", Remedy: "the remedy"}}}}
	var text, page bytes.Buffer
	require.NoError(t, Text(&text, f, Options{Verbose: true}))
	require.NoError(t, HTML(&page, f, nil))
	headed(t, page.String())
	for name, said := range map[string]string{"text": text.String(), "page": page.String()} {
		flat := strings.Join(strings.Fields(said), " ")
		for _, want := range []string{"3 of 100 operations failed: the effect", "the remedy"} {
			if !strings.Contains(flat, want) {
				t.Errorf("%s: %q is missing", name, want)
			}
		}
		if n := strings.Count(flat, "the why"); n != 1 {
			t.Errorf("%s: the note stands there %d times", name, n)
		}
	}
}
