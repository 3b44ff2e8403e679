package monitor

import (
	"bytes"
	"math"
)

// cutLine returns the first line of b without its end, and what follows.
func cutLine(b []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(b, []byte{'\n'})
	return line, rest
}

// cutField returns the first word of a line and what follows it.
func cutField(line []byte) (field, rest []byte) {
	i := 0
	for i < len(line) && isSpace(line[i]) {
		i++
	}
	j := i
	for j < len(line) && !isSpace(line[j]) {
		j++
	}
	return line[i:j], line[j:]
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }

// skipFields returns what follows the first n words of a line.
func skipFields(line []byte, n int) []byte {
	for range n {
		_, line = cutField(line)
	}
	return line
}

// cutNumber returns the first word of a line as a number; ok tells whether it
// is a whole number from 0 to the largest int64.
func cutNumber(line []byte) (n int64, rest []byte, ok bool) {
	field, rest := cutField(line)
	n, ok = number(field)
	return n, rest, ok
}

// number reads a whole number without sign. Counters beyond int64, which no
// machine reaches honestly, are refused.
func number(field []byte) (int64, bool) {
	if len(field) == 0 {
		return 0, false
	}
	var n int64
	for _, c := range field {
		if c < '0' || c > '9' || n > (math.MaxInt64-9)/10 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// numbers reads as many numbers as there are places to put them and returns
// how many it found.
func numbers(line []byte, to ...*int64) int {
	for i, p := range to {
		n, rest, ok := cutNumber(line)
		if !ok {
			return i
		}
		*p, line = n, rest
	}
	return len(to)
}
