package table

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// missing reports whether a cell stands for a missing value.
func missing(text string) bool {
	switch strings.ToLower(text) {
	case "", "-", "--", "na", "n/a", "null", "none":
		return true
	}
	return false
}

var (
	errNumber = errors.New("not a number")
	errFinite = errors.New("not finite")
)

// parse reads a number in the usual notation, or with a decimal comma.
func parse(text string, comma bool) (float64, error) {
	plain := text
	if comma && strings.Count(text, ",") == 1 && !strings.Contains(text, ".") {
		plain = strings.Replace(text, ",", ".", 1)
	}
	switch strings.ToLower(strings.TrimLeft(plain, "+-")) {
	case "nan", "inf", "infinity":
		return 0, errFinite
	}
	for _, r := range plain {
		if !strings.ContainsRune("0123456789.+-eE", r) { // no hexadecimal, no _
			if grouped(text) {
				return 0, errThousands
			}
			return 0, errNumber
		}
	}
	x, err := strconv.ParseFloat(plain, 64)
	switch {
	case errors.Is(err, strconv.ErrRange) && math.IsInf(x, 0):
		return 0, errFinite
	case err == nil || errors.Is(err, strconv.ErrRange):
		return x, nil
	case grouped(text):
		return 0, errThousands
	}
	return 0, errNumber
}

// grouped reports whether a text is a number with separators of thousands: 1,000 or 1'000 or
// 1.000,5.
func grouped(text string) bool {
	digits := 0
	for _, r := range text {
		switch {
		case r >= '0' && r <= '9':
			digits++
		case !strings.ContainsRune(",.' _\u00a0\u202f\u2019+-", r):
			return false
		}
	}
	return digits > 3
}

// read returns the number of a cell in base units, or an error that states the correction.
func (t *Table) read(k Kind, c cell, row int, comma bool, factor float64) (x float64, err error) {
	at := position{row, c.column}
	text, percent := c.text, false
	if k == ErrorRatio {
		text, percent = strings.CutSuffix(text, "%")
	}
	x, err = parse(strings.TrimSpace(text), comma)
	switch {
	case errors.Is(err, errThousands):
		return 0, t.wrong(at, "%s: write %s without thousands separators, as in 12500 or 12500.5", quote(c.text), t.Names[k])
	case errors.Is(err, errFinite):
		return 0, t.wrong(at, "%s: %s must be a finite number; remove the row, or leave the cell empty where a value may be missing",
			quote(c.text), t.Names[k])
	case err != nil:
		return 0, t.wrong(at, "%s is not a number: %s must be a plain number such as 12.5, with its unit in the header",
			quote(c.text), t.Names[k])
	case x < 0 && k != Time:
		return 0, t.wrong(at, "%s: %s must not be negative", quote(c.text), t.Names[k])
	}
	if percent {
		return x / 100, nil // also if the header has a percent sign
	}
	return x * factor, nil
}

// numbers reads a column. Cells of clients and of their throughput must not be empty.
func (t *Table) numbers(k Kind, rows []line, place int, comma bool, factor float64) ([]Value, error) {
	out := make([]Value, 0, len(rows))
	for _, l := range rows {
		c := l.cells[place]
		if missing(c.text) {
			if k == Clients {
				return nil, t.wrong(position{l.number, c.column}, "%s is missing: enter a number, or remove the row", t.Names[k])
			}
			out = append(out, Value{X: math.NaN()})
			continue
		}
		x, err := t.read(k, c, l.number, comma, factor)
		if err != nil {
			return nil, err
		}
		if math.IsInf(x, 0) || k == Clients && x > math.MaxInt32 {
			return nil, t.wrong(position{l.number, c.column}, "%s is too large", quote(c.text))
		}
		if k == ErrorRatio && x > 1 {
			return nil, t.wrong(position{l.number, c.column}, "%s: an error ratio must be between 0 and 1, or end with %%", quote(c.text))
		}
		out = append(out, Value{x, true})
	}
	return out, t.known(k, rows, place, out)
}

