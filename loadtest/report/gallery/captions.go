package gallery

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"weir/internal/say"
	"weir/internal/unit"
	"weir/loadtest/report/figure"
	"weir/loadtest/report/figure/draw"
)

// Caption describes f with its title, definition, fits, number of measurements, intervals and
// origin. Axes and marks are in the drawing.
func (s *Set) Caption(f *figure.Figure) string {
	all := []string{f.Title, f.Desc}
	if f.ID == "curve" {
		all = append(all, s.Fits...)
	}
	all = append(all, amount(f))
	if intervals(f) {
		all = append(all, s.Bars)
		if len(f.Lines) > 1 && f.Lines[1].Dots {
			all = append(all, "Points at the same load are beside each other")
		}
	}
	all = append(all, s.Origin...)
	all = slices.DeleteFunc(all, func(part string) bool { return part == "" })
	return say.Plain(strings.Join(all, ". ") + ".")
}

// amount counts the measurements behind the figure.
func amount(f *figure.Figure) string {
	if f.Matrix != nil {
		return "n = " + say.Plural(f.Matrix.Count(), "field") + " with the " + f.Matrix.What + " in percent"
	}
	if f.Heat != nil {
		var n int64
		for _, row := range f.Heat.Rows {
			for _, c := range row {
				n += c
			}
		}
		return fmt.Sprintf("n = %s %s, in %d x %d fields", unit.Count(float64(n)), f.Heat.What, len(f.Heat.Rows), max(0, len(f.Heat.Y)-1))
	}
	if len(f.Columns) > 0 {
		sum := 0.0
		for _, c := range f.Columns {
			sum += c.Y
		}
		what := "operations"
		if strings.HasPrefix(f.ID, "jobs") {
			what = "jobs"
		}
		return fmt.Sprintf("n = %s %s in %s", unit.Count(math.Round(sum)), what, say.Plural(len(f.Columns), "column"))
	}
	most, dots := 0, false
	for i := range f.Lines {
		if l := &f.Lines[i]; l.Dots || !dots { // a fitted line's points were not measured
			if l.Dots && !dots {
				most, dots = 0, true
			}
			most = max(most, len(l.Points))
		}
	}
	if dots {
		return "n = " + say.Plural(most, "point")
	}
	return "n = " + say.Plural(most, "interval") + " of about a second"
}

func intervals(f *figure.Figure) bool {
	return slices.ContainsFunc(f.Lines, func(l figure.Line) bool { // without dots they are an area
		return l.Dots && slices.ContainsFunc(l.Points, func(p figure.Point) bool { return p.Low != nil && p.High != nil })
	})
}

// markdown is a page with all figures, for a wiki or a repository.
func markdown(w io.Writer, s Set, names []string, o Options) error {
	b := bufio.NewWriter(w)
	put := func(format string, args ...any) { _, _ = fmt.Fprintf(b, format, args...) } // Flush returns the error
	put("# Figures of %s\n", markdownText(say.Plain(s.Title)))
	for i := range s.Figures {
		f := &s.Figures[i]
		put("\n## %s\n\n", names[i])
		for _, shown := range []string{"png", "svg"} {
			if slices.Contains(o.Formats, shown) {
				put("![%s](%s.%s)\n\n", markdownText(say.Plain(f.Title)), names[i], shown)
				break
			}
		}
		put("%s\n\n", markdownText(s.Caption(f)))
		var files []string
		for _, format := range append(slices.Clone(o.Formats), "csv") {
			files = append(files, fmt.Sprintf("[%s](%s.%s)", format, names[i], format))
		}
		put("Files: %s\n", strings.Join(files, ", "))
	}
	return b.Flush()
}

// markdownText keeps names from being read as markup.
func markdownText(s string) string {
	return behindBackslash("\\`*_[]#|!~>$", "&", "&amp;", "<", "&lt;").Replace(s)
}

// behindBackslash puts a backslash before these characters; others are pairs of a text and its
// replacement.
func behindBackslash(characters string, others ...string) *strings.Replacer {
	for _, c := range strings.Split(characters, "") {
		others = append(others, c, `\`+c)
	}
	return strings.NewReplacer(others...)
}

// tex writes a figure environment for each figure.
func tex(w io.Writer, s Set, names []string, o Options) error {
	b := bufio.NewWriter(w)
	put := func(format string, args ...any) { _, _ = fmt.Fprintf(b, format, args...) } // Flush returns the error
	put("%% Figures of %s. Needs \\usepackage{graphicx}; pdflatex takes the PDF files, or PNG.\n", texText(say.Plain(s.Title)))
	environment, width := "figure", `\columnwidth`
	column, _ := draw.ParseSize("column") // known
	if o.Size.Width > 1.2*column.Width {
		environment, width = "figure*", `\textwidth`
	}
	for i := range s.Figures {
		put("\n\\begin{%s}\n  \\centering\n  \\includegraphics[width=%s]{%s}\n  \\caption{%s}\n  \\label{fig:%s}\n\\end{%s}\n",
			environment, width, names[i], texText(s.Caption(&s.Figures[i])), names[i], environment)
	}
	return b.Flush()
}

// texText keeps names from being read as commands.
func texText(s string) string {
	return behindBackslash("&%$#_{}", `\`, `\textbackslash{}`, "~", `\textasciitilde{}`, "^", `\textasciicircum{}`,
		"<", `\textless{}`, ">", `\textgreater{}`, `"`, `\textquotedbl{}`).Replace(s)
}
