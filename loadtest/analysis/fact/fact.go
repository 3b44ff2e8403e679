// Package fact describes the findings of an analysis as codes with values. words.txt, one line per
// code, is the only place that has their words.
package fact

import (
	_ "embed" // words.txt
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"weir/internal/say"
	"weir/internal/unit"
)

// A Fact is one finding. Codes and the names of values are stable, Text may change at any time.
type Fact struct {
	Code   string         `json:"code"` // a line of words.txt, such as check.errors.failed
	Values map[string]any `json:"values,omitempty"`
	Text   string         `json:"text"`
}

// New returns the fact of a code. pairs are the names and values that its template has, such as
// "failed", 3. Times are in seconds, data in bytes, rates per second, shares from 0 to 1.
func New(code string, pairs ...any) Fact {
	f := Fact{Code: code}
	for i := 0; i+1 < len(pairs); i += 2 {
		if f.Values == nil {
			f.Values = map[string]any{}
		}
		f.Values[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	f.Text = render(Words()[code], f.Values)
	return f
}

// Texts returns the texts of facts.
func Texts(all []Fact) []string {
	texts := make([]string, len(all))
	for i, f := range all {
		texts[i] = f.Text
	}
	return texts
}

// Has reports whether facts have a code.
func Has(all []Fact, code string) bool {
	return slices.ContainsFunc(all, func(f Fact) bool { return f.Code == code })
}

// A Shown is a value whose text depends on another value: the unit and the title of a metric, or how many names of a list are written.
// JSON has the value alone.
type Shown struct {
	Value any
	Text  string
}

// As returns a value that has this text in the text of a fact.
func As(value any, text string) Shown { return Shown{value, text} }

// List returns a list of which the text has the first four names.
func List(names []string) Shown {
	const longest = 4
	written := names
	if len(names) > longest+1 {
		written = append(names[:longest:longest], fmt.Sprintf("%d more", len(names)-longest))
	}
	return As(names, say.List(written))
}

func (s Shown) String() string { return s.Text }

// MarshalJSON implements json.Marshaler.
func (s Shown) MarshalJSON() ([]byte, error) { return json.Marshal(s.Value) }

//go:embed words.txt
var words string

// Words returns the templates by code. A template is text with {name} or {name:format} for a value;
// format is one of Formats, "plural WORD" or a verb of package fmt such as .3g.
var Words = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(words) {
		if code, template, ok := strings.Cut(strings.TrimSpace(line), " "); ok && !strings.HasPrefix(line, "#") {
			all[code] = strings.TrimSpace(template)
		}
	}
	return all
})

// Placeholder matches a value in a template: its name and its format.
var Placeholder = regexp.MustCompile(`\{([a-z_]+)(?::([^}]+))?\}`)

func render(template string, values map[string]any) string {
	return Placeholder.ReplaceAllStringFunc(template, func(s string) string {
		m := Placeholder.FindStringSubmatch(s)
		return write(values[m[1]], m[2])
	})
}

// Formats write numbers in the units of package unit.
var Formats = map[string]func(float64) string{
	"percent": unit.Percent, // of a share
	"change":  func(x float64) string { return fmt.Sprintf("%+.1f%%", 100*x) },
	"bytes":   unit.Bytes,
	"bits":    unit.Bits, // of bytes per second
	"seconds": unit.Seconds,
	"count":   unit.Count,
	"digits":  unit.Significant,
	"times":   func(x float64) string { return say.Times(int64(x)) },
}

func write(v any, format string) string {
	if f := Formats[format]; f != nil {
		return f(number(v))
	}
	if word, ok := strings.CutPrefix(format, "plural "); ok {
		return say.Plural(int(number(v)), word)
	}
	switch v := v.(type) {
	case []string:
		return say.List(v)
	case fmt.Stringer, string:
		return fmt.Sprint(v)
	}
	if format != "" {
		return fmt.Sprintf("%"+format, v)
	}
	return fmt.Sprint(v)
}

func number(v any) float64 {
	switch v := v.(type) {
	case float64:
		return v
	case int:
		return float64(v)
	case int64:
		return float64(v)
	}
	return 0
}
