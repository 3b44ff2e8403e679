package say

import (
	"strings"
	"testing"

	"weir/internal/require"
)

// Lines of a table have no spaces at their ends, and break at the width of Fit.
func TestTable(t *testing.T) {
	for _, c := range []struct {
		width int
		rows  [][]any
		want  string
	}{
		{0, [][]any{{"a", "b", ""}, {"long", "c", "d"}}, "NAME  X\na     b\nlong  c  d\n"},
		{0, [][]any{{"\u00e9\u00e9", "b"}, {}, {"a\tb\nc", ""}}, "NAME  X\n\u00e9\u00e9    b\n\na b c\n"},
		{29, [][]any{{"a", "one two three four five six"}}, "NAME  X\na     one two three four five\n      six\n"},
		{10, [][]any{{"a", "one two three four five six"}}, "NAME  X\na     one two three four\n      five six\n"},
	} {
		var b strings.Builder
		table := NewTable(&b, "NAME", "X")
		table.Fit(c.width)
		for _, row := range c.rows {
			table.Row(row...)
		}
		require.NoError(t, table.FlushOr("none"))
		if b.String() != c.want {
			t.Errorf("width %d: %q, want %q", c.width, b.String(), c.want)
		}
	}
	var b strings.Builder
	require.NoError(t, NewTable(&b, "NAME").FlushOr("none"))
	if b.String() != "none\n" {
		t.Errorf("%q", b.String())
	}
}

// Cut shortens first cells alone, and only as far as the width demands.
func TestCut(t *testing.T) {
	for _, c := range []struct {
		width       int
		first, want string
	}{
		{80, "a-name-of-some-length", "NAME                   X\na-name-of-some-length  12\n\nnote of any length that is never cut\n"},
		{20, "a-name-of-some-length", "NAME              X\na-name-of-som...  12\n\nnote of any length that is never cut\n"},
		{5, "a-name-of-some-length", "NAME        X\na-name-...  12\n\nnote of any length that is never cut\n"},
	} {
		var b strings.Builder
		table := NewTable(&b, "NAME", "X")
		table.Cut(c.width)
		table.Row(c.first, 12)
		table.Row("")
		require.NoError(t, table.Flush())
		table = NewTable(&b)
		table.Cut(c.width)
		table.Row("note of any length that is never cut")
		require.NoError(t, table.Flush())
		if b.String() != c.want {
			t.Errorf("width %d: %q, want %q", c.width, b.String(), c.want)
		}
	}
}
