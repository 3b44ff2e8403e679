package say

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// A Table prints rows in aligned columns, each cell as plain text. Flush prints it and
// returns the error of writing.
type Table struct {
	out   io.Writer
	rows  [][]string
	names int // rows of column names
	width int // of lines, 0: no limit
	cut   int // of lines, by shorter first cells, 0: no limit
}

// NewTable returns a table with a row of column names, if there are any.
func NewTable(w io.Writer, columns ...any) *Table {
	t := &Table{out: w}
	if len(columns) > 0 {
		t.Row(columns...)
		t.names = 1
	}
	return t
}

// Fit breaks the last cells of rows at spaces, so that lines have at most width characters; 0 removes
// the limit.
func (t *Table) Fit(width int) { t.width = width }

// Cut shortens the first cells of rows, such as names, so that lines have at most width characters; 0
// removes the limit. At least leastName characters of each are left.
func (t *Table) Cut(width int) { t.cut = width }

// Row adds a row. Empty cells at its end are left out.
func (t *Table) Row(cells ...any) {
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = Plain(fmt.Sprint(c))
	}
	for len(texts) > 0 && texts[len(texts)-1] == "" {
		texts = texts[:len(texts)-1]
	}
	t.rows = append(t.rows, texts)
}

// FlushOr calls Flush if the table has rows; otherwise it prints its argument instead of the table.
func (t *Table) FlushOr(none string) error {
	if len(t.rows) > t.names {
		return t.Flush()
	}
	_, err := fmt.Fprintln(t.out, none)
	return err
}

// leastName is the number of characters of a first cell that Cut leaves.
const leastName = 10

// shorten cuts the first cells of rows that are too long for the width of Cut.
func (t *Table) shorten() {
	rest, last := 0, 0 // columns behind the first one
	for i, width := range t.columns() {
		if i > 0 {
			rest += width
		}
	}
	for _, row := range t.rows {
		if len(row) > 0 {
			last = max(last, utf8.RuneCountInString(row[len(row)-1]))
		}
	}
	room := max(t.cut-rest-last-space, leastName)
	for _, row := range t.rows {
		if len(row) < 2 {
			continue
		}
		if r := []rune(row[0]); len(r) > room {
			row[0] = string(r[:room-3]) + "..."
		}
	}
}

// leastRoom is the width of the last cell of a row in a narrow terminal.
const leastRoom = 20

// Flush prints the rows.
func (t *Table) Flush() error {
	if t.cut > 0 {
		t.shorten()
	}
	columns := t.columns()
	var b strings.Builder
	for _, row := range t.rows {
		column := 0
		for i, cell := range row {
			if i < len(row)-1 {
				b.WriteString(cell + strings.Repeat(" ", columns[i]-utf8.RuneCountInString(cell)))
				column += columns[i]
				continue
			}
			lines := []string{cell}
			if room := max(t.width-column, leastRoom); t.width > 0 && utf8.RuneCountInString(cell) > room {
				lines = Wrap(cell, room)
			}
			b.WriteString(strings.Join(lines, "\n"+strings.Repeat(" ", column)))
		}
		b.WriteByte('\n')
	}
	t.rows, t.names = nil, 0
	_, err := io.WriteString(t.out, b.String())
	return err
}

// space is the number of spaces between columns.
const space = 2

// columns returns the width of each column, with the space behind it. The last cells of rows need no
// width.
func (t *Table) columns() (widths []int) {
	for _, row := range t.rows {
		for i := range len(row) - 1 {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i])+space)
		}
	}
	return widths
}
