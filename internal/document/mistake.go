package document

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"weir/internal/say"
)

// A Mistake describes one error in a file: its place, the problem and a correct value.
type Mistake struct {
	File   string // its path, as given
	Line   int    // from 1; 0 for a mistake without a line
	Column int    // from 1, in characters
	Set    string // path of the --set that brought it in, instead of a position
	Text   string
}

// Error returns "file:line:column: text", or "--set path: text".
func (m *Mistake) Error() string {
	switch {
	case m.Set != "":
		return "--set " + m.Set + ": " + strings.TrimPrefix(m.Text, m.Set+": ")
	case m.Line == 0 && m.File == "":
		return m.Text
	case m.Line == 0:
		return m.File + ": " + m.Text
	case m.File == "":
		return fmt.Sprintf("%d:%d: %s", m.Line, m.Column, m.Text)
	}
	return fmt.Sprintf("%s:%d:%d: %s", m.File, m.Line, m.Column, m.Text)
}

// MaxMistakes is the number of mistakes that are listed; the others are counted.
const MaxMistakes = 20

// Mistakes are all the mistakes of a file in the order of their places; mistakes in --set follow.
type Mistakes []*Mistake

// Error returns one line for each of the first 20 mistakes and the number of further mistakes.
func (ms Mistakes) Error() string {
	var b strings.Builder
	for i, m := range ms {
		if i > 0 {
			b.WriteByte('\n')
		}
		if i == MaxMistakes {
			fmt.Fprintf(&b, "... and %d more mistakes", len(ms)-i)
			break
		}
		b.WriteString(m.Error())
	}
	return b.String()
}

// Unwrap returns the mistakes as errors.
func (ms Mistakes) Unwrap() []error {
	errs := make([]error, len(ms))
	for i, m := range ms {
		errs[i] = m
	}
	return errs
}

// Err returns ms in order, nil if there are no mistakes.
func (ms Mistakes) Err() error {
	if len(ms) == 0 {
		return nil
	}
	slices.SortStableFunc(ms, func(a, b *Mistake) int {
		if c := cmp.Compare(len(a.Set), len(b.Set)); c != 0 && (a.Set == "" || b.Set == "") {
			return c
		}
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.CompactFunc(ms, func(a, b *Mistake) bool { return *a == *b })
}

// Quote returns text in quotes, cut short if it is long.
func Quote(text string) string {
	if r := []rune(text); len(r) > 60 {
		text = string(r[:57]) + "..."
	}
	return fmt.Sprintf("%q", text)
}

// Meant returns "; did you mean X?" with the known word that is nearest, or a list of the known words if all are far.
func Meant(word string, known []string) string {
	if near := say.Nearest(word, known); near != "" {
		return "; did you mean " + near + "?"
	}
	if len(known) == 0 {
		return "; none are known"
	}
	return "; use one of " + strings.Join(known, ", ")
}
