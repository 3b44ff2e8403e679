// Package report writes findings for people: as text for a terminal, and as one HTML file with
// plots that opens anywhere. Chapters, sections and tables are made once (document.go) and
// written by text.go and page.go.
package report

import (
	"fmt"
	"slices"

	"weir/internal/say"
	"weir/loadtest/analysis/compare"
)

// A chapter of a report covers one topic with sentences, plots and sections. Chapters are made
// once: a page and a text show the same chapters.
type chapter struct {
	ID, Title string
	Brief     string // beside the title on a page: the result in a few words
	Lead      string // the result in sentences
	Points    []string
	Note      string
	Charts    []drawing
	Parts     []section
	Open      bool // on a page; other chapters are folded
	PageOnly  bool // a text leaves it out
}

// A section is a table, a text, or plots, with a title.
type section struct {
	ID, Title, Note, Text string
	Points                []string
	Charts                []drawing
	Brief                 string          // beside the title: the result
	Caption               string          // names the table for readers who cannot see the title above it
	Open                  bool            // on a page; other sections are folded
	Screen                bool            // not printed on paper: there are too many such sections
	PageOnly              bool            // a text leaves it out
	metric                *compare.Metric // of a comparison: the metric in the table
	table
}

// A table has a head and rows of equal length.
type table struct {
	Head []column
	Rows []row
}

// A column is the head of a column, and the alignment of its cells: numbers at the right, words at
// the left.
type column struct {
	Text   string
	Class  string // of the head: "l" is at the left
	cells  string // class of the cells: "w" is at the left and may be broken
	detail detail
}

// A detail is the smallest extent of a text in which a column appears; larger extents show the
// column as well.
type detail int

const (
	inSummary detail = iota
	inText
	onPage
)

type row struct {
	Best  bool
	Cells []cell
}

type cell struct{ Text, Class string }

// heads makes the heads of a table: "<name" is a column of words, "~name" a column of sentences,
// which may be broken into lines; all others contain numbers. A "!" before that puts a column into
// summaries, "." leaves it to pages.
func heads(names ...string) []column {
	out := make([]column, len(names))
	for i, name := range names {
		c := column{Text: name, detail: inText}
		if c.cut('!') {
			c.detail = inSummary
		} else if c.cut('.') {
			c.detail = onPage
		}
		if c.cut('<') {
			c.Class, c.cells = "l", "l"
		} else if c.cut('~') {
			c.Class, c.cells = "l", "w"
		}
		out[i] = c
	}
	return out
}

// cut removes a mark from the beginning of the head.
func (c *column) cut(mark byte) bool {
	if c.Text == "" || c.Text[0] != mark {
		return false
	}
	c.Text = c.Text[1:]
	return true
}

// row adds a row whose cells are aligned like the heads.
func (t *table) row(best bool, texts ...string) {
	r := row{Best: best}
	for i, text := range texts {
		r.Cells = append(r.Cells, cell{say.Plain(text), t.Head[i].cells})
	}
	t.Rows = append(t.Rows, r)
}

// paint gives a cell of the last row another class.
func (t *table) paint(column int, class string) { t.Rows[len(t.Rows)-1].Cells[column].Class = class }

// row adds a row, unless there are too many for a page.
func (s *section) row(best bool, texts ...string) {
	if len(s.Rows) >= mostRows {
		s.Note = fmt.Sprintf("The first %d lines are shown; findings.json has all.", mostRows)
		return
	}
	s.table.row(best, texts...)
}

// A field is one column of a table of things of one kind.
type field[T any] struct {
	head string         // in the format of the names in heads
	text func(T) string // of a cell
}

// tabulate adds a row for each of the things.
func tabulate[T any](s *section, things []T, best func(T) bool, fields []field[T]) {
	names := make([]string, len(fields))
	for i := range fields {
		names[i] = fields[i].head
	}
	s.Head = heads(names...)
	for _, thing := range things {
		cells := make([]string, len(fields))
		for i := range fields {
			cells[i] = fields[i].text(thing)
		}
		s.row(best(thing), cells...)
	}
}

// filled leaves out sections without content.
func filled(all ...section) []section {
	return slices.DeleteFunc(all, func(s section) bool { return len(s.Rows) == 0 && s.Text == "" && len(s.Charts) == 0 })
}

// kept leaves out chapters without content.
func kept(all ...chapter) []chapter {
	return slices.DeleteFunc(all, func(c chapter) bool { return len(c.Charts)+len(c.Parts) == 0 && c.Lead == "" })
}

// plain converts texts from outside to plain text.
func plain(texts []string) []string {
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = say.Plain(text)
	}
	return all
}
