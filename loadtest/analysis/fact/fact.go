// Package fact describes the findings of an analysis as codes with values. words.txt, one line per
// code, is the only place that contains their text.
package fact

import (
	_ "embed" // words.txt
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"weir/internal/say"
	"weir/internal/stats"
	"weir/internal/unit"
)

// A Fact is one finding. Codes and the names of values are stable, Text may change at any time.
type Fact struct {
	Code   string         `json:"code"` // a line of words.txt, such as check.errors.failed
	Values map[string]any `json:"values,omitempty"`
	Text   string         `json:"text"`
}

// New returns the fact of a code. pairs are the names and values that its template contains, such
// as "failed", 3. Times are in seconds, data in bytes, rates per second, shares from 0 to 1. A
// *float64 stands for its number. nil and numbers that are not finite are left out of Values.
func New(code string, pairs ...any) Fact {
	f := Fact{Code: code}
	for i := 0; i+1 < len(pairs); i += 2 {
		v := pairs[i+1]
		if p, ok := v.(*float64); ok {
			if p == nil {
				continue
			}
			v = *p
		}
		if x, ok := v.(float64); ok && !stats.Finite(x) {
			continue
		}
		if f.Values == nil {
			f.Values = map[string]any{}
		}
		f.Values[fmt.Sprint(pairs[i])] = v
	}
	f.Text = render(template(code), f.Values)
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
func Has(all []Fact, code string) bool { return Find(all, code).Code != "" }

// Sentences returns the texts of facts as one text.
func Sentences(all []Fact) string { return strings.Join(Texts(all), " ") }

// A Shown is a value whose text depends on another value: the unit and the title of a metric, or
// the number of names of a list that are written. JSON contains the value alone.
type Shown struct {
	Value any
	Text  string
}

// As returns a value with the text that the text of a fact contains for it.
func As(value any, text string) Shown { return Shown{value, text} }

// List returns a list whose text contains the first four names.
func List(names []string) Shown {
	const longest = 4
	written := names
	if len(names) > longest+1 {
		written = append(names[:longest:longest], fmt.Sprintf("%d more", len(names)-longest))
	}
	return As(names, say.List(written))
}

func (s Shown) String() string { return s.Text }

// Shown returns the fact as a value of another fact, whose text contains its text.
func (f Fact) Shown() Shown { return As(f, f.Text) }

// MarshalJSON implements json.Marshaler.
func (s Shown) MarshalJSON() ([]byte, error) { return json.Marshal(s.Value) }

// Find returns the first fact with a code, or the zero value if no fact has it.
func Find(all []Fact, code string) Fact {
	for _, f := range all {
		if f.Code == code {
			return f
		}
	}
	return Fact{}
}

//go:embed words.txt
var words string

// template returns the template of a code, or "" if words.txt has no line for it.
func template(code string) string {
	_, rest, _ := strings.Cut(words, "\n"+code+" ")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(line)
}

// Words returns the templates by code. A template is text with {name} or {name:format} for a value;
// format is one of Format or TextFormat, "plural WORD", "in NAME" (a number in the unit that the
// value NAME has: B/s, or any word), or a verb of package fmt such as .3g. ", LOW to HIGH" behind it
// adds the interval between two values, unless they are missing.
func Words() map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(words) {
		if code, template, ok := strings.Cut(strings.TrimSpace(line), " "); ok && !strings.HasPrefix(line, "#") {
			all[code] = strings.TrimSpace(template)
		}
	}
	return all
}

// Placeholder matches a value in a template: its name and its format.
var Placeholder = regexp.MustCompile(`\{([a-z_]+)(?::([^}]+))?\}`)

func render(template string, values map[string]any) string {
	return Placeholder.ReplaceAllStringFunc(template, func(s string) string {
		m := Placeholder.FindStringSubmatch(s)
		return write(values, m[1], m[2])
	})
}

// Format returns the format of numbers with a name, in the units of package unit, or nil if the
// name is unknown.
func Format(name string) func(float64) string {
	switch name {
	case "percent": // of a share
		return unit.Percent
	case "change":
		return func(x float64) string { return fmt.Sprintf("%+.1f%%", 100*x) }
	case "bytes":
		return unit.Bytes
	case "bits": // of bytes per second
		return unit.Bits
	case "seconds":
		return unit.Seconds
	case "count":
		return unit.Count
	case "digits":
		return unit.Significant
	case "times":
		return func(x float64) string { return say.Times(int64(x)) }
	}
	return nil
}

// TextFormat returns the format of strings and lists of strings with a name, or nil if the name is
// unknown.
func TextFormat(name string) func(any) string {
	switch name {
	case "capital":
		return func(v any) string { return say.Capital(fmt.Sprint(v)) }
	case "or":
		return alternatives
	}
	return nil
}

// alternatives returns a list as "a, b or c".
func alternatives(v any) string {
	all, _ := v.([]string)
	if n := len(all); n > 1 {
		return strings.Join(all[:n-1], ", ") + " or " + all[n-1]
	}
	return strings.Join(all, "")
}

// write returns a value in a format, with its interval if the format names one: "8.32 Gbit/s (8.10 to 8.52)".
func write(values map[string]any, name, format string) string {
	format, interval, _ := strings.Cut(format, ", ")
	low, high, _ := strings.Cut(interval, " to ")
	text := single(values, name, format)
	if values[low] == nil || values[high] == nil {
		return text
	}
	from, to := single(values, low, format), single(values, high, format)
	if _, unit, ok := strings.Cut(text, " "); ok && strings.HasSuffix(from, " "+unit) && strings.HasSuffix(to, " "+unit) {
		from, to = strings.TrimSuffix(from, " "+unit), strings.TrimSuffix(to, " "+unit)
	}
	return fmt.Sprintf("%s (%s to %s)", text, from, to)
}

// single returns a value in a format without an interval.
func single(values map[string]any, name, format string) string {
	v := values[name]
	if v == nil {
		return "n/a"
	}
	if f := Format(format); f != nil {
		return f(number(v))
	}
	if f := TextFormat(format); f != nil {
		return f(v)
	}
	if word, ok := strings.CutPrefix(format, "plural "); ok {
		return say.Plural(int(number(v)), word)
	}
	if of, ok := strings.CutPrefix(format, "in "); ok {
		return quantity(number(v), fmt.Sprint(values[of]))
	}
	if all, ok := v.([]string); ok {
		return say.List(all)
	}
	if format != "" {
		return fmt.Sprintf("%"+format, v)
	}
	return fmt.Sprint(v)
}

// BytesPerSecond is the unit of throughput.
const BytesPerSecond = "B/s"

func quantity(x float64, in string) string {
	if in == BytesPerSecond {
		return unit.Bits(x)
	}
	return unit.Count(x) + " " + in
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
