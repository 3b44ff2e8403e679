package main

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	landmark = regexp.MustCompile(`<h[1-6][^>]*>.*?</h[1-6]>|<pre>|</?table>|<th\b[^>]*></th>|<th\b`)
	markup   = regexp.MustCompile(`<[^>]*>`)
)

// reachable makes regions of code and tables, which may be wider than the screen, so that they scroll
// with the keyboard. A region is named after the heading above it. Header cells get a scope; an empty one
// becomes a data cell, since it heads nothing.
func reachable(body string) string {
	heading, used := "", map[string]int{}
	region := func(kind string) string {
		name := kind + ": " + heading
		if used[name]++; used[name] > 1 {
			name += fmt.Sprintf(" (%d)", used[name])
		}
		return fmt.Sprintf(` tabindex="0" role="region" aria-label="%s"`, name)
	}
	return landmark.ReplaceAllStringFunc(body, func(tag string) string {
		switch {
		case tag == "<pre>":
			return "<pre" + region("Code") + ">"
		case tag == "<table>":
			return `<div class="wide"` + region("Table") + "><table>"
		case tag == "</table>":
			return "</table></div>"
		case strings.HasSuffix(tag, "></th>"):
			return "<td></td>"
		case tag == "<th":
			return `<th scope="col"`
		}
		heading = markup.ReplaceAllString(tag, "")
		return tag
	})
}
