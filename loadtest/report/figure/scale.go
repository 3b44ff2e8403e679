package figure

import (
	"strings"

	"weir/internal/unit"
)

// A Scale converts base units to the unit that suits the largest value of a column or an axis.
type Scale struct {
	Factor float64 // times a value in base units
	Unit   string
}

// Bits scales bytes per second to bits per second, for values up to most bytes
// per second.
func Bits(most float64) Scale {
	s := Decimal(8*most, "bit/s")
	s.Factor *= 8
	return s
}

// Decimal scales with 1000-based prefixes of a unit, for values up to most.
func Decimal(most float64, what string) Scale {
	s := Scale{1, ""}
	for _, prefix := range []string{"k", "M", "G", "T", "P"} {
		if most*s.Factor < 1000 {
			break
		}
		s.Factor /= 1000
		s.Unit = prefix
	}
	s.Unit += what
	return s
}

// Seconds scales times up to most seconds.
func Seconds(most float64) Scale {
	switch {
	case most >= 1 || most <= 0:
		return Scale{1, "s"}
	case most >= 1e-3:
		return Scale{1e3, "ms"}
	}
	return Scale{1e6, "us"}
}

// Percent shows shares of 1 as percent.
func Percent() Scale { return Scale{100, "%"} }

// Text writes x with three significant digits, without the unit.
func (s Scale) Text(x float64) string { return unit.Significant(x * s.Factor) }

func (s Scale) unit() string { return strings.TrimSpace(s.Unit) }
