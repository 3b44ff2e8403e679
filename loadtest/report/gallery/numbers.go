package gallery

import (
	"cmp"
	"encoding/csv"
	"io"
	"math"
	"strconv"

	"weir/internal/say"
	"weir/loadtest/report/figure"
)

// Numbers writes the data of f as CSV, in the units of its axes, so that it can be drawn again: one
// row for each point with the name of its line, for each column of a histogram, or for each field
// of a heat map or a matrix. Marks are rows with their name and no y.
func Numbers(w io.Writer, f *figure.Figure) error {
	out := csv.NewWriter(w)
	switch {
	case f.Matrix != nil:
		matrix(out, f)
	case f.Heat != nil:
		heat(out, f)
	case len(f.Columns) > 0:
		columns(out, f)
	default:
		lines(out, f)
	}
	out.Flush()
	return out.Error()
}

func lines(out *csv.Writer, f *figure.Figure) {
	x, y := header(&f.X), header(&f.Y)
	_ = out.Write([]string{"line", x, y, "low", "high"}) // Flush keeps the error, and Error returns it
	for i := range f.Lines {
		l := &f.Lines[i]
		for _, p := range l.Points {
			_ = out.Write([]string{word(l.Name), number(&f.X, p.X), number(&f.Y, p.Y), known(&f.Y, p.Low), known(&f.Y, p.High)})
		}
	}
	for _, m := range f.Marks { // the interval of a mark is an interval of x
		_ = out.Write([]string{word("mark " + m.Name), number(&f.X, m.X), "", known(&f.X, m.Low), known(&f.X, m.High)})
	}
}

func columns(out *csv.Writer, f *figure.Figure) {
	x := header(&f.X)
	_ = out.Write([]string{"from " + x, "to " + x, header(&f.Y)})
	for _, c := range f.Columns {
		_ = out.Write([]string{number(&f.X, c.From), number(&f.X, c.To), number(&f.Y, c.Y)})
	}
}

// heat leaves out fields with a count of zero.
func heat(out *csv.Writer, f *figure.Figure) {
	x, y := header(&f.X), header(&f.Y)
	_ = out.Write([]string{"from " + x, "to " + x, "from " + y, "to " + y, word(f.Heat.What)})
	for i, row := range f.Heat.Rows {
		for k, n := range row {
			if n > 0 && i+1 < len(f.Heat.X) && k+1 < len(f.Heat.Y) {
				_ = out.Write([]string{number(&f.X, f.Heat.X[i]), number(&f.X, f.Heat.X[i+1]), number(&f.Y, f.Heat.Y[k]), number(&f.Y, f.Heat.Y[k+1]),
					strconv.FormatInt(n, 10)})
			}
		}
	}
}

// matrix leaves out fields that are empty; the note explains the share.
func matrix(out *csv.Writer, f *figure.Figure) {
	m := f.Matrix
	_ = out.Write([]string{header(&f.Y), header(&f.X), word(m.What + " (%)"), "note"}) // Flush keeps the error, and Error returns it
	percent := figure.Axis{Factor: 100}
	for i, row := range m.Cells {
		for k := range row {
			if c := &row[k]; c.There && i < len(m.Rows) && k < len(m.Columns) {
				_ = out.Write([]string{word(m.Rows[i]), word(m.Columns[k]), number(&percent, c.Share), word(c.Note)})
			}
		}
	}
}

// header returns the name of an axis with the unit of its numbers in the CSV.
func header(a *figure.Axis) string {
	if a.Duration {
		name := a.Name
		name = cmp.Or(name, a.Label)
		return word(name + " (s)")
	}
	return word(a.Caption())
}

// word prevents a spreadsheet from reading a name as a formula.
func word(s string) string {
	s = say.Plain(s)
	if s != "" && (s[0] == '=' || s[0] == '+' || s[0] == '-' || s[0] == '@') {
		return "'" + s
	}
	return s
}

func known(a *figure.Axis, x *float64) string {
	if x == nil {
		return ""
	}
	return number(a, *x)
}

// number formats a value in the unit of the axis, with more digits than any measurement has; an
// unknown value becomes an empty text.
func number(a *figure.Axis, x float64) string {
	if !a.Duration {
		x *= a.Factor
	}
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return ""
	}
	return strconv.FormatFloat(x, 'g', 10, 64)
}
