package importer

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"weir/transfer/catalog"
)

// Columns returns the columns of a table; the first two are required.
//
//	name       of the file, as /store/run1/f1.root
//	size       in bytes
//	adler32    up to 8 hexadecimal digits
//	block      that the file is part of
//	path       below the site's root, if it is not the name
//	checksums  others, as "sha256=...,md5=..."
func Columns() []string { return []string{"name", "size", "adler32", "block", "path", "checksums"} }

// most is the maximum size of a line in bytes, including the bytes that are read ahead of it.
const most = 64 << 10

// csvOf yields the files of a table in its order. The first line contains the names of the columns
// in any order, separated by commas, semicolons or tabs, and quoted according to RFC 4180. Empty
// lines and lines that begin with # are skipped. Errors begin with name, the name of the table, and
// the number of their line.
func csvOf(name string, r io.Reader) iter.Seq2[catalog.Entry, error] {
	return func(yield func(catalog.Entry, error) bool) {
		t, err := newTable(r)
		for err == nil {
			var e catalog.Entry
			if e, err = t.next(); err == nil && !yield(e, nil) {
				return
			}
		}
		if !errors.Is(err, io.EOF) {
			yield(catalog.Entry{}, fmt.Errorf("%s: %w", name, err))
		}
	}
}

// A table is read line by line.
type table struct {
	csv     *csv.Reader
	bounded *bounded
	columns []string
	last    int // line that was read
}

// A bounded reader fails if a line does not end within the limit.
type bounded struct {
	r    io.Reader
	left int
}

var errLong = fmt.Errorf("it has more than %d bytes: is a quote missing?", most)

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLong
	}
	n, err := b.r.Read(p[:min(len(p), 4096)])
	b.left -= n
	return n, err
}

func newTable(r io.Reader) (*table, error) {
	t := &table{bounded: &bounded{r, most}}
	buffered := bufio.NewReaderSize(t.bounded, most)
	if mark, _ := buffered.Peek(3); string(mark) == "\ufeff" {
		_, _ = buffered.Discard(3) // it was peeked at
	}
	separator := separatorOf(buffered)
	t.csv = csv.NewReader(buffered)
	t.csv.Comma, t.csv.Comment, t.csv.ReuseRecord = separator, '#', true
	head, err := t.record()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("line 1: the table is empty: its first line names the columns: %s", strings.Join(Columns(), ","))
	}
	if err != nil {
		return nil, err
	}
	for i, name := range head {
		name = strings.ToLower(strings.TrimSpace(name))
		if !slices.Contains(Columns(), name) {
			return nil, t.wrong(i, fmt.Errorf("there is no column %q: use %s", shown(name), strings.Join(Columns(), ", ")))
		}
		if slices.Contains(t.columns, name) {
			return nil, t.wrong(i, fmt.Errorf("column %q is there twice", name))
		}
		t.columns = append(t.columns, name)
	}
	for _, name := range Columns()[:2] {
		if !slices.Contains(t.columns, name) {
			return nil, t.wrong(0, fmt.Errorf("column %q is missing", name))
		}
	}
	return t, nil
}

// separatorOf returns the separator of the first line, which contains the names of the columns.
func separatorOf(r *bufio.Reader) rune {
	start, _ := r.Peek(4096)
	for line := range bytes.Lines(start) {
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] == '#' {
			continue
		}
		if i := bytes.IndexAny(line, ",;\t"); i >= 0 {
			return rune(line[i])
		}
		break
	}
	return ','
}

func (t *table) record() ([]string, error) {
	t.bounded.left = most
	record, err := t.csv.Read()
	var syntax *csv.ParseError
	switch {
	case err == nil:
		t.last, _ = t.csv.FieldPos(0)
		return record, nil
	case errors.Is(err, io.EOF):
		return nil, err
	case errors.As(err, &syntax) && errors.Is(err, csv.ErrFieldCount):
		return nil, fmt.Errorf("line %d: it has %d columns, the first line has %d: %w", syntax.Line, len(record), len(t.columns), catalog.ErrBad)
	case errors.As(err, &syntax):
		return nil, fmt.Errorf("line %d, column %d: %w", syntax.Line, syntax.Column, syntax.Err)
	default:
		return nil, fmt.Errorf("line %d or below: %w", t.last+1, err)
	}
}

func (t *table) wrong(column int, err error) error {
	line, _ := t.csv.FieldPos(column)
	return fmt.Errorf("line %d: %w", line, err)
}

func (t *table) next() (e catalog.Entry, err error) {
	record, err := t.record()
	if err != nil {
		return e, err
	}
	for i, name := range t.columns {
		switch value := strings.Clone(strings.TrimSpace(record[i])); name {
		case "name":
			e.Name = value
		case "size":
			if e.Size, err = strconv.ParseInt(value, 10, 64); err != nil {
				return e, t.wrong(i, fmt.Errorf("size %q is %w: write a number of bytes", shown(value), catalog.ErrBad))
			}
		case "adler32":
			e.Adler = value
		case "block":
			e.Block = value
		case "path":
			e.Path = value
		case "checksums":
			e.More = value
		}
	}
	if e, err = catalog.CheckEntry(e); err != nil {
		return e, t.wrong(0, err)
	}
	return e, nil
}

// shown returns the beginning of a text for a message.
func shown(text string) string {
	if len(text) <= 60 {
		return text
	}
	cut := 60
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "..."
}
