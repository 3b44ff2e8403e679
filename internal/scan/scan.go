// Package scan reads the lines of JSON that weir itself writes: without spaces, keys in their usual
// order, no escapes in strings. It is many times faster than a decoder that takes all JSON. It
// refuses any other input, and the caller then decodes the same line with encoding/json, which
// returns its value or an error.
package scan

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"
	"unsafe"
)

// A Line is one line of JSON and the position up to which it is read. Once something unusual is met
// it stays refused: every further call returns a zero value. The zero value is an empty line. It is
// not safe for concurrent use.
type Line struct {
	b       []byte
	i       int
	first   bool // nothing has been read yet of the innermost object or array
	refused bool
	names   map[string]string
	Scratch any // memory that Values use again
}

// Reset begins with another line. The strings that were returned stay valid.
func (l *Line) Reset(b []byte) { l.b, l.i, l.first, l.refused = b, 0, false, false }

// Whole reports whether all of the line was read and nothing was refused.
func (l *Line) Whole() bool { return !l.refused && l.i == len(l.b) }

// Refuse gives the line up.
func (l *Line) Refuse() { l.refused = true }

// take reads one byte.
func (l *Line) take(c byte) {
	if l.i >= len(l.b) || l.b[l.i] != c {
		l.refused = true
		return
	}
	l.i++
}

// Open reads the begin of an object.
func (l *Line) Open() { l.take('{'); l.first = true }

// Close reads the end of an object.
func (l *Line) Close() { l.take('}'); l.first = false }

// Key reads the key k if it is the next key. If another key follows, nothing is read.
func (l *Line) Key(k string) bool {
	i := l.i
	if !l.first {
		if i >= len(l.b) || l.b[i] != ',' {
			return false
		}
		i++
	}
	end := i + len(k) + len(`"":`)
	if l.refused || end > len(l.b) || l.b[i] != '"' || l.b[end-2] != '"' || l.b[end-1] != ':' || string(l.b[i+1:end-2]) != k {
		return false
	}
	l.i, l.first = end, false
	return true
}

// AnyKey reads the next key of any name. It returns "" if the object ends here.
func (l *Line) AnyKey() string {
	if l.refused || l.i < len(l.b) && l.b[l.i] == '}' {
		return ""
	}
	if !l.first {
		l.take(',')
	}
	l.first = false
	k := l.Text()
	l.take(':')
	if k == "" {
		l.refused = true
	}
	return k
}

// Array reads the begin of an array.
func (l *Line) Array() { l.take('['); l.first = true }

// Next reports whether one more element follows in an array; if not, its end is read.
func (l *Line) Next() bool {
	if l.refused || l.i >= len(l.b) {
		l.refused = true
		return false
	}
	if l.b[l.i] == ']' {
		l.i++
		l.first = false
		return false
	}
	if !l.first {
		l.take(',')
	}
	l.first = false
	return !l.refused
}

// digits reads the whole part of a number, of up to 18 digits, which cannot overflow.
func (l *Line) digits() (n int64, count int) {
	from := l.i
	n, count = l.moreDigits(0)
	if count > 1 && l.b[from] == '0' {
		count = 0 // not JSON
	}
	return n, count
}

// moreDigits reads count digits, which follow the digits of n.
func (l *Line) moreDigits(n int64) (all int64, count int) {
	i := l.i
	for i < len(l.b) && l.b[i]-'0' <= 9 {
		n = n*10 + int64(l.b[i]-'0')
		i++
	}
	count = i - l.i
	l.i = i
	return n, count
}

// Int reads a whole number of at most 18 digits.
func (l *Line) Int() int64 {
	sign := int64(1)
	if l.i < len(l.b) && l.b[l.i] == '-' {
		sign = -1
		l.i++
	}
	n, count := l.digits()
	if l.refused || count == 0 || count > 18 || l.i < len(l.b) && (l.b[l.i] == '.' || l.b[l.i]|0x20 == 'e') {
		l.refused = true
		return 0
	}
	return sign * n
}

