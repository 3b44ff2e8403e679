package header

import (
	"strings"
	"unicode"
)

// A prefix scales a unit.
type prefix struct {
	name   string
	factor float64
}

// prefixes returns the prefixes of units of data; a prefix that begins with another one is first.
func prefixes() []prefix {
	return []prefix{
		{"kibi", 1 << 10}, {"mebi", 1 << 20}, {"gibi", 1 << 30}, {"tebi", 1 << 40},
		{"kilo", 1e3}, {"mega", 1e6}, {"giga", 1e9}, {"tera", 1e12},
		{"ki", 1 << 10}, {"mi", 1 << 20}, {"gi", 1 << 30}, {"ti", 1 << 40}, {"k", 1e3}, {"m", 1e6}, {"g", 1e9}, {"t", 1e12},
	}
}

// A data is an amount of data in bytes; bitsOrBytes if its spelling, such as mb, may mean either.
type data struct {
	bytes       float64
	bitsOrBytes bool
}

// parseData parses a unit of data in its usual spellings: a prefix and bits or bytes. French octets
// are bytes. The case of b matters: a lower-case b without an upper-case prefix may be either, and so
// may Kb.
func parseData(text string) (d data, ok bool) {
	power, name := 1.0, text
	for _, p := range prefixes() {
		if len(name) > len(p.name) && strings.EqualFold(name[:len(p.name)], p.name) {
			name, power = name[len(p.name):], p.factor
			break
		}
	}
	scaled := len(name) < len(text)
	switch lower := strings.ToLower(name); {
	case lower == "bit" || lower == "bits":
		return data{bytes: power / 8}, true
	case lower == "byte" || lower == "bytes" || lower == "octet" || lower == "octets" || name == "B":
		return data{bytes: power}, true
	case lower == "o" && scaled && unicode.IsUpper([]rune(text)[0]) && name == "o": // Mo, Gio
		return data{bytes: power}, true
	case name == "o" && text == "ko":
		return data{bytes: power}, true
	case name == "b" && scaled && unicode.IsUpper([]rune(text)[0]) && text != "Kb": // Gb
		return data{bytes: power / 8}, true
	case name == "b" && scaled: // gb
		return data{power, true}, true
	}
	return data{}, false
}

// parseSpeed parses a unit of throughput without a slash: Mbps always means bits, MBps bytes.
func parseSpeed(text string) (d data, ok bool) {
	n := len(text) - len("ps")
	if n < 1 || !strings.EqualFold(text[n:], "ps") {
		return data{}, false
	}
	switch name := text[:n]; name[n-1] {
	case 'b':
		return parseData(name + "it")
	case 'B':
		return parseData(name)
	}
	return data{}, false
}

// ParseUnit returns the factor from a unit to the base unit of q: a unit of throughput, time, rate or
// ratio. ok is false if the unit is unknown; the factor is 0 if it may mean bits or bytes.
func ParseUnit(text string, q Quantity) (factor float64, ok bool) {
	p := parser{terms: terms(text), name: text}
	p.collect()
	if len(p.unknown) > 0 {
		return 0, false
	}
	_, factor, ok = p.unitOf(q)
	return factor, ok
}
