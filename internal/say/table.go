package say

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// A Table prints rows in aligned columns, each cell as plain text. Flush prints it and
// returns the error of writing.
type Table struct {
	*tabwriter.Writer
	out  io.Writer
	rows int // below the names of columns
}

// NewTable returns a table with a row of column names, if there are any.
func NewTable(w io.Writer, columns ...any) *Table {
	t := &Table{Writer: tabwriter.NewWriter(w, 0, 0, 2, ' ', 0), out: w}
	if len(columns) > 0 {
		t.Row(columns...)
		t.rows = 0
	}
	return t
}

// FlushOr calls Flush if the table has rows; otherwise it prints its argument instead of the table.
func (t *Table) FlushOr(none string) error {
	if t.rows > 0 {
		return t.Flush()
	}
	_, err := fmt.Fprintln(t.out, none)
	return err
}

// Row adds a row.
func (t *Table) Row(cells ...any) {
	t.rows++
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = Plain(fmt.Sprint(c))
	}
	_, _ = fmt.Fprintln(t, strings.Join(texts, "\t"))
}
