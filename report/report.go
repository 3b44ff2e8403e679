// Package report writes findings for people: as text for a terminal, as CSV
// and JSON for other programs, and as one HTML file with plots that opens
// anywhere.
package report

import (
	"io"
	"math"
	"strconv"
	"strings"
	"unicode"

	"weir/analysis"
)

// CSV writes the curve as a table, one line a step, units in the header.
func CSV(w io.Writer, f *analysis.Findings) error { return analysis.CurveCSV(w, f) }

// JSON writes f as it stands in findings.json.
func JSON(w io.Writer, f *analysis.Findings) error { return analysis.JSON(w, f) }

// A scale turns base units into the unit that suits the largest value of a
// column or an axis.
type scale struct {
	factor float64 // times a value in base units
	unit   string
}

// bits scales bytes per second to bits per second.
func bits(most float64) scale {
	s := decimal(8*most, "bit/s")
	s.factor *= 8
	return s
}

// decimal scales with 1000-based prefixes.
func decimal(most float64, unit string) scale {
	s := scale{1, ""}
	for _, prefix := range []string{"k", "M", "G", "T", "P"} {
		if most*s.factor < 1000 {
			break
		}
		s.factor /= 1000
		s.unit = prefix
	}
	s.unit += unit
	return s
}

// seconds scales times.
func seconds(most float64) scale {
	switch {
	case most >= 1 || most <= 0:
		return scale{1, "s"}
	case most >= 1e-3:
		return scale{1e3, "ms"}
	}
	return scale{1e6, "us"}
}

func percent() scale { return scale{100, "%"} }

// text writes x with three significant digits, without the unit.
func (s scale) text(x float64) string { return significant(x * s.factor) }

// significant writes x with three significant digits and no exponent.
func significant(x float64) string {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return "0"
	}
	places := 2 - int(math.Floor(math.Log10(math.Abs(x))))
	if math.Abs(x) >= 9.995*math.Pow10(2-places) { // rounds up to one digit more
		places--
	}
	return strconv.FormatFloat(x, 'f', min(max(places, 0), 9), 64)
}

// loadWord names what loads count.
func loadWord(open bool) string {
	if open {
		return "arrivals/s"
	}
	return "clients"
}

// load names the axis that steps lie on and returns a step's place on it.
func load(f *analysis.Findings) (name string, of func(*analysis.Step) float64) {
	if f.Open() {
		return loadWord(true), func(s *analysis.Step) float64 { return s.Rate }
	}
	return loadWord(false), func(s *analysis.Step) float64 { return float64(s.Clients) }
}

// things names what is counted a second: files where whole files move.
func things(f *analysis.Findings) string {
	for _, k := range f.Kinds {
		if k.Name != "read" && k.Name != "write" {
			return "ops/s"
		}
	}
	if f.Measure == analysis.Rate {
		return "ops/s"
	}
	return "files/s"
}

// plain replaces what could move a terminal's cursor or turn text around.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		if !unicode.IsPrint(r) || unicode.Is(unicode.Bidi_Control, r) {
			return '?'
		}
		return r
	}, s)
}
