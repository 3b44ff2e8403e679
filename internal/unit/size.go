package unit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

type sizeUnit struct {
	name  string
	bytes uint64
}

// sizeUnits returns the units of sizes, the largest first.
func sizeUnits() []sizeUnit {
	return []sizeUnit{
		{"PiB", 1 << 50}, {"PB", 1e15}, {"TiB", 1 << 40}, {"TB", 1e12}, {"GiB", 1 << 30}, {"GB", 1e9},
		{"MiB", 1 << 20}, {"MB", 1e6}, {"KiB", 1 << 10}, {"kB", 1e3}, {"B", 1},
	}
}

// String returns s in the unit that makes it shortest. ParseSize reads it back.
func (s Size) String() string {
	if s < 0 {
		return strconv.FormatInt(int64(s), 10) + "B"
	}
	best, name := strconv.FormatInt(int64(s), 10), "B"
	for _, u := range sizeUnits() {
		quotient, rest := uint64(s)/u.bytes, uint64(s)%u.bytes
		if quotient == 0 || rest*1000%u.bytes != 0 { // at most three decimals
			continue
		}
		number := strconv.FormatUint(quotient, 10)
		if rest != 0 {
			number += strings.TrimRight(fmt.Sprintf(".%03d", rest*1000/u.bytes), "0")
		}
		if len(number) < len(best) {
			best, name = number, u.name
		}
	}
	return best + name
}

// ParseSize reads a size: a number and one of B, kB, MB, GB, TB, PB (powers of
// 1000) and KiB, MiB, GiB, TiB, PiB (powers of 1024); or 0.
func ParseSize(text string) (Size, error) {
	const what, example = "a size", "1MiB, 300kB or 20B"
	number, name, err := headed(text, what, example)
	if err != nil {
		return 0, err
	}
	factor, err := sizeFactor(text, number, name)
	if err != nil {
		return 0, err
	}
	n, err := whole(number, factor)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, tooLarge(text, what)
	case errors.Is(err, errWhole):
		return 0, fmt.Errorf("%s is not a whole number of bytes", quote(text))
	case err != nil:
		return 0, fmt.Errorf("%s is not a size; write a plain number and its unit, as in %s", quote(text), example)
	}
	return Size(n), nil
}

func sizeFactor(text, number, name string) (uint64, error) {
	if name == "" {
		return 1, nil
	}
	for _, u := range sizeUnits() {
		if name == u.name {
			return u.bytes, nil
		}
	}
	prefix := strings.ToUpper(name[:1])
	switch {
	case name == "K" || name == "k" || name == "KB":
		return 0, fmt.Errorf("%s is ambiguous; write %skB for powers of 1000 or %sKiB for powers of 1024", quote(text), number, number)
	case len(name) == 1 && strings.Contains("MGTP", prefix):
		return 0, fmt.Errorf("%s is ambiguous; write %s%sB for powers of 1000 or %s%siB for powers of 1024", quote(text), number, prefix,
			number, prefix)
	}
	for _, u := range sizeUnits() {
		if strings.EqualFold(name, u.name) || strings.EqualFold(name+"B", u.name) {
			return 0, suggest(text, number, u.name)
		}
	}
	return 0, refuse(text, "a size", "1MiB, 300kB or 20B")
}
