package table

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// A cell is one text of a line with its position: the column is counted in characters, as editors
// do.
type cell struct {
	text   string
	column int
}

type line struct {
	number int
	cells  []cell
}

// split splits a text into lines with the same number of cells.
func (t *Table) split(raw []byte) ([]line, error) {
	texts, err := t.texts(raw)
	if err != nil {
		return nil, err
	}
	if t.separator == 0 || t.separator == '|' {
		if rows, ok := undrawn(texts); ok {
			texts, t.separator = rows, '|'
		}
	}
	if t.separator == 0 {
		t.separator = sniff(texts)
	}
	var out []line
	for _, text := range texts {
		cells, err := t.cells(text, t.separator)
		if err != nil {
			return nil, err
		}
		if len(cells) > mostCells {
			return nil, t.wrong(position{text.number, cells[mostCells].column}, "more than %d columns", mostCells)
		}
		if len(out) > 0 && len(cells) != len(out[0].cells) {
			return nil, t.ragged(text, out[0], cells)
		}
		if out = append(out, line{text.number, cells}); len(out)*len(cells) > mostAll {
			return nil, t.wrong(position{text.number, 0}, "more than %d cells: remove columns, or use means, for example of 30 s", mostAll)
		}
	}
	if len(out[0].cells) == 1 {
		return nil, t.wrong(position{out[0].number, 1}, "only one column: a curve needs the number of clients and their throughput, "+
			"separated by a comma, semicolon, tab or blank")
	}
	return out, nil
}

func (t *Table) ragged(text textLine, first line, cells []cell) error {
	at := position{text.number, utf8.RuneCountInString(text.text) + 1}
	if n := len(first.cells); len(cells) > n {
		at.column = cells[n].column
	}
	return t.wrong(at, "%d %s where line %d has %d (separated by %s): an empty cell needs its separators, "+
		"a text that contains a separator needs quotes",
		len(cells), map[bool]string{true: "cell", false: "cells"}[len(cells) == 1], first.number, len(first.cells),
		map[rune]string{',': "commas", ';': "semicolons", '\t': "tabs", ' ': "blanks", '|': "bars"}[t.separator])
}

type textLine struct {
	number int
	text   string
}

// texts returns the lines that are neither empty nor comments.
func (t *Table) texts(raw []byte) ([]textLine, error) {
	switch {
	case bytes.HasPrefix(raw, []byte{0xff, 0xfe}) || bytes.HasPrefix(raw, []byte{0xfe, 0xff}):
		return nil, t.whole("the text is UTF-16: save it as UTF-8")
	case bytes.IndexByte(raw, 0) >= 0:
		n := bytes.Count(raw[:bytes.IndexByte(raw, 0)], []byte{'\n'})
		return nil, t.wrong(position{n + 1, 0}, "a byte of value 0: this is a binary file, not a text table")
	}
	raw = bytes.TrimPrefix(raw, []byte("\ufeff"))
	var out []textLine
	for number := 1; len(raw) > 0; number++ {
		end := bytes.IndexAny(raw, "\r\n")
		next := end + 1
		switch {
		case end < 0:
			end, next = len(raw), len(raw)
		case raw[end] == '\r' && next < len(raw) && raw[next] == '\n':
			next++
		}
		text := raw[:end]
		raw = raw[next:]
		if len(text) > mostLine {
			return nil, t.wrong(position{number, 0}, "a line of more than %d bytes: this is not a table", mostLine)
		}
		if !utf8.Valid(text) {
			return nil, t.wrong(position{number, 0}, "not UTF-8: this is not text, or it has another encoding")
		}
		if s := bytes.TrimSpace(text); len(s) > 0 && s[0] != '#' {
			out = append(out, textLine{number, string(text)})
		}
		if len(out) > mostRows+1 { // and the header
			return nil, t.wrong(position{number, 0}, "more than %d rows: use means, for example of 30 s", mostRows)
		}
	}
	if len(out) == 0 {
		return nil, t.whole("empty: a table has a line of column names and one line for each load, such as clients,throughput_gbps and 100,9.4")
	}
	return out, nil
}

// cells splits a line. Cells may be in double quotes, which are doubled inside of them.
func (t *Table) cells(text textLine, separator rune) (out []cell, err error) {
	rest, column := []rune(text.text), 1
	for {
		skip := 0
		for skip < len(rest) && blank(rest[skip]) && rest[skip] != separator {
			skip++
		}
		if separator == ' ' {
			for skip < len(rest) && blank(rest[skip]) {
				skip++
			}
			if skip == len(rest) && len(out) > 0 {
				return out, nil
			}
		}
		rest, column = rest[skip:], column+skip
		content, used, ok := next(rest, separator)
		if !ok {
			return nil, t.wrong(position{text.number, column}, "unterminated quote")
		}
		out = append(out, cell{content, column})
		if used >= len(rest) {
			return out, nil
		}
		rest, column = rest[used+1:], column+used+1
	}
}

// next returns the first cell and its length in characters.
func next(rest []rune, separator rune) (content string, used int, ok bool) {
	ends := func(r rune) bool { return r == separator || separator == ' ' && blank(r) }
	if len(rest) == 0 || rest[0] != '"' {
		for used < len(rest) && !ends(rest[used]) {
			used++
		}
		return strings.TrimSpace(string(rest[:used])), used, true
	}
	var b strings.Builder
	for used = 1; used < len(rest); used++ {
		if rest[used] != '"' {
			b.WriteRune(rest[used])
			continue
		}
		if used+1 < len(rest) && rest[used+1] == '"' {
			b.WriteRune('"')
			used++
			continue
		}
		for used++; used < len(rest) && !ends(rest[used]); used++ {
			if !blank(rest[used]) {
				return "", used, false
			}
		}
		return strings.TrimSpace(b.String()), used, true
	}
	return "", used, false
}

func blank(r rune) bool { return r == ' ' || r == '\t' || r == '\u00a0' }

// sniff returns the separator that splits the first lines into the same number of cells, at least
// two. If no separator does, it returns the separator that splits the first line into the most
// cells.
func sniff(texts []textLine) rune {
	best, most := ',', 0
	t := &Table{}
	for _, separator := range []rune{'\t', ';', ',', ' '} {
		width, same := 0, true
		for i, text := range texts[:min(len(texts), 20)] {
			cells, err := t.cells(text, separator)
			if i == 0 {
				width = len(cells)
			}
			same = same && err == nil && len(cells) == width
		}
		if same && width > 1 {
			return separator
		}
		if width > most {
			best, most = separator, width
		}
	}
	return best
}
