package table

import (
	"errors"
	"maps"
	"math"
	"regexp"
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

// read returns the number of a cell in base units, or an error that states the correction. A unit in
// the cell has priority over the unit of the column.
func (t *Table) read(k Kind, c cell, row int, comma bool, convert conversion) (x float64, err error) {
	at := position{row, c.column}
	number, factor, own := splitUnit(k, c.text)
	x, err = parse(number, comma)
	switch {
	case errors.Is(err, errThousands):
		return 0, t.wrong(at, "%s: write %s without thousands separators, as in 12500 or 12500.5", quote(c.text), t.Names[k])
	case errors.Is(err, errFinite):
		return 0, t.wrong(at, "%s: %s must be a finite number; remove the row, or leave the cell empty where a value may be missing",
			quote(c.text), t.Names[k])
	case err != nil:
		return 0, t.wrong(at, "%s is not a number: %s must be a number such as 12.5, with its unit in the header or behind the number",
			quote(c.text), t.Names[k])
	case x < 0 && k != Time:
		return 0, t.wrong(at, "%s: %s must not be negative", quote(c.text), t.Names[k])
	case own && factor == 0:
		return 0, t.wrong(at, "%s may mean bits or bytes: write it as Mbit/s or MB/s", quote(c.text))
	}
	if own {
		convert.factor = factor
	}
	return convert.of(x), nil
}

// numbers reads a column. Cells of clients and of their throughput must not be empty.
func (t *Table) numbers(k Kind, rows []line, place int, comma bool, convert conversion) ([]Value, error) {
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
		x, err := t.read(k, c, l.number, comma, convert)
		if err != nil {
			return nil, err
		}
		if math.IsInf(x, 0) || k == Clients && x > math.MaxInt32 {
			return nil, t.wrong(position{l.number, c.column}, "%s is too large", quote(c.text))
		}
		if k == ErrorRatio && (x > 1 || x < 0) {
			return nil, t.wrong(position{l.number, c.column}, "%s: an error ratio must be between 0 and 1, or end with %%", quote(c.text))
		}
		out = append(out, Value{x, true})
	}
	return out, t.known(k, rows, place, out)
}

// known returns an error unless the values by which points are compared are known in every row.
func (t *Table) known(k Kind, rows []line, place int, values []Value) error {
	if k == Latency && (t.Has(Throughput) || t.Has(Rate)) || k != Throughput && k != Rate && k != Latency {
		return nil
	}
	for i, v := range values {
		if !v.Known {
			return t.wrong(position{rows[i].number, rows[i].cells[place].column}, "%s is missing: enter a number, or remove the row", t.Names[k])
		}
	}
	return nil
}

// A clock is a notation of times. The times of a column have the same notation.
type clock int

const (
	seconds clock = iota // from any start
	dates
	zonedDates
	daytimes
)

// times reads numbers, or times such as 2017-01-18T03:53:57Z.
func (t *Table) times(k Kind, rows []line, place int, comma bool, convert conversion) ([]Value, error) {
	out := make([]Value, 0, len(rows))
	var first clock
	var layout string
	for i, l := range rows {
		c := l.cells[place]
		at := position{l.number, c.column}
		x, notation, ok := moment(c.text, &layout, comma)
		if !ok {
			number, factor, own := splitUnit(k, c.text)
			y, err := parse(number, comma)
			if err != nil {
				return nil, t.wrong(at, "%s is not a time: use seconds, or a time such as 2017-01-18T03:53:57Z", quote(c.text))
			}
			if own {
				convert.factor = factor
			}
			x, notation = convert.of(y), seconds
		}
		if i == 0 {
			first = notation
		}
		if notation != first {
			return nil, t.wrong(at, "%s has another notation than %s in line %d: use seconds or dates, all with or all without a time zone",
				quote(c.text), quote(rows[0].cells[place].text), rows[0].number)
		}
		out = append(out, Value{x, true})
	}
	t.milliseconds(place, first, out)
	return out, nil
}

