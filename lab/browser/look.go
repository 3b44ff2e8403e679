package browser

import (
	"os"
	"strconv"
	"strings"
)

// Silent fails the test if the page has logged errors, except errors that contain one of these
// texts.
func (p *Page) Silent(but ...string) {
	p.t.Helper()
	for _, e := range p.Errors() {
		expected := false
		for _, b := range but {
			expected = expected || strings.Contains(e, b)
		}
		if !expected {
			p.t.Errorf("the page complains: %s", e)
		}
	}
}

// Fits fails the test if the page is wider than its window, in pixels, and stays so: right after the window was made
// another one, or a view was asked for, it may be.
func (p *Page) Fits(width int) {
	p.t.Helper()
	if p.waitFor(`document.documentElement.scrollWidth <= `+strconv.Itoa(width), patience/10) {
		return
	}
	var got int
	if p.Eval(`document.documentElement.scrollWidth`, &got); got > width {
		p.t.Errorf("in a window of %d the page is %d wide", width, got)
	}
}

// Headings fails the test unless the page has one visible h1, and each header cell of its tables has a
// text and a scope.
func (p *Page) Headings() {
	p.t.Helper()
	var titles, cells []string
	p.Eval(`[...document.querySelectorAll("h1")].filter((h) => h.getClientRects().length > 0).map((h) => h.textContent.trim())`, &titles)
	if len(titles) != 1 || titles[0] == "" {
		p.t.Errorf("the visible first headings are %q", titles)
	}
	p.Eval(`[...document.querySelectorAll("th")].filter((th) => !th.textContent.trim() || !th.scope)
		.map((th) => th.closest("table").textContent.slice(0, 200))`, &cells)
	if len(cells) > 0 {
		p.t.Errorf("header cells without a text or scope, in tables such as %q", cells)
	}
}

// Picture writes a picture of the page, NAME.png, to the folder that WEIR_PICTURES names, if it does.
func (p *Page) Picture(name string) {
	p.t.Helper()
	if dir := os.Getenv("WEIR_PICTURES"); dir != "" {
		p.Screenshot(dir + "/" + name + ".png")
	}
}
