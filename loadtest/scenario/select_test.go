package scenario

import (
	"bytes"
	"strings"
	"testing"

	"weir/internal/require"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, yes, no string
	}{
		{"*.root", "a.root sub/a.root", "a.rootx sub.root/a"},
		{"f[0-9]?", "f1x d/f22", "f1 fxx"},
		{"sub/*.root", "sub/a.root", "a.root sub/deep/a.root x/sub/a.root"},
		{"/a*", "a ab", "sub/a"},
		{"sub/**", "sub/a sub/deep/a", "a suba/b"},
		{"**/a", "a sub/a sub/deep/a", "sub/ab"},
		{"2024/**/x/*", "2024/x/f 2024/a/b/x/f", "2024/a/f x/f"},
		{"**", "a sub/a", ""},
		{`a\*`, "a*", "ab"},
	} {
		for _, name := range strings.Fields(c.yes) {
			if !(Files{Include: []string{"none", c.pattern}}).Match(name) || (Files{Exclude: []string{"none", c.pattern}}).Match(name) {
				t.Errorf("%s does not match %s", c.pattern, name)
			}
		}
		for _, name := range strings.Fields(c.no) {
			if (Files{Include: []string{"none", c.pattern}}).Match(name) || !(Files{Exclude: []string{"none", c.pattern}}).Match(name) {
				t.Errorf("%s matches %s", c.pattern, name)
			}
		}
	}
	if !(Files{Include: []string{"x"}, Exclude: []string{"*"}}).Match("") {
		t.Error("the target itself is left out")
	}
}

// The plan describes the files of a listing and of a list that are used.
func TestPlanShowsSelection(t *testing.T) {
	for where, want := range map[string]string{
		"listing: true": "or the target itself if it is a file, those that match *.root or 2024/**, without old*, " +
			"at most 2 of them, drawn at random",
		"list: testdata/select.txt": "4 files listed in testdata/select.txt, those that match *.root or 2024/**, without old*, " +
			"at most 2 of them, drawn at random (2 files)",
	} {
		var text bytes.Buffer
		p := plan(t, "target: http://localhost/data\nfiles: {"+where+", include: ['*.root', '2024/**'], exclude: ['old*'], sample: 2}\n")
		require.NoError(t, p.WriteText(&text))
		if got := strings.Join(strings.Fields(text.String()), " "); !strings.Contains(got, want) {
			t.Errorf("%s: %s", where, got)
		}
	}
}
