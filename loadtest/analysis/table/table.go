// Package table reads tables of measurements from other programs or people: one line for each load,
// or for each time, with columns for the number of clients, the throughput and other values. It
// determines the kind of each column from its name, converts values to base units, and reports the
// position and the correction of everything that it cannot read.
package table

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/table/header"
)

// A Kind is the kind of values in a column.
type Kind int

// Kinds of columns, and the base units of their values.
const (
	Clients    Kind = iota // number, at least 0
	Throughput             // bytes per second
	Rate                   // operations per second
	Latency                // mean, seconds
	Errors                 // number of failed operations
	ErrorRatio             // 0 to 1
	Done                   // number of operations that ended well
	Time                   // seconds, from any start
	Step                   // numbers or names of groups of rows
	kinds
)

// String returns the word for the kind in messages, which is also the name of the option that
// selects its column.
func (k Kind) String() string {
	return [...]string{"clients", "throughput", "rate", "latency", "errors", "error-ratio", "done", "time", "step"}[k]
}

// Options control how a table is read. The zero value detects everything.
type Options struct {
	Separator rune            // between cells; 0: detects comma, semicolon, tab or blanks; ' ' means any blanks
	Unit      string          // units that headers lack, such as "Gbit/s" or "MB/s,ms"; "": as in the headers
	Columns   map[Kind]string // the name of a column, or its number from 1
}

// A Table holds the content of a table in columns of equal length.
type Table struct {
	Name    string           // as given to Read
	Lines   []int            // the line of each row
	Names   map[Kind]string  // the header of each recognized column
	Found   map[Kind][]Value // its values
	Notes   []fact.Fact      // assumptions made while reading
	Columns []Column         // in their order, with their meaning
	Steps   []string         // the names of steps, in their order; nil without such a column
	Open    bool             // the load, in the column of clients, is in arrivals per second

	separator rune
}

// A Value is a number in base units; it is unknown if the cell is empty.
type Value struct {
	X     float64
	Known bool
}

// Limits of a table, which bound the use of memory.
const (
	mostBytes = 64 << 20
	mostRows  = 1_000_000
	mostCells = 200       // in a line
	mostAll   = 4_000_000 // in all lines
	mostLine  = 1 << 16   // bytes
)

// An Error describes a mistake in a table and its position.
type Error struct {
	Name         string
	Line, Column int // from 1; 0: the whole table
	Text         string
}

// Error writes NAME:LINE:COLUMN: TEXT.
func (e *Error) Error() string {
	switch {
	case e.Line == 0:
		return e.Name + ": " + e.Text
	case e.Column == 0:
		return fmt.Sprintf("%s:%d: %s", e.Name, e.Line, e.Text)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.Name, e.Line, e.Column, e.Text)
}

type position struct{ line, column int }