// Float reads a number. A number of at most 15 digits is an integer divided by a power of ten, and
// a float64 represents each of the two exactly: their quotient is rounded once, as it should be (W.
// D. Clinger, How to read floating point numbers accurately, 1990).
func (l *Line) Float() float64 {
	from := l.i
	n, count := l.digits()
	if count > 0 && count <= 15 {
		if !l.inNumber() {
			return float64(n)
		}
		if x, ok := l.fraction(n, count); ok {
			return x
		}
	}
	for l.inNumber() {
		l.i++
	}
	text := l.b[from:l.i]
	if l.refused || !isNumber(text) {
		l.refused = true
		return 0
	}
	x, err := strconv.ParseFloat(unsafe.String(&text[0], len(text)), 64) // does not keep the text
	if err != nil {
		l.refused = true
	}
	return x
}

// Skip passes over a number that is far from the largest a float64 can hold.
func (l *Line) Skip() {
	from := l.i
	for l.inNumber() {
		l.i++
	}
	text := l.b[from:l.i]
	e := bytes.IndexAny(text, "eE")
	if !isNumber(text) || len(text) > 40 || e >= 0 && len(text)-e > len("e-00") {
		l.refused = true
	}
}

func (l *Line) inNumber() bool { return l.i < len(l.b) && inNumber(l.b[l.i]) }

// fraction reads the fraction after whole, a number with the given count of digits, if all digits
// together are at most 15.
func (l *Line) fraction(whole int64, count int) (x float64, ok bool) {
	if l.b[l.i] != '.' {
		return 0, false
	}
	l.i++
	all, places := l.moreDigits(whole)
	return float64(all) / math.Pow10(places), places > 0 && count+places <= 15 && !l.inNumber()
}

func inNumber(c byte) bool {
	return c-'0' <= 9 || c == '.' || c == '-' || c == '+' || c|0x20 == 'e'
}

// isNumber reports whether b is a number as JSON writes it: ParseFloat takes more.
func isNumber(b []byte) bool {
	i := 0
	run := func() bool {
		from := i
		for i < len(b) && b[i]-'0' <= 9 {
			i++
		}
		return i > from
	}
	if i < len(b) && b[i] == '-' {
		i++
	}
	whole := i
	if !run() || b[whole] == '0' && i > whole+1 {
		return false
	}
	if i < len(b) && b[i] == '.' {
		i++
		if !run() {
			return false
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !run() {
			return false
		}
	}
	return i == len(b)
}

// Bool reads true or false.
func (l *Line) Bool() bool {
	rest := l.b[l.i:]
	switch {
	case len(rest) >= 4 && string(rest[:4]) == "true":
		l.i += 4
		return true
	case len(rest) >= 5 && string(rest[:5]) == "false":
		l.i += 5
		return false
	}
	l.refused = true
	return false
}

// Bytes reads a string of plain ASCII without escapes. It is a part of the line.
func (l *Line) Bytes() []byte {
	if l.refused || l.i >= len(l.b) || l.b[l.i] != '"' {
		l.refused = true
		return nil
	}
	for i := l.i + 1 + plain(l.b[l.i+1:]); i < len(l.b); i++ {
		c := l.b[i]
		if c == '"' {
			text := l.b[l.i+1 : i]
			l.i = i + 1
			return text
		}
		if c == '\\' || c < ' ' || c >= 0x7f {
			break
		}
	}
	l.refused = true
	return nil
}

// plain returns the number of b's first bytes, a multiple of eight, that are from ' ' to '~' and
// neither quotes nor backslashes. Eight are examined together (H. S. Warren, Hacker's Delight, 2nd
// edition, section 6-1).
func plain(b []byte) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		quote, slash := x^('"'*ones), x^('\\'*ones)
		if (x|(x+ones)|(x-' '*ones)|(quote-ones)|(slash-ones))&tops != 0 {
			break
		}
	}
	return i
}

// most is the number of strings that are cached: more are not names but text.
const most = 4096

// Text reads a string as Bytes does. Names that come again and again share
// their memory.
func (l *Line) Text() string {
	b := l.Bytes()
	if s, ok := l.names[string(b)]; ok || len(b) == 0 {
		return s
	}
	if l.names == nil || len(l.names) >= most {
		l.names = map[string]string{}
	}
	s := string(b)
	l.names[s] = s
	return s
}

// Object reads up to the first closing brace and returns an object with its braces, if it has no
// objects within and no braces in its strings. The caller detects objects or braces within when it
// parses the result.
func (l *Line) Object() []byte {
	from := l.i
	l.take('{')
	end := bytes.IndexByte(l.b[min(l.i, len(l.b)):], '}')
	if l.refused || end < 0 {
		l.refused = true
		return nil
	}
	l.i += end + 1
	return l.b[from:l.i]
}
