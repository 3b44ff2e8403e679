package unit

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

type bitUnit struct {
	name  string
	shift int     // powers of ten
	times float64 // and a power of two
}

// bitUnits returns the units of bitrates in the order of preference of String, the largest unit
// first.
func bitUnits() []bitUnit {
	return []bitUnit{
		{"Tbit/s", 12, 1}, {"Gbit/s", 9, 1}, {"Mbit/s", 6, 1}, {"kbit/s", 3, 1}, {"bit/s", 0, 1},
		{"TB/s", 12, 8}, {"GB/s", 9, 8}, {"MB/s", 6, 8}, {"kB/s", 3, 8}, {"B/s", 0, 8},
		{"TiB/s", 0, 8 << 40}, {"GiB/s", 0, 8 << 30}, {"MiB/s", 0, 8 << 20}, {"KiB/s", 0, 8 << 10},
	}
}

// String returns b in the largest unit of bits that leaves at least 1.
// ParseBitrate reads it back.
func (b Bitrate) String() string {
	units := bitUnits()
	for _, u := range units[:4] {
		if float64(b) >= math.Pow10(u.shift) {
			return decimal(float64(b), -u.shift) + u.name
		}
	}
	return decimal(float64(b), 0) + "bit/s"
}

// ParseBitrate reads a speed of data: a number and bit/s or B/s, with k, M, G
// or T before it (powers of 1000) or Ki, Mi, Gi, Ti before B/s; or 0.
func ParseBitrate(text string) (Bitrate, error) {
	const what, example = "a speed", "100Mbit/s, 1Gbit/s or 12MB/s"
	number, name, err := headed(text, what, example)
	if err != nil {
		return 0, err
	}
	if name == "" {
		return 0, nil
	}
	for _, u := range bitUnits() {
		if name != u.name {
			continue
		}
		x, err := shifted(number, u.shift)
		if err != nil || math.IsInf(x*u.times, 0) {
			return 0, tooLarge(text, what)
		}
		return Bitrate(x * u.times), nil
	}
	for _, u := range bitUnits() {
		if strings.EqualFold(plain(name), plain(u.name)) {
			return 0, suggest(text, number, u.name)
		}
	}
	return 0, refuse(text, what, example)
}

// plain reduces the usual spellings of a unit of speed to one.
func plain(name string) string {
	if strings.HasSuffix(strings.ToLower(name), "bps") { // Mbps is always meant in bits
		return name[:len(name)-3] + "bit/s"
	}
	name = strings.TrimSuffix(strings.TrimSuffix(name, "ec"), "/s")
	if strings.HasSuffix(name, "b") {
		return name[:len(name)-1] + "bit/s"
	}
	return strings.TrimSuffix(name, "s") + "/s"
}

// String returns r per second, or per minute or hour if that is much shorter. ParseRate reads it
// back.
func (r Rate) String() string {
	best, name := decimal(float64(r), 0), "/s"
	if len(best) < 7 || !(r > 0) || math.IsInf(float64(r), 0) {
		return best + name
	}
	for _, u := range rateUnits()[1:] {
		number := decimal(float64(r)*u.seconds, 0)
		if back, err := ParseRate(number + u.name); err == nil && back == r && len(number) < len(best) {
			best, name = number, u.name
		}
	}
	return best + name
}

type rateUnit struct {
	name    string
	seconds float64
}

func rateUnits() []rateUnit { return []rateUnit{{"/s", 1}, {"/min", 60}, {"/h", 3600}} }

// ParseRate reads a number of operations per time: a number and /s, /min or
// /h; or 0.
func ParseRate(text string) (Rate, error) {
	const what, example = "a rate", "10/s, 600/min or 5000/h"
	number, name, err := headed(text, what, example)
	if err != nil {
		return 0, err
	}
	x, err := shifted(number, 0)
	if err != nil {
		return 0, tooLarge(text, what)
	}
	if name == "" {
		return 0, nil
	}
	for _, u := range rateUnits() {
		if name == u.name {
			return Rate(x / u.seconds), nil
		}
	}
	if right, ok := map[string]string{
		"/m": "/min", "/sec": "/s", "/second": "/s", "/minute": "/min", "/hour": "/h", "/hr": "/h", "Hz": "/s", "op/s": "/s",
		"ops/s": "/s", "s": "/s",
	}[name]; ok {
		return 0, suggest(text, number, right)
	}
	return 0, refuse(text, what, example)
}

// String returns f in percent. ParseFraction reads it back.
func (f Fraction) String() string { return decimal(float64(f), 2) + "%" }

// ParseFraction reads a share of a whole: 0% to 100%, or a plain number from
// 0 up to, but not including, 1. A plain 1 is refused: it could mean either.
func ParseFraction(text string) (Fraction, error) {
	const what, example = "a share", "1%, 50% or 0.5"
	number, name := split(text)
	shift := 0
	switch {
	case number == "" || name != "" && name != "%":
		return 0, refuse(text, what, example)
	case name == "%":
		shift = -2
	}
	x, err := shifted(number, shift)
	switch {
	case err != nil || x > 1:
		if name == "" {
			return 0, fmt.Errorf("%s is more than 100%%; did you mean %s%%?", quote(text), number)
		}
		return 0, fmt.Errorf("%s is more than 100%%", quote(text))
	case name == "" && x == 1:
		return 0, fmt.Errorf("%s is ambiguous; write %s or %s", quote(text), strconv.Quote("1%"), strconv.Quote("100%"))
	}
	return Fraction(x), nil
}
