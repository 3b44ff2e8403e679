package draw

import (
	"fmt"
	"strings"

	"codeberg.org/go-fonts/liberation/liberationsansbold"
	"codeberg.org/go-fonts/liberation/liberationsansregular"
	"codeberg.org/go-pdf/fpdf"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
	"gonum.org/v1/plot/font"

	"weir/internal/say"
)

// family is the name of the font in files.
const family = "Liberation Sans"

// fonts are the two fonts that texts are set in.
type fonts struct{ regular, bold cut }

// A cut is a font without the glyphs that are not needed here: it has a fifteenth of the size of
// the whole font, which every file would have to contain otherwise.
type cut struct {
	bytes []byte
	font  *opentype.Font
}

func newFonts() (f fonts, err error) {
	if f.regular, err = newCut(liberationsansregular.TTF); err == nil {
		f.bold, err = newCut(liberationsansbold.TTF)
	}
	return f, err
}

// alphabet returns the supported characters: Latin, Greek, and the characters of units and
// sentences.
func alphabet() string {
	var s strings.Builder
	for _, span := range [][2]rune{{' ', '~'}, {0xa1, 0x17f}, {0x391, 0x3c9}} {
		for r := span[0]; r <= span[1]; r++ {
			s.WriteRune(r)
		}
	}
	return s.String() + "–—‘’“”•…−≤≥×"
}

func newCut(whole []byte) (cut, error) {
	c := cut{bytes: fpdf.UTF8CutFont(whole, alphabet())}
	var err error
	if c.font, err = opentype.Parse(c.bytes); err != nil {
		err = fmt.Errorf("font: %w", err)
	}
	return c, err
}

func (f *fonts) of(l letters) *cut {
	if l.bold {
		return &f.bold
	}
	return &f.regular
}

func (c *cut) face(size float64) font.Face {
	return font.Face{Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: font.Length(size)}, Face: c.font}
}

// width returns the width of s, in points.
func (f *fonts) width(s string, l letters) float64 {
	face := f.of(l).face(l.size)
	return face.Width(s).Points()
}

// plain converts s to a line of characters that the font has.
func (f *fonts) plain(s string) string {
	var buf sfnt.Buffer
	return strings.Map(func(r rune) rune {
		if i, err := f.regular.font.GlyphIndex(&buf, r); err != nil || i == 0 {
			return '?'
		}
		return r
	}, strings.TrimSpace(say.Plain(s)))
}

// fit shortens s until its width is at most most.
func (f *fonts) fit(s string, l letters, most float64) string {
	if f.width(s, l) <= most {
		return s
	}
	runes := []rune(s)
	low, high := 0, len(runes)
	for low < high { // the number of characters that fit
		if n := (low + high + 1) / 2; f.width(string(runes[:n])+"…", l) <= most {
			low = n
		} else {
			high = n - 1
		}
	}
	return strings.TrimRight(string(runes[:low]), " ") + "…"
}
