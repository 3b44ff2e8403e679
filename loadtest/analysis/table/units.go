package table

import (
	"strings"
	"unicode"

	"weir/loadtest/analysis/fact"
)

// conversion returns the factor that converts values of a column to base units, by the unit in its
// header or the unit that was chosen.
func (t *Table) conversion(k Kind, header line, place int, o Options) (factor float64, err error) {
	name, at := "", position{}
	if header.cells != nil {
		name, at = header.cells[place].text, position{header.number, header.cells[place].column}
	}
	switch k {
	case Throughput:
		return t.speed(name, at, o.Unit)
	case Latency, Time:
		if factor, ok := timeIn(name); ok {
			return factor, nil
		}
		if k == Latency {
			t.Notes = append(t.Notes, fact.New("warning.seconds_assumed", "column", t.Names[k]))
		}
	case ErrorRatio:
		if strings.Contains(name, "%") || strings.Contains(strings.ToLower(name), "percent") {
			return 0.01, nil
		}
	case Rate:
		for _, w := range words(name) {
			if per, ok := map[string]float64{"min": 60, "minute": 60, "h": 3600, "hour": 3600}[w]; ok {
				return 1 / per, nil
			}
		}
	}
	return 1, nil
}

func (t *Table) speed(name string, at position, chosen string) (float64, error) {
	if chosen != "" {
		factor, ok := speedOf(chosen)
		if !ok {
			return 0, t.whole("--unit %s: use a unit such as Gbit/s, Mbit/s, MB/s or MiB/s", quote(chosen))
		}
		return factor, nil
	}
	factor, ok := speedIn(name)
	switch {
	case ok && factor == 0:
		return 0, t.wrong(at, "%s may mean bits or bytes: write it as Mbit/s or MB/s, or choose with --unit", quote(name))
	case !ok && name == "":
		return 0, t.whole("a table without column names needs the unit of the throughput, as in --unit Gbit/s")
	case !ok:
		return 0, t.wrong(at, "%s has no unit of throughput: add it to the name, as in throughput (Gbit/s) or throughput_mbps, "+
			"or choose with --unit", quote(name))
	}
	return factor, nil
}

// speedIn finds a unit of throughput in a header; 0 if it may be bits or bytes.
func speedIn(name string) (factor float64, ok bool) {
	for _, long := range []string{"_per_second", " per second", "_per_sec", " per sec"} {
		if i := strings.Index(strings.ToLower(name), long); i >= 0 && i+len(long) <= len(name) {
			name = name[:i] + "/s" + name[i+len(long):]
		}
	}
	for _, w := range strings.FieldsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("()[]:,;_", r) }) {
		if factor, ok := speedOf(w); ok {
			return factor, true
		}
	}
	return 0, false
}

// speedOf parses a unit of throughput in its usual spellings: a prefix, bits or bytes, and per
// second. Mbps always means bits; mb/s may be either.
func speedOf(text string) (factor float64, ok bool) {
	for _, end := range []string{"/second", "/sec", "/s", "ps"} {
		if n := len(text) - len(end); n > 0 && strings.EqualFold(text[n:], end) {
			return scaledSpeed(text[:n], end == "ps")
		}
	}
	return 0, false
}

func scaledSpeed(text string, short bool) (factor float64, ok bool) {
	power := 1.0
	name := text
	for _, p := range prefixes() {
		if len(name) > len(p.name) && strings.EqualFold(name[:len(p.name)], p.name) {
			name, power = name[len(p.name):], p.factor
			break
		}
	}
	switch lower := strings.ToLower(name); {
	case lower == "bit" || lower == "bits":
		return power / 8, true
	case lower == "byte" || lower == "bytes":
		return power, true
	case name == "b" && short:
		return power / 8, true
	case name == "B":
		return power, true
	case name == "b" && unicode.IsUpper(rune(text[0])) && len(text) > 1: // Gb/s
		return power / 8, true
	case name == "b" && len(text) > 1: // gb/s, mb/s
		return 0, true
	}
	return 0, false
}

type prefix struct {
	name   string
	factor float64
}

// prefixes returns the prefixes of units, the longer names first.
func prefixes() []prefix {
	return []prefix{
		{"kibi", 1 << 10}, {"mebi", 1 << 20}, {"gibi", 1 << 30}, {"kilo", 1e3}, {"mega", 1e6}, {"giga", 1e9}, {"tera", 1e12},
		{"ki", 1 << 10}, {"mi", 1 << 20}, {"gi", 1 << 30}, {"ti", 1 << 40}, {"k", 1e3}, {"m", 1e6}, {"g", 1e9}, {"t", 1e12},
	}
}

// timeIn finds a unit of time in a header.
func timeIn(name string) (factor float64, ok bool) {
	units := map[string]float64{
		"s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1, "ms": 1e-3, "msec": 1e-3, "millisecond": 1e-3, "milliseconds": 1e-3,
		"us": 1e-6, "usec": 1e-6, "microseconds": 1e-6, "ns": 1e-9, "min": 60, "mins": 60, "minute": 60, "minutes": 60, "h": 3600, "hour": 3600,
		"hours": 3600,
	}
	all := words(name)
	for i := len(all) - 1; i >= 0; i-- {
		if factor, ok = units[all[i]]; ok {
			return factor, true
		}
	}
	return 0, false
}
