package unit

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Bits returns a throughput for people, three significant digits: "8.32 Gbit/s".
func Bits(bytesPerSecond float64) string { return scaled(8*bytesPerSecond, "bit/s") }

// Bytes returns an amount of data for people, 1000-based, three significant
// digits: "1.05 MB".
func Bytes(bytes float64) string { return scaled(bytes, "B") }

// Count returns a number of things for people, three significant digits:
// "42", "8.32 k", "1.05 M".
func Count(n float64) string {
	if n == math.Trunc(n) && math.Abs(n) < 1000 {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return strings.TrimSuffix(scaled(n, ""), " ")
}

// Seconds returns a time in seconds for people, at most three significant
// digits: "1.2 ms", "17.5 s", "2m5s".
func Seconds(s float64) string {
	magnitude := math.Abs(s)
	switch {
	case math.IsNaN(s) || math.IsInf(s, 0):
		return "n/a"
	case magnitude >= 1e9:
		return trim(scaled(s, "s"))
	case magnitude >= 120:
		text := Duration(time.Duration(math.Round(magnitude)) * time.Second).String()
		if s < 0 {
			return "-" + text
		}
		return text
	case magnitude >= 0.9995 || s == 0:
		return trim(scaled(s, "s"))
	case magnitude >= 0.9995e-3:
		return trim(three(s*1e3) + " ms")
	case magnitude >= 0.9995e-6:
		return trim(three(s*1e6) + " us")
	}
	return trim(three(s*1e9) + " ns")
}

// Percent returns a ratio for people, at most three significant digits:
// "1.2%".
func Percent(ratio float64) string {
	switch {
	case math.IsNaN(ratio) || math.IsInf(ratio, 0):
		return "n/a"
	case ratio > 0 && ratio < 1e-5:
		return "<0.001%"
	}
	return strings.Replace(trim(three(100*ratio)+" %"), " ", "", 1)
}

// Significant returns x with three significant digits, without a unit and an exponent.
func Significant(x float64) string {
	const most = 9 // decimals
	if math.IsNaN(x) || math.IsInf(x, 0) || math.Abs(x) < 0.5*math.Pow10(-most) {
		return "0"
	}
	return digits3(x, most)
}

// leastShown is the least amount or rate that is not shown as 0.
const leastShown = 1e-6

// scaled returns x with three significant digits and a 1000-based prefix.
func scaled(x float64, unit string) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "n/a"
	}
	if math.Abs(x) < leastShown {
		return "0 " + unit
	}
	prefixes := []string{"", "k", "M", "G", "T", "P", "E"}
	n := 0
	for math.Abs(x) >= 999.5 && n < len(prefixes)-1 {
		x, n = x/1000, n+1
	}
	if n == 0 && x == math.Trunc(x) {
		return strconv.FormatFloat(x, 'f', -1, 64) + " " + unit
	}
	return three(x) + " " + prefixes[n] + unit
}

// three returns x with three significant digits and no exponent.
func three(x float64) string { return digits3(x, 12) }

// digits3 formats like three, with at most the given number of decimals.
func digits3(x float64, most int) string {
	if x == 0 {
		return "0"
	}
	e := int(math.Floor(math.Log10(math.Abs(x))))
	if math.Abs(x) >= 9.995*math.Pow10(e) { // rounds up to one digit more
		e++
	}
	return strconv.FormatFloat(x, 'f', min(max(2-e, 0), most), 64)
}

// trim removes zeros at the end of the decimals in "1.20 ms".
func trim(text string) string {
	number, unit, _ := strings.Cut(text, " ")
	if strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	return number + " " + unit
}
