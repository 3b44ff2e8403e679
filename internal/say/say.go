// Package say formats texts for people: counted things, capitals, lines.
package say

import (
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Plural counts things: "1 step", "3 steps", "2 retries", "2 processes".
func Plural(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "y"):
		return strconv.Itoa(n) + " " + strings.TrimSuffix(what, "y") + "ies"
	case strings.HasSuffix(what, "s"):
		return strconv.Itoa(n) + " " + what + "es"
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// Either returns one if n is 1, otherwise many.
func Either(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Times returns a number of times in words: "once", "3 times".
func Times(n int64) string {
	if n == 1 {
		return "once"
	}
	return strconv.FormatInt(n, 10) + " times"
}

// List joins things: "a", "a and b", "a, b and c".
func List(all []string) string {
	if n := len(all); n > 2 {
		all = []string{strings.Join(all[:n-1], ", "), all[n-1]}
	}
	return strings.Join(all, " and ")
}

// Capital changes the first letter of an ASCII word to upper case.
func Capital(s string) string {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return string(s[0]-'a'+'A') + s[1:]
}

// Wrap breaks s into lines of at most width runes, at spaces; a longer word has
// a line of its own. There is one line at least.
func Wrap(s string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		switch {
		case line == "":
			line = word
		case len([]rune(line))+1+len([]rune(word)) > width:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// UTC returns a time as people read it.
func UTC(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// Plain replaces characters that could move a terminal's cursor or turn text around.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		if !unicode.IsPrint(r) || unicode.Is(unicode.Bidi_Control, r) {
			return '?'
		}
		return r
	}, s)
}

// longest is the number of bytes of a text from outside that is shown.
const longest = 1000

// Bounded makes a text from outside fit to be shown: plain, and not too long.
func Bounded(s string) string {
	s = Plain(s)
	if len(s) <= longest {
		return s
	}
	cut := longest
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut] + "..."
}
