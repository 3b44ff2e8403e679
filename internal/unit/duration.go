package unit

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

type timeUnit struct {
	name string
	span time.Duration
}

// timeUnits returns the units of time, the largest first.
func timeUnits() []timeUnit {
	return []timeUnit{
		{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second},
		{"ms", time.Millisecond}, {"us", time.Microsecond}, {"ns", 1},
	}
}

// String returns d as whole days, hours and minutes and the seconds that are
// left, or below a second in the largest unit that leaves at least 1.
// ParseDuration reads it back.
func (d Duration) String() string {
	switch {
	case d == 0:
		return "0s"
	case d < 0:
		return time.Duration(d).String()
	}
	var b strings.Builder
	rest := time.Duration(d)
	for _, u := range timeUnits()[:3] {
		if n := rest / u.span; n > 0 {
			fmt.Fprintf(&b, "%d%s", n, u.name)
			rest -= n * u.span
		}
	}
	for _, u := range timeUnits()[3:] {
		if rest < u.span || rest == 0 {
			continue
		}
		b.WriteString(strconv.FormatInt(int64(rest/u.span), 10))
		if part := rest % u.span; part > 0 {
			width := len(strconv.FormatInt(int64(u.span), 10)) - 1
			b.WriteString(strings.TrimRight(fmt.Sprintf(".%0*d", width, int64(part)), "0"))
		}
		b.WriteString(u.name)
		break
	}
	return b.String()
}

// ParseDuration reads a duration: numbers with their units ns, us, ms, s, m,
// h, d, one after the other, as in 1h30m; or 0.
func ParseDuration(text string) (Duration, error) {
	const what, example = "a duration", "1.5s, 250ms, 60m or 2d"
	if text != "" && strings.Trim(text, "0") == "" {
		return 0, nil
	}
	var sum int64
	for rest := text; rest != "" || text == ""; {
		number, tail := split(rest)
		end := strings.IndexAny(tail, "0123456789")
		if end < 0 {
			end = len(tail)
		}
		name := strings.TrimSuffix(tail[:end], " ")
		if number == "" || name == "" {
			return 0, refuse(text, what, example)
		}
		span, err := timeSpan(text, rest, number, name)
		if err != nil {
			return 0, err
		}
		n, err := whole(number, uint64(span))
		switch {
		case errors.Is(err, strconv.ErrRange) || err == nil && sum > math.MaxInt64-n:
			return 0, tooLarge(text, what)
		case errors.Is(err, errWhole):
			return 0, fmt.Errorf("%s is not a whole number of nanoseconds", quote(text))
		case err != nil:
			return 0, fmt.Errorf("%s is not a duration; write plain numbers and units, as in %s", quote(text), example)
		}
		sum += n
		rest = tail[end:]
	}
	return Duration(sum), nil
}

func timeSpan(text, rest, number, name string) (time.Duration, error) {
	if name == "µs" || name == "μs" { // the micro sign and the Greek letter
		name = "us"
	}
	for _, u := range timeUnits() {
		if u.name == name {
			return u.span, nil
		}
	}
	word := strings.ToLower(name)
	if len(word) > 1 {
		word = strings.TrimSuffix(word, "s")
	}
	right, ok := map[string]string{
		"sec": "s", "second": "s", "min": "m", "minute": "m", "hour": "h", "hr": "h", "day": "d", "s": "s", "h": "h", "d": "d", "msec": "ms",
		"m": "m", "usec": "us", "nsec": "ns", "u": "us", "n": "ns", "millisecond": "ms",
	}[word]
	if ok {
		return 0, fmt.Errorf("%s has the unknown unit %s; did you mean %s%s?", quote(text), quote(name), text[:len(text)-len(rest)]+number, right)
	}
	if word == "week" || word == "w" {
		return 0, fmt.Errorf("%s is in weeks; write days, as in 7d", quote(text))
	}
	return 0, refuse(rest, "a duration", "1.5s, 250ms, 60m or 2d")
}
