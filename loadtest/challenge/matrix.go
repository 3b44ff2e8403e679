package challenge

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"weir/internal/document"
	"weir/internal/unit"
)

// Limits of a matrix.
const (
	maxMatrix = 16 << 20 // bytes
	maxSites  = 1000
	maxLinks  = 20_000
)

// A matrixReader reads the links of a CSV file.
type matrixReader struct {
	c    *checker
	csv  *csv.Reader
	dest []string       // names of the destinations; "" for columns that are left out
	seen map[string]int // line of each source
}

// matrix reads the matrix, if the challenge has one: the first line has the names of the
// destinations, the first column those of the sources. Empty cells, 0 and - are no links.
func (c *checker) matrix() {
	if c.Matrix == "" || c.doc.Unread("matrix") {
		return
	}
	f, err := os.Open(c.Matrix)
	if err != nil {
		c.say("matrix", "%v; name a CSV file, relative to the folder of the challenge", err)
		return
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxMatrix+1))
	switch {
	case err != nil:
		c.say("matrix", "%v", err)
		return
	case len(data) > maxMatrix:
		c.say("matrix", "%s has more than %d bytes; a matrix of %d sites is smaller", c.Matrix, maxMatrix, maxSites)
		return
	}
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		c.inFile(c.Matrix, 1, 1, "not text in UTF-8; save the table as CSV (UTF-8)")
		return
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if bytes.IndexByte(data, '\n') < 0 {
		data = bytes.ReplaceAll(data, []byte("\r"), []byte("\n"))
	}
	m := &matrixReader{c: c, csv: csv.NewReader(bytes.NewReader(data)), seen: map[string]int{}}
	m.csv.Comma, m.csv.Comment, m.csv.FieldsPerRecord = separator(data), '#', -1
	m.csv.TrimLeadingSpace = m.csv.Comma != '\t'
	for m.line() {
	}
	switch {
	case m.dest == nil:
		c.inFile(c.Matrix, 1, 1, "the matrix is empty; write the names of the destinations into its first line")
	case len(c.Links) == 0 && !c.failed() && !c.doc.Has("links"):
		c.inFile(c.Matrix, 1, 1, "the matrix has no rate; write a line for each source, with rates below the destinations")
	}
}

// separator returns the separator of a CSV file: the one of ; , and the tab that is first in its
// first line with content.
func separator(data []byte) rune {
	for line := range bytes.Lines(data) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		if i := bytes.IndexAny(line, ";,\t"); i >= 0 {
			return rune(line[i])
		}
	}
	return ','
}

// say adds a mistake of the cell of that number.
func (m *matrixReader) say(cell int, format string, args ...any) {
	line, column := m.csv.FieldPos(cell)
	m.c.inFile(m.c.Matrix, line, column, format, args...)
}

// line reads a line and reports whether more may follow.
func (m *matrixReader) line() bool {
	cells, err := m.csv.Read()
	if errors.Is(err, io.EOF) {
		return false
	}
	if syntax, ok := errors.AsType[*csv.ParseError](err); ok {
		m.c.inFile(m.c.Matrix, syntax.Line, syntax.Column, "not CSV; %v", syntax.Err)
		return false
	} else if err != nil {
		m.c.say("matrix", "%v", err)
		return false
	}
	if m.dest == nil {
		m.head(cells)
		return true
	}
	source := strings.TrimSpace(cells[0])
	line, _ := m.csv.FieldPos(0)
	switch first, again := m.seen[source]; {
	case source == "" && strings.TrimSpace(strings.Join(cells, "")) == "":
		return true // a line of separators, as spreadsheets write
	case m.c.site(source) < 0:
		m.say(0, "unknown source %s%s", document.Quote(source), document.Meant(source, m.c.siteNames()))
	case again:
		m.say(0, "source %s is repeated, first in line %d; keep one", document.Quote(source), first)
	case len(cells) > len(m.dest):
		m.say(len(m.dest), "%d cells in a matrix of %d columns; use one separator for all lines, and give each column a destination",
			len(cells), len(m.dest))
	default:
		m.seen[source] = line
		m.row(source, cells)
	}
	return true
}

// head reads the names of the destinations.
func (m *matrixReader) head(cells []string) {
	m.dest = []string{""}
	seen := map[string]bool{}
	for i, cell := range cells[1:] {
		name := strings.TrimSpace(cell)
		switch {
		case name == "":
		case m.c.site(name) < 0:
			m.say(i+1, "unknown destination %s%s", document.Quote(name), document.Meant(name, m.c.siteNames()))
			name = ""
		case seen[name]:
			m.say(i+1, "destination %s is repeated; keep one", document.Quote(name))
			name = ""
		}
		seen[name] = true
		m.dest = append(m.dest, name)
	}
}

// row reads the rates of a source.
func (m *matrixReader) row(source string, cells []string) {
	for i, cell := range cells[1:] {
		cell, dest := strings.TrimSpace(cell), m.dest[i+1]
		if cell == "" || cell == "-" || dest == "" {
			continue
		}
		rate, err := m.rate(cell)
		switch {
		case err != nil:
			m.say(i+1, "%s to %s: %v", source, dest, err)
		case rate == 0:
		default:
			line, column := m.csv.FieldPos(i + 1)
			m.c.add(Link{From: source, To: dest, Rate: rate}, origin{file: m.c.Matrix, at: document.Place{Line: line, Column: column}})
		}
	}
}

// plainSpace replaces the spaces that spreadsheets write between a number and its unit.
func plainSpace(r rune) rune {
	if unicode.IsSpace(r) {
		return ' '
	}
	return r
}

// rate parses a cell, with the unit of the matrix if it has no unit itself.
func (m *matrixReader) rate(cell string) (unit.Bitrate, error) {
	cell = strings.Map(plainSpace, cell)
	if point := strings.Replace(cell, ",", ".", 1); point != cell {
		if _, err := m.rate(point); err == nil {
			return 0, fmt.Errorf("%s has a decimal comma; write %s", document.Quote(cell), point)
		}
	}
	if x, err := strconv.ParseFloat(cell, 64); err != nil && !errors.Is(err, strconv.ErrRange) || x == 0 {
		return unit.ParseBitrate(cell)
	}
	if m.c.Unit == "" {
		return 0, fmt.Errorf("%s has no unit; write it as in %[2]sMbit/s or %[2]sMB/s, or name the unit of all numbers with matrix_unit",
			document.Quote(cell), cell)
	}
	return unit.ParseBitrate(cell + m.c.Unit)
}