// known returns an error unless the throughput is known in every row.
func (t *Table) known(k Kind, rows []line, place int, values []Value) error {
	for i, v := range values {
		if k == Throughput && !v.Known {
			return t.wrong(position{rows[i].number, rows[i].cells[place].column}, "%s is missing: enter a number, or remove the row", t.Names[k])
		}
	}
	return nil
}

// times reads numbers, or times such as 2017-01-18T03:53:57Z.
func (t *Table) times(k Kind, rows []line, place int, comma bool, factor float64) ([]Value, error) {
	out := make([]Value, 0, len(rows))
	for _, l := range rows {
		c := l.cells[place]
		if moment, ok := moment(c.text); ok {
			out = append(out, Value{moment, true})
			continue
		}
		x, err := parse(c.text, comma)
		if err != nil {
			return nil, t.wrong(position{l.number, c.column}, "%s is not a time: use seconds, or a time such as 2017-01-18T03:53:57Z", quote(c.text))
		}
		out = append(out, Value{x * factor, true})
	}
	return out, nil
}

// moment returns a time in seconds since 1970.
func moment(text string) (float64, bool) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04"} {
		if m, err := time.Parse(layout, text); err == nil {
			return float64(m.Unix()) + float64(m.Nanosecond())/1e9, true
		}
	}
	return 0, false
}

// steps numbers the names of steps in the order of their first row.
func (t *Table) steps(_ Kind, rows []line, place int, _ bool, _ float64) ([]Value, error) {
	numbers := map[string]int{}
	var out []Value
	for _, l := range rows {
		name := l.cells[place].text
		n, ok := numbers[name]
		if !ok {
			t.Steps = append(t.Steps, name)
			n = len(t.Steps)
			numbers[name] = n
		}
		out = append(out, Value{float64(n), true})
	}
	return out, nil
}

// decimalComma reports whether the columns use a comma as the decimal point, as tables with
// semicolons between cells do. A table with both notations is an error.
func (t *Table) decimalComma(rows []line, places map[Kind]int) (bool, error) {
	var commas, points *position
	for _, l := range rows {
		for _, k := range slices.Sorted(maps.Keys(places)) {
			c := l.cells[places[k]]
			hasComma, hasPoint := strings.Contains(c.text, ","), strings.Contains(c.text, ".")
			if k == Time || k == Step || hasComma && hasPoint {
				continue // cells with a comma and a point are rejected when they are read
			}
			if hasComma && commas == nil {
				commas = &position{l.number, c.column}
			}
			if hasPoint && points == nil {
				points = &position{l.number, c.column}
			}
		}
	}
	if commas != nil && points != nil {
		at := *commas
		if points.line > at.line || points.line == at.line && points.column > at.column {
			at = *points
		}
		return false, t.wrong(at, "the table has numbers with commas and with points (first in lines %d and %d): use one of them, "+
			"and no thousands separators", commas.line, points.line)
	}
	if commas == nil || t.separator != ';' {
		return false, nil
	}
	if surelyDecimal(rows, places) {
		return true, nil
	}
	for _, l := range rows {
		c := l.cells[places[Clients]]
		if _, after, ok := strings.Cut(c.text, ","); ok && len(after) == 3 {
			return false, t.wrong(position{l.number, c.column}, "%s: the comma may be a decimal comma or a thousands separator: write %s or %s",
				quote(c.text), strings.Replace(c.text, ",", "", 1), strings.Replace(c.text, ",", ".", 1))
		}
	}
	return true, nil
}

// surelyDecimal reports whether a number has a comma that does not separate thousands: the number
// begins with 0, or the comma is not followed by three digits. All numbers of the table are then
// assumed to use the same notation.
func surelyDecimal(rows []line, places map[Kind]int) bool {
	for _, l := range rows {
		for k, place := range places {
			before, after, ok := strings.Cut(l.cells[place].text, ",")
			if k == Time || k == Step || !ok || strings.Contains(after, ",") {
				continue
			}
			if _, err := parse(before+"."+after, false); err == nil && (len(after) != 3 || before == "0") {
				return true
			}
		}
	}
	return false
}
