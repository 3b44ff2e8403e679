package say

import (
	"slices"
	"testing"
)

func TestPlural(t *testing.T) {
	for want, got := range map[string]string{
		"1 step": Plural(1, "step"), "0 steps": Plural(0, "step"), "3 retries": Plural(3, "retry"), "1 retry": Plural(1, "retry"),
		"once": Times(1), "0 times": Times(0), "7 times": Times(7), "is": Either(1, "is", "are"), "are": Either(2, "is", "are"),
		"The rate": Capital("the rate"), "": Capital(""), "CPU": Capital("CPU"), "\u00e9t\u00e9": Capital("\u00e9t\u00e9"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  []string
	}{
		{"", 5, []string{""}}, {"  a\n b ", 5, []string{"a b"}}, {"one two three", 7, []string{"one two", "three"}},
		{"enormous a", 3, []string{"enormous", "a"}}, {"\u00e9\u00e9 \u00e9\u00e9", 5, []string{"\u00e9\u00e9 \u00e9\u00e9"}},
	} {
		if got := Wrap(c.text, c.width); !slices.Equal(got, c.want) {
			t.Errorf("%q in %d: %q, want %q", c.text, c.width, got, c.want)
		}
	}
}
