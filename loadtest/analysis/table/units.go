package table

import (
	"regexp"
	"strings"

	"weir/loadtest/analysis/fact"
	"weir/loadtest/analysis/table/header"
)

// A conversion converts the values of a column to base units.
type conversion struct {
	factor     float64
	complement bool // 1 - x: a success ratio is read as an error ratio
}

func (c conversion) of(x float64) float64 {
	if x *= c.factor; c.complement {
		return 1 - x
	}
	return x
}

// conversion returns the conversion of a column, by the unit that was chosen, or by the unit in its
// header.
func (t *Table) conversion(k Kind, head line, rows []line, place int, o Options) (conversion, error) {
	c := &t.Columns[place]
	name, at := c.Name, position{head.number, 0}
	if head.cells == nil {
		name = ""
	} else {
		at.column = head.cells[place].column
	}
	convert := conversion{factor: 1, complement: k == ErrorRatio && c.reading.Quantity == header.SuccessRatio}
	unit, factor, ok := header.Unit(name, quantityOf(k))
	if chosen := unitFor(k, o.Unit); chosen != "" {
		unit = chosen
		factor, ok = header.ParseUnit(chosen, quantityOf(k))
	}
	switch {
	case ok && factor == 0:
		return convert, t.wrong(at, "%s may mean bits or bytes: write it as Mbit/s or MB/s, or choose with --unit", quote(name))
	case ok:
		convert.factor = factor
	case unitsInCells(k, rows, place):
	case k == Throughput && head.cells == nil:
		return convert, t.whole("a table without column names needs the unit of the throughput, as in --unit Gbit/s")
	case k == Throughput:
		return convert, t.unitless(k, head, place)
	case k == Latency:
		t.Notes = append(t.Notes, fact.New("warning.seconds_assumed", "column", t.Names[k]))
	}
	c.accept(k, unit)
	return convert, nil
}

func (t *Table) unitless(k Kind, head line, place int) error {
	c := head.cells[place]
	name := map[Kind]string{Throughput: "throughput (Gbit/s)", Rate: "requests/s", Latency: "latency (ms)"}[k]
	return t.wrong(position{head.number, c.column}, "%s has no unit of %s: add it to the name, as in %s, or choose with --unit %s",
		quote(c.text), k, name, exampleUnit(k))
}

func quantityOf(k Kind) header.Quantity { return header.Quantity(k.String()) }

// unitFor returns the unit of a kind of columns in a list such as "MB/s,ms", "" if it has none.
func unitFor(k Kind, list string) string {
	for unit := range strings.SplitSeq(list, ",") {
		if _, ok := header.ParseUnit(unit, quantityOf(k)); ok {
			return strings.TrimSpace(unit)
		}
	}
	return ""
}

// checkUnits returns an error if a unit of the list --unit is unknown.
func (t *Table) checkUnits(list string) error {
	for unit := range strings.SplitSeq(list, ",") {
		known := list == ""
		for _, k := range []Kind{Throughput, Rate, Latency} {
			known = known || unitFor(k, unit) != ""
		}
		if !known {
			return t.whole("--unit %s: use a unit such as Gbit/s, MB/s or MiB/s of throughput, ms of latency or /s of a rate", quote(unit))
		}
	}
	return nil
}

// withUnit matches a number with a unit behind it.
var withUnit = regexp.MustCompile(`^([-+]?[0-9][0-9.,]*(?:[eE][-+]?[0-9]+)?)\s*([^\s0-9.,].*)$`)

// splitUnit splits a cell such as "4.1 Gbit/s" or "110MiB" into its number and its factor to the
// base unit of k. ok is false if the cell has no unit, or another one. In a column of throughput an
// amount of data is taken as per second. factor is 0 if the unit may mean bits or bytes.
func splitUnit(k Kind, text string) (number string, factor float64, ok bool) {
	if text == "" || isDigit(text[len(text)-1]) { // most cells: no unit ends with a digit
		return text, 0, false
	}
	m := withUnit.FindStringSubmatch(text)
	if m == nil {
		return text, 0, false
	}
	number, unit := m[1], m[2]
	switch k {
	case Throughput:
		if factor, ok = header.ParseUnit(unit, header.Throughput); !ok {
			factor, ok = header.ParseUnit(unit+"/s", header.Throughput)
		}
	case Rate:
		if scale, known := map[string]float64{"k": 1e3, "K": 1e3, "M": 1e6}[unit]; known {
			return number, scale, true
		}
		factor, ok = header.ParseUnit(unit, header.Rate)
	case ErrorRatio:
		factor, ok = 0.01, unit == "%"
	default:
		factor, ok = header.ParseUnit(unit, quantityOf(k))
	}
	if !ok {
		return text, 0, false
	}
	return number, factor, true
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// unitsInCells reports whether all cells with a value have a unit.
func unitsInCells(k Kind, rows []line, place int) bool {
	known := false
	for _, l := range rows {
		text := l.cells[place].text
		if missing(text) {
			continue
		}
		if _, _, ok := splitUnit(k, text); !ok {
			return false
		}
		known = true
	}
	return known
}
