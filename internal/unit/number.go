package unit

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// errWhole is returned for decimals that end in a fraction of a base unit.
var errWhole = errors.New("not a whole number of base units")

// split cuts a text into its number and its unit; "1.5 MiB" gives "1.5" and
// "MiB". The number is empty if the text does not start with one.
func split(text string) (number, unit string) {
	end := digits(text, 0)
	if end < len(text) && text[end] == '.' {
		if after := digits(text, end+1); after > end+1 {
			end = after
		}
	}
	if end == 0 || text[0] == '.' {
		return "", text
	}
	if end < len(text) && text[end] == 'e' { // written for very small and very large values only
		sign := end + 1
		if sign < len(text) && (text[sign] == '-' || text[sign] == '+') {
			sign++
		}
		if after := digits(text, sign); after > sign {
			end = after
		}
	}
	return text[:end], strings.TrimPrefix(text[end:], " ")
}

func digits(text string, from int) int {
	for from < len(text) && text[from] >= '0' && text[from] <= '9' {
		from++
	}
	return from
}

// whole returns number*factor, rounded to the nearest whole; errWhole if it
// is a fraction of a base unit, strconv.ErrRange if it does not fit.
func whole(number string, factor uint64) (int64, error) {
	before, after, _ := strings.Cut(number, ".")
	after = strings.TrimRight(after, "0")
	if strings.Contains(number, "e") || len(after) > 15 {
		return 0, strconv.ErrSyntax
	}
	mantissa, err := strconv.ParseUint(before+after, 10, 64)
	if err != nil {
		return 0, strconv.ErrRange
	}
	scale := uint64(math.Pow10(len(after)))
	high, low := bits.Mul64(mantissa, factor)
	if high >= scale {
		return 0, strconv.ErrRange
	}
	quotient, rest := bits.Div64(high, low, scale)
	if factor == 1 && rest != 0 {
		return 0, errWhole
	}
	if rest >= scale-rest {
		quotient++
	}
	if quotient > math.MaxInt64 {
		return 0, strconv.ErrRange
	}
	return int64(quotient), nil
}

// shifted returns number times ten to the power of shift, rounded once.
func shifted(number string, shift int) (float64, error) {
	mantissa, exponent, found := strings.Cut(number, "e")
	if found {
		e, err := strconv.Atoi(exponent)
		if err != nil || e > 1000 || e < -1000 {
			return 0, strconv.ErrRange
		}
		shift += e
	}
	x, err := strconv.ParseFloat(mantissa+"e"+strconv.Itoa(shift), 64)
	if err != nil || math.IsInf(x, 0) {
		return 0, strconv.ErrRange
	}
	return x, nil
}

// decimal returns the shortest number that shifted reads as x, times ten to
// the power of shift.
func decimal(x float64, shift int) string {
	if x == 0 {
		return "0"
	}
	text := strconv.FormatFloat(x, 'e', -1, 64)
	mantissa, exponent, found := strings.Cut(text, "e")
	if !found { // not a number, infinite
		return text
	}
	e, err := strconv.Atoi(exponent)
	if err != nil {
		return text
	}
	sign := ""
	if mantissa[0] == '-' {
		sign, mantissa = "-", mantissa[1:]
	}
	e += shift
	if e < -9 || e > 20 {
		return sign + mantissa + "e" + strconv.Itoa(e)
	}
	return sign + point(strings.Replace(mantissa, ".", "", 1), e)
}

// point sets the decimal point behind the first 1+e digits.
func point(digits string, e int) string {
	switch {
	case e < 0:
		return "0." + strings.Repeat("0", -e-1) + digits
	case len(digits) <= e+1:
		return digits + strings.Repeat("0", e+1-len(digits))
	}
	return digits[:e+1] + "." + digits[e+1:]
}

// quote returns text in quotes, cut short if it is long.
func quote(text string) string {
	if len(text) > 40 {
		text = text[:37] + "..."
	}
	return strconv.Quote(text)
}

// headed cuts a text as split does, and refuses it if it has no number, or no unit and is not 0.
func headed(text, what, example string) (number, unit string, err error) {
	number, unit = split(text)
	if number == "" || unit == "" && strings.Trim(number, "0") != "" {
		err = refuse(text, what, example)
	}
	return number, unit, err
}

// refuse returns an error that describes the problem of text and gives a correct example.
func refuse(text, what, example string) error {
	if strings.HasPrefix(strings.TrimSpace(text), "-") {
		return fmt.Errorf("%s is negative; %s cannot be", quote(text), what)
	}
	number, unit := split(text)
	switch {
	case number == "":
		return fmt.Errorf("%s is not %s; write a number and its unit, as in %s", quote(text), what, example)
	case unit == "":
		return fmt.Errorf("%s has no unit; write %s as in %s", quote(text), what, example)
	}
	return fmt.Errorf("%s has the unknown unit %s; write %s as in %s", quote(text), quote(unit), what, example)
}

// suggest adds the spelling that was probably meant to an unknown unit.
func suggest(text, number, right string) error {
	return fmt.Errorf("%s has an unknown unit; did you mean %s%s?", quote(text), number, right)
}

func tooLarge(text, what string) error {
	return fmt.Errorf("%s is too large for %s", quote(text), what)
}
