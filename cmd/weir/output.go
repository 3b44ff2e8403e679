package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

// A textTable prints rows in aligned columns. Its cells are printed as plain text.
type textTable struct{ *tabwriter.Writer }

// newTable returns a table with a row of column names, if there are any. Flush
// prints it.
func newTable(w io.Writer, columns ...any) textTable {
	t := textTable{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	if len(columns) > 0 {
		t.row(columns...)
	}
	return t
}

// row adds a row. Flush returns the error of writing it.
func (t textTable) row(cells ...any) {
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = line(fmt.Sprint(c))
	}
	_, _ = fmt.Fprintln(t, strings.Join(texts, "\t"))
}

// orDash is the text of a cell, - if there is none.
func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// localTime is a point in time as tables show it.
func localTime(t time.Time) string { return t.Local().Format(time.DateTime) }

// printList prints a list as JSON under the given name, [] if it is empty, or with
// show.
func printList[T any](w io.Writer, asJSON bool, name string, all []T, show func(io.Writer, []T) error) error {
	if asJSON {
		return writeJSON(w, map[string]any{name: append([]T{}, all...)})
	}
	return show(w, all)
}

// writeJSON prints v as indented JSON.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// usageError returns err as a mistake in the call of c, with the place of its help.
func usageError(c *cobra.Command, err error) error {
	return exit{exitUsage, fmt.Errorf("%w\nSee: %s --help", err, c.CommandPath())}
}