// milliseconds converts numbers without a unit that are milliseconds since 1970: as seconds they
// would be thousands of years away.
func (t *Table) milliseconds(place int, notation clock, values []Value) {
	if notation != seconds || t.Columns[place].Unit != "" {
		return
	}
	for _, v := range values {
		if v.X < 1e12 || v.X > 5e12 {
			return
		}
	}
	for i := range values {
		values[i].X /= 1e3
	}
	t.Columns[place].accept(Time, "ms since 1970")
}

// layouts are the notations of dates, and zones what may be behind them.
func layouts() (dates, zones []string) {
	return []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", "2006/01/02 15:04:05",
		"02.01.2006 15:04:05", "02.01.2006 15:04"}, []string{"", "Z07:00", "-0700", " -0700", " -07:00", " UTC", " GMT"}
}

// moment returns a time in seconds since 1970, or since midnight. last is the layout of the cell
// before, which is tried first. A plain number is no moment.
func moment(text string, last *string, comma bool) (x float64, notation clock, ok bool) {
	if _, err := parse(text, comma); err == nil {
		return 0, 0, false
	}
	m, err := time.Parse(*last, text)
	if *last == "" || err != nil {
		if *last, m = layoutOf(text); *last == "" {
			return 0, 0, false
		}
	}
	switch {
	case *last == time.TimeOnly:
		return float64(m.Hour()*3600+m.Minute()*60+m.Second()) + float64(m.Nanosecond())/1e9, daytimes, true
	case strings.HasSuffix(*last, "4") || strings.HasSuffix(*last, "5"):
		notation = dates
	default:
		notation = zonedDates
	}
	return float64(m.Unix()) + float64(m.Nanosecond())/1e9, notation, true
}

// layoutOf returns the layout of a date or time of day, "" if it is neither.
func layoutOf(text string) (layout string, m time.Time) {
	dates, zones := layouts()
	for _, date := range append(dates, time.TimeOnly) {
		for _, zone := range zones {
			if m, err := time.Parse(date+zone, text); err == nil {
				return date + zone, m
			}
		}
	}
	return "", m
}

// daysOnly reports whether all cells are dates without a time of day.
func daysOnly(rows []line, place int) bool {
	for _, l := range rows {
		text := l.cells[place].text
		_, err := time.Parse(time.DateOnly, text)
		_, german := time.Parse("02.01.2006", text)
		_, slashed := time.Parse("2006/01/02", text)
		if err != nil && german != nil && slashed != nil {
			return false
		}
	}
	return true
}

// steps numbers the names of steps in the order of their first row.
func (t *Table) steps(_ Kind, rows []line, place int, _ bool, _ conversion) ([]Value, error) {
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
	if commas == nil {
		return false, t.groupedPoints(rows, places)
	}
	if t.separator != ';' {
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

// groupForm matches a number whose point may be a decimal point or a separator of thousands.
var groupForm = regexp.MustCompile(`^[-+]?[1-9][0-9]{0,2}\.[0-9]{3}$`)

// groupedPoints returns an error for a number such as 1.000 if it may mean a thousand: if no number
// of the table has a point that is surely decimal, and the table has semicolons between its cells as
// in countries with decimal commas, or other numbers of the column have no point.
func (t *Table) groupedPoints(rows []line, places map[Kind]int) error {
	var first *position
	text := ""
	for _, k := range slices.Sorted(maps.Keys(places)) {
		if k == Time || k == Step {
			continue
		}
		var group *position
		plain, sample := false, ""
		for _, l := range rows {
			c := l.cells[places[k]]
			number, _, _ := splitUnit(k, c.text)
			switch {
			case missing(number):
			case groupForm.MatchString(number):
				if group == nil {
					group, sample = &position{l.number, c.column}, number
				}
			case strings.Contains(number, "."):
				return nil
			default:
				plain = plain || number != "0"
			}
		}
		if group != nil && first == nil && (plain || t.separator == ';') {
			first, text = group, sample
		}
	}
	if first == nil {
		return nil
	}
	return t.wrong(*first, "%s: the point may be a decimal point or a thousands separator: write %s or %s",
		quote(text), strings.Replace(text, ".", "", 1), text+"0")
}