// Read reads a table of at most 64 MiB, a million rows and four million cells, or the output of fio
// (JSON), k6 (summary), vegeta (JSON report) or wrk. Lines that are empty or begin with # are
// ignored. name is used in errors, which are *Error if the table has a mistake. The table is nil
// if there is an error.
func Read(name string, r io.Reader, o Options) (*Table, error) {
	raw, err := io.ReadAll(io.LimitReader(r, mostBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	t := &Table{Name: name, Names: map[Kind]string{}, Found: map[Kind][]Value{}}
	if len(raw) > mostBytes {
		return nil, t.whole("larger than 64 MiB: use means, for example of 30 s, or remove columns")
	}
	if ok, err := t.readTool(raw); ok {
		if err != nil {
			return nil, err
		}
		return t, nil
	}
	t.separator = o.Separator
	lines, err := t.split(raw)
	if err != nil {
		return nil, err
	}
	head, rows := t.head(lines)
	if len(rows) == 0 {
		return nil, t.whole("the table has a header but no rows")
	}
	if err := t.choose(head, rows, o); err != nil {
		return nil, err
	}
	return t, nil
}

// Len returns the number of rows.
func (t *Table) Len() int { return len(t.Lines) }

// Has reports whether the table has a column of kind k.
func (t *Table) Has(k Kind) bool { return t.Found[k] != nil }

// Value returns a column's value in row i; the value is unknown if the column does not exist.
func (t *Table) Value(k Kind, i int) Value {
	if t.Found[k] == nil {
		return Value{X: math.NaN()}
	}
	return t.Found[k][i]
}

func (t *Table) whole(format string, args ...any) error {
	return &Error{Name: t.Name, Text: fmt.Sprintf(format, args...)}
}

func (t *Table) wrong(at position, format string, args ...any) error {
	return &Error{Name: t.Name, Line: at.line, Column: at.column, Text: fmt.Sprintf(format, args...)}
}

// head separates the line with the names of the columns from the rows below it. A first line with
// only numbers is a row.
func (t *Table) head(lines []line) (head line, rows []line) {
	for _, c := range lines[0].cells {
		if _, err := parse(c.text, true); err != nil && !missing(c.text) {
			return lines[0], lines[1:]
		}
	}
	return line{}, lines
}

// choose finds the columns and reads their values.
func (t *Table) choose(head line, rows []line, o Options) error {
	for i := range rows[0].cells {
		c := Column{Number: i + 1}
		if head.cells != nil {
			c.Name = head.cells[i].text
			c.reading = header.Parse(c.Name)
			r := c.reading
			c.Quantity, c.Statistic, c.Unit, c.Scope = string(r.Quantity), r.Statistic, r.Unit, r.Scope
		} else {
			c.Name = strconv.Itoa(c.Number)
		}
		t.Columns = append(t.Columns, c)
	}
	places, err := t.places(head, rows, o)
	if err != nil {
		return err
	}
	for _, l := range rows {
		t.Lines = append(t.Lines, l.number)
	}
	decimal, err := t.decimalComma(rows, places)
	if err != nil {
		return err
	}
	for k := range kinds {
		place, ok := places[k]
		if !ok {
			continue
		}
		convert, err := t.conversion(k, head, rows, place, o)
		if err != nil {
			return err
		}
		read := t.numbers
		switch k {
		case Time:
			read = t.times
		case Step:
			read = t.steps
		}
		if t.Found[k], err = read(k, rows, place, decimal, convert); err != nil {
			return err
		}
	}
	return t.ordered()
}

// places returns the column of each kind.
func (t *Table) places(head line, rows []line, o Options) (map[Kind]int, error) {
	places := map[Kind]int{}
	for k := range kinds {
		want := o.Columns[k]
		if want == "" {
			continue
		}
		place, err := t.named(head, len(t.Columns), k, want)
		if err != nil {
			return nil, err
		}
		c := &t.Columns[place]
		if c.chosen {
			return nil, t.whole("--%s and --%s name the same column", c.kind, k)
		}
		places[k], c.chosen, c.kind = place, true, k
	}
	if head.cells == nil && (o.Columns[Clients] == "" || len(places) < 2) {
		return nil, t.wrong(position{rows[0].number, 1}, "the first line has no column names: choose columns by number, "+
			"as in --clients 1 --throughput 2 --unit Gbit/s")
	}
	if err := t.checkUnits(o.Unit); err != nil {
		return nil, err
	}
	if head.cells != nil {
		if err := t.recognize(head, rows, places, o); err != nil {
			return nil, err
		}
	}
	for k, i := range places {
		t.Names[k] = t.Columns[i].Name
		if head.cells == nil {
			t.Names[k] = k.String()
		}
	}
	return places, t.complete(head, places)
}

// complete returns an error if a column is missing without which there is no curve.
func (t *Table) complete(head line, places map[Kind]int) error {
	if _, ok := places[Clients]; !ok {
		return t.whole("no column for the number of clients, such as clients, jobs, users, threads or concurrency: "+
			"choose it with --clients; %s", t.unused())
	}
	for _, k := range []Kind{Throughput, Rate, Latency} {
		if _, ok := places[k]; ok {
			return nil
		}
	}
	for _, c := range t.Columns { // a column that lacks nothing but its unit
		if _, reason := usable(c.reading); reason == "" && needsUnit(c.kind) && c.reading.Unit == "" && !c.chosen {
			return t.unitless(c.kind, head, c.Number-1)
		}
	}
	return t.whole("no column for the throughput, such as MB/s, requests/s or latency (ms): choose it with --throughput, --rate or "+
		"--latency; %s", t.unused())
}

// unused lists the columns that are not used, with the reasons.
func (t *Table) unused() string {
	var all []string
	for _, c := range t.Columns {
		if !c.chosen && c.Fact.Code != "" {
			all = append(all, quote(c.Name)+": "+c.Fact.Text)
		}
	}
	return strings.Join(all, "; ")
}

// named finds a column by its name, or its number from 1.
func (t *Table) named(head line, width int, k Kind, want string) (int, error) {
	var found []int
	for i, c := range head.cells {
		if strings.EqualFold(strings.TrimSpace(c.text), strings.TrimSpace(want)) {
			found = append(found, i)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	if len(found) > 1 {
		return 0, t.whole("--%s %s: %d columns have that name: choose by number, %d or %d", k, quote(want), len(found), found[0]+1, found[1]+1)
	}
	if n, err := parse(want, false); err == nil && n == math.Trunc(n) && n >= 1 {
		if int(math.Min(n, mostCells+1)) > width {
			return 0, t.whole("--%s %s: the table has %d columns", k, want, width)
		}
		return int(n) - 1, nil
	}
	return 0, t.whole("--%s %s: no column has that name; the columns are %s", k, quote(want), names(head))
}

// names lists the names of all columns.
func names(head line) string {
	var all []string
	for _, c := range head.cells {
		all = append(all, quote(c.text))
	}
	return strings.Join(all, ", ")
}

// ordered returns an error unless time increases, within each step if there are steps.
func (t *Table) ordered() error {
	if !t.Has(Time) {
		return nil
	}
	last := map[float64]Value{}
	for i, v := range t.Found[Time] {
		step := t.Value(Step, i)
		if !step.Known {
			step.X = 0
		}
		if before, ok := last[step.X]; ok && v.X <= before.X {
			return t.wrong(position{t.Lines[i], 0}, "the time does not increase from the row before: sort the table by time, "+
				"or name the column of steps with --step")
		}
		last[step.X] = v
	}
	return nil
}

// errThousands is returned for digits in groups.
var errThousands = errors.New("digits in groups")

func quote(s string) string {
	if r := []rune(s); len(r) > 40 {
		s = string(r[:37]) + "..."
	}
	return fmt.Sprintf("%q", s)
}

// ParseSeparator parses the name of a separator, or the separator itself. It returns 0 for "",
// which means detection.
func ParseSeparator(text string) (rune, error) {
	names := map[string]rune{"": 0, "comma": ',', "semicolon": ';', "tab": '\t', `\t`: '\t', "blank": ' ', "space": ' '}
	if r, ok := names[text]; ok {
		return r, nil
	}
	if r, size := utf8.DecodeRuneInString(text); size == len(text) && r != '"' && r != '#' && r != '\n' && r != '\r' {
		return r, nil
	}
	return 0, fmt.Errorf("%q: use comma, semicolon, tab, blank or one character", text)
}
