package screen

import (
	"os"
	"strings"
	"unicode/utf8"
)

// Escapes of styles.
const (
	Faint  = "\x1b[2m"
	Red    = "\x1b[31m"
	Cyan   = "\x1b[36m"
	Normal = "\x1b[0m"
)

// cells is how many columns text takes: each letter one, an escape none.
func cells(text string) int {
	n := 0
	for len(text) > 0 {
		if e := escape(text); e > 0 {
			text = text[e:]
			continue
		}
		_, size := utf8.DecodeRuneInString(text)
		text = text[size:]
		n++
	}
	return n
}

// cut returns as much of the beginning of text as fits into so many columns.
func cut(text string, columns int) string {
	styled := false
	for i, n := 0, 0; i < len(text); {
		if e := escape(text[i:]); e > 0 {
			i += e
			styled = true
			continue
		}
		if n >= columns {
			if text = text[:i]; styled {
				text += Normal
			}
			return text
		}
		_, size := utf8.DecodeRuneInString(text[i:])
		i, n = i+size, n+1
	}
	return text
}

// escape is how long the escape of a style is that text begins with, 0 if there is none.
func escape(text string) int {
	if !strings.HasPrefix(text, "\x1b[") {
		return 0
	}
	return strings.IndexByte(text, 'm') + 1
}

// Blocks tells whether the user's terminal shows the block characters of
// Unicode: the locale says so, and it is not the console of Linux.
func Blocks() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(os.Getenv(name)); v != "" {
			return (strings.HasSuffix(v, "utf-8") || strings.HasSuffix(v, "utf8")) && os.Getenv("TERM") != "linux"
		}
	}
	return false
}
