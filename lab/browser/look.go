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

// Picture writes a picture of the page, NAME.png, to the folder that WEIR_PICTURES names, if it does.
func (p *Page) Picture(name string) {
	p.t.Helper()
	if dir := os.Getenv("WEIR_PICTURES"); dir != "" {
		p.Screenshot(dir + "/" + name + ".png")
	}
}
