// Package draw draws figures: as SVG, PNG and PDF files for papers and wiki pages, with a
// sans-serif font that is embedded in the file, and as SVG that is a part of a web page. A sheet
// computes the layout of a figure, and each format has a canvas that draws it. The same figure
// gives the same bytes: the file does not depend on the time or the machine.
//
// A figure must remain readable in a grey print, so lines differ in their dashes and markers as
// well as in their colors, and the legend has a place of its own outside of the data.
package draw

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"weir/loadtest/report/figure"
)

// Formats returns the formats of a Drawer, which are also the extensions of their files.
func Formats() []string { return []string{"svg", "png", "pdf"} }

// A Size is the size of a drawing in points, 1/72 of an inch.
type Size struct{ Width, Height float64 }

const (
	millimeter = 72 / 25.4
	// Minimum size of an axis with its labels.
	leastSide = 40 * millimeter
	mostSide  = 1000 * millimeter
)

// ParseSize reads "column" (one column of a paper, 86 x 62 mm), "wide" (two
// columns, 178 x 80 mm) or WIDTHxHEIGHT in millimeters.
func ParseSize(text string) (Size, error) {
	switch text {
	case "column":
		return Size{86 * millimeter, 62 * millimeter}, nil
	case "wide":
		return Size{178 * millimeter, 80 * millimeter}, nil
	}
	w, h, ok := strings.Cut(strings.TrimSuffix(text, "mm"), "x")
	width, err := strconv.ParseFloat(strings.TrimSuffix(w, "mm"), 64)
	height, err2 := strconv.ParseFloat(h, 64)
	if !ok || err != nil || err2 != nil {
		return Size{}, fmt.Errorf("size %q: use column, wide, or millimeters as in 120x80", text)
	}
	s := Size{width * millimeter, height * millimeter}
	if !(min(s.Width, s.Height) >= leastSide && max(s.Width, s.Height) <= mostSide) {
		return Size{}, fmt.Errorf("size %q: each side must have from 40 to 1000 mm", text)
	}
	return s, nil
}

// Options control the drawing of figures.
type Options struct {
	Size  Size
	DPI   int  // of PNG, pixels per inch
	Title bool // above the figure; a caption below it usually makes it redundant
}

// Defaults are one column of a paper, and 300 pixels per inch.
func Defaults() Options {
	size, _ := ParseSize("column") // known
	return Options{Size: size, DPI: 300}
}

// A Drawer draws figures. It may be used by several goroutines at once.
type Drawer struct {
	Options
	fonts fonts
	page  bool // SVG that is a part of a page
}

// New returns a Drawer. It returns an error if the resolution or the size is too small or too
// large.
func New(o Options) (*Drawer, error) {
	if o.DPI < 50 || o.DPI > 1200 {
		return nil, fmt.Errorf("%d dpi: use 50 to 1200", o.DPI)
	}
	if !(min(o.Size.Width, o.Size.Height) >= leastSide*0.999 && max(o.Size.Width, o.Size.Height) <= mostSide*1.001) {
		return nil, fmt.Errorf("a figure of %.0f x %.0f mm: each side must have from 40 to 1000 mm", o.Size.Width/millimeter,
			o.Size.Height/millimeter)
	}
	const mostPixels = 100e6
	if scale := float64(o.DPI) / 72; o.Size.Width*o.Size.Height*scale*scale > mostPixels {
		return nil, fmt.Errorf("a figure of %.0f x %.0f mm at %d dpi has more than 100 million pixels", o.Size.Width/millimeter,
			o.Size.Height/millimeter, o.DPI)
	}
	f, err := newFonts()
	return &Drawer{Options: o, fonts: f}, err
}

// Draw writes f to w in one of the Formats.
func (d *Drawer) Draw(w io.Writer, f *figure.Figure, format string) error {
	var c canvas
	switch format {
	case "svg":
		c = newSVG(d, f)
	case "png":
		c = newPNG(d)
	case "pdf":
		c = newPDF(d, f)
	default:
		return fmt.Errorf("format %q: use %s", format, strings.Join(Formats(), ", "))
	}
	newSheet(d, c, f).draw()
	return c.write(w)
}

// A point is a position on the sheet, in points from its upper left corner.
type point struct{ x, y float64 }

// A canvas draws shapes and texts; its units are points, and y grows downwards.
type canvas interface {
	stroke(points []point, p pen)
	// note is the note of the filled or marked shape, if the canvas can show notes.
	fill(points []point, c tint, note string)
	// mark draws one of the markers around a position; number 0 is a disc.
	mark(shape int, at point, r float64, c tint, note string)
	// text begins at the left end of its baseline; turned text runs upwards.
	text(at point, s string, l letters)
	write(w io.Writer) error
}

// A tint is a color: on paper its components, on a page a class of the page's style sheet, which
// contains colors for light and dark screens.
type tint struct {
	r, g, b uint8
	class   string
}

type pen struct {
	color tint
	width float64
	dash  []float64
}

type letters struct {
	size   float64
	bold   bool
	turned bool
	color  tint
}
