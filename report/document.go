package report

import (
	"fmt"
	"slices"

	"weir/internal/say"
)

// A chapter of a report answers one question: with sentences, plots and sections.
type chapter struct {
	ID, Title string
	Mini      string // the stamp beside the title; "": none
	Lead      string
	Points    []string
	Note      string
	Charts    []drawing
	Parts     []section
}

// A section is a table, a text, or plots, with a title. It is made once: a page
// shows all of it, a terminal its title, its table and its points.
type section struct {
	ID, Title, Note, Text string
	Stamp                 string // whether the run can be believed; of tables
	Lead                  string // what the table shows, in a sentence
	Points                []string
	Charts                []drawing
	Brief                 string // beside the title: what it comes to
	Caption               string // names the table for those who do not see what is above it
	Folded                bool   // only the title is seen until it is opened
	Screen                bool   // folded, and not printed: there are too many of them
	table
}

// A table has a head and rows of equal length.
type table struct {
	Head []column
	Rows []row
}

// A column is the head of one, and how its cells are aligned. Numbers stand at
// the right, words at the left.
type column struct {
	Text  string
	Class string // of the head: "l" is at the left
	cells string // class of the cells: "w" is at the left and may be broken
}

type row struct {
	Best  bool
	Cells []cell
}

type cell struct{ Text, Class string }

// heads makes the heads of a table: "<name" is a column of words, "~name" one of
// sentences, which may be broken into lines; all others are of numbers.
func heads(names ...string) []column {
	out := make([]column, len(names))
	for i, name := range names {
		switch {
		case len(name) > 0 && name[0] == '<':
			out[i] = column{name[1:], "l", "l"}
		case len(name) > 0 && name[0] == '~':
			out[i] = column{name[1:], "l", "w"}
		default:
			out[i] = column{Text: name}
		}
	}
	return out
}

// row adds a row whose cells are aligned as the heads are.
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

// A medium is what a table is made for.
type medium int

const (
	onPage     medium = iota // where each cell has the unit that suits it, and there is room for all columns
	onTerminal               // where all cells of a column have the unit that its head names
)

// absent is the head of a column that a medium does not have.
const absent = "absent"

// A field is one column of a table of things of one kind.
type field[T any] struct {
	page, terminal string         // heads, as those of heads
	text           func(T) string // of a cell
	scaled         func(T) string // the same for a terminal; nil: as text
}

// tabulate adds a row for each of the things.
func tabulate[T any](s *section, m medium, things []T, best func(T) bool, fields ...field[T]) {
	var names []string
	var texts []func(T) string
	for _, x := range fields {
		name, text := x.page, x.text
		if m == onTerminal {
			if name = x.terminal; x.scaled != nil {
				text = x.scaled
			}
		}
		if name != absent {
			names, texts = append(names, name), append(texts, text)
		}
	}
	s.Head = heads(names...)
	for _, thing := range things {
		cells := make([]string, len(texts))
		for i, text := range texts {
			cells[i] = text(thing)
		}
		s.row(best(thing), cells...)
	}
}

// filled leaves out sections that have nothing to show.
func filled(all ...section) []section {
	return slices.DeleteFunc(all, func(s section) bool { return len(s.Rows) == 0 && s.Text == "" && len(s.Charts) == 0 })
}
