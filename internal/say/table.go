package say

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// A Table prints rows in aligned columns, each cell as plain text. Flush prints it and
// returns the error of writing.
type Table struct{ *tabwriter.Writer }

// NewTable returns a table with a row of column names, if there are any.
func NewTable(w io.Writer, columns ...any) Table {
	t := Table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	if len(columns) > 0 {
		t.Row(columns...)
	}
	return t
}

// Row adds a row.
func (t Table) Row(cells ...any) {
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = Plain(fmt.Sprint(c))
	}
	_, _ = fmt.Fprintln(t, strings.Join(texts, "\t"))
}
