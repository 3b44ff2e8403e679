// Package web holds the scripts and styles of weir's pages: If weir was built without Node, dist is
// empty; pages then show their plots as static pictures, with a note. pages then show their plots
// as pictures that stand still, and say so.
package web

import "embed"

//go:embed all:dist
var dist embed.FS

//go:embed src/theme.css
var theme string

// Theme returns the style sheet with the colors that all pages and their
// charts use, light, dark and on paper. It is there in every build.
func Theme() string { return theme }

// Missing is the notice that a page shows if the bundle is missing.
const Missing = "This weir was built without the scripts of its pages (make web builds them; it needs Node), " +
	"so charts cannot be zoomed or pointed at."

// Bundle returns the text of a file that `make web` made: report.js,
// live.js, transfer.js, or one of their style sheets (.css). It is false where
// the program was built without it.
func Bundle(name string) (string, bool) {
	b, err := dist.ReadFile("dist/" + name)
	if err != nil || len(b) == 0 {
		return "", false
	}
	return string(b), true
}
