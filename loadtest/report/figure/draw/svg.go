package draw

import (
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"codeberg.org/go-pdf/fpdf"

	"weir/loadtest/report/figure"
)

// An svgCanvas writes SVG 1.1. A file needs no other files: it contains the glyphs that it uses,
// and programs that ignore embedded fonts use a font with the same widths. A part of a page has its
// colors and its font from the style sheet of the page, and shows notes.
type svgCanvas struct {
	d     *Drawer
	f     *figure.Figure
	alt   string // the alternative text
	body  strings.Builder
	used  [2]strings.Builder          // letters of the regular and the bold font
	cells map[string]*strings.Builder // of a heat map on a page, by class: one path each
	look  string                      // of the strokes in lines
	lines strings.Builder             // one path, since they look alike
}

func newSVG(d *Drawer, f *figure.Figure) *svgCanvas {
	return &svgCanvas{d: d, f: f, alt: f.Alt(), cells: map[string]*strings.Builder{}}
}

// decimal writes x with two decimals at most.
func decimal(x float64) string {
	s := strconv.FormatFloat(x, 'f', 2, 64)
	s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	if s == "-0" {
		return "0"
	}
	return s
}

func (c tint) hex() string { return fmt.Sprintf("#%02x%02x%02x", c.r, c.g, c.b) }

func (s *svgCanvas) add(format string, args ...any) { _, _ = fmt.Fprintf(&s.body, format, args...) }

// path returns the data of a path through points.
func (s *svgCanvas) path(points []point) string {
	if s.d.page {
		return relative(points)
	}
	var b strings.Builder
	for i, p := range points {
		verb := "L"
		if i == 0 {
			verb = "M"
		}
		b.WriteString(verb + decimal(p.x) + " " + decimal(p.y))
	}
	return b.String()
}

// relative returns a path in tenths of a point, each position relative to the previous position,
// which needs half of the characters of absolute positions. Steps are computed from rounded
// positions, so that errors do not add up.
func relative(points []point) string {
	var out []byte
	number := func(n int, space bool) {
		if n >= 0 && space {
			out = append(out, ' ')
		}
		if n < 0 {
			out = append(out, '-')
			n = -n
		}
		if n >= 10 || n == 0 {
			out = strconv.AppendInt(out, int64(n/10), 10)
		}
		if n%10 != 0 {
			out = append(out, '.', byte('0'+n%10))
		}
	}
	lastX, lastY := 0, 0
	for i, p := range points {
		x, y := int(math.Round(10*p.x)), int(math.Round(10*p.y))
		switch i {
		case 0:
			out = append(out, 'M')
		case 1:
			out = append(out, 'l')
		}
		number(x-lastX, i > 1)
		number(y-lastY, true)
		lastX, lastY = x, y
	}
	return string(out)
}

func (s *svgCanvas) stroke(points []point, p pen) {
	look := fmt.Sprintf(`fill="none" stroke="%s" stroke-linejoin="round"`, p.color.hex())
	if s.d.page {
		look = fmt.Sprintf(`class="%s"`, strings.TrimSpace("s "+p.color.class))
	}
	look += fmt.Sprintf(` stroke-width="%s"`, decimal(p.width))
	if len(p.dash) > 0 {
		var d []string
		for _, x := range p.dash {
			d = append(d, decimal(x))
		}
		look += fmt.Sprintf(` stroke-dasharray="%s"`, strings.Join(d, " "))
	}
	if look != s.look {
		s.flush()
		s.look = look
	}
	s.lines.WriteString(s.path(points))
}

func (s *svgCanvas) fill(points []point, c tint, note string) {
	if s.d.page && strings.HasPrefix(c.class, "h") {
		if s.look != "" {
			s.flush()
		}
		if s.cells[c.class] == nil {
			s.cells[c.class] = &strings.Builder{}
		}
		s.cells[c.class].WriteString(s.path(points) + "z")
		return
	}
	s.shape(fmt.Sprintf(`path d="%sz"`, s.path(points)), "path", c, note)
}

func (s *svgCanvas) mark(shape int, at point, r float64, c tint, note string) {
	if shape == 0 && s.d.page { // half as long as its outline
		s.shape(fmt.Sprintf(`circle cx="%.1f" cy="%.1f" r="%s"`, at.x, at.y, decimal(r)), "circle", c, note)
		return
	}
	s.fill(outline(shape, at, r), c, note)
}

// shape writes an element that is filled.
func (s *svgCanvas) shape(element, name string, c tint, note string) {
	s.flush()
	switch {
	case !s.d.page:
		s.add("<%s fill=\"%s\"/>\n", element, c.hex())
	case note != "":
		s.add("<%s class=\"%s\"><title>%s</title></%s>\n", element, strings.TrimSpace("f "+c.class), escape(s.d.fonts.plain(note)), name)
	default:
		s.add("<%s class=\"%s\"/>\n", element, strings.TrimSpace("f "+c.class))
	}
}

// flush writes the lines, or the cells of a heat map, that lie below the next shape.
func (s *svgCanvas) flush() {
	if s.look != "" {
		s.add("<path %s d=\"%s\"/>\n", s.look, s.lines.String())
		s.look = ""
		s.lines.Reset()
	}
	for _, class := range slices.Sorted(maps.Keys(s.cells)) {
		s.add("<path class=\"f %s\" d=\"%s\"/>\n", class, s.cells[class])
	}
	clear(s.cells)
}

func (s *svgCanvas) text(at point, text string, l letters) {
	s.flush()
	look, which := "", 0
	if !s.d.page || l.size != tickSize {
		look = fmt.Sprintf(` font-size="%s"`, decimal(l.size))
	}
	if l.bold {
		look, which = look+` font-weight="bold"`, 1
	}
	s.used[which].WriteString(text)
	if s.d.page { // for any installed font
		look += fmt.Sprintf(` textLength="%.1f"`, s.d.fonts.width(text, l))
	} else {
		look += fmt.Sprintf(` fill="%s"`, l.color.hex())
	}
	if s.d.page && l.color.class != "" {
		look += fmt.Sprintf(` class="%s"`, l.color.class)
	}
	if l.turned {
		look += fmt.Sprintf(` transform="rotate(-90 %s %s)"`, decimal(at.x), decimal(at.y))
	}
	s.add(`<text x="%s" y="%s"%s>%s</text>`+"\n", decimal(at.x), decimal(at.y), look, escape(text))
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // memory
	return b.String()
}

func (s *svgCanvas) write(w io.Writer) error {
	size := s.d.Size
	title, desc := escape(s.d.fonts.plain(s.f.Title)), escape(s.d.fonts.plain(s.alt))
	s.flush()
	if s.d.page {
		_, err := fmt.Fprintf(w, `<svg viewBox="0 0 %s %s" font-size="%g" role="img" aria-labelledby="%s-t %[4]s-d">`+
			`<title id="%[4]s-t">%s</title><desc id="%[4]s-d">%[6]s</desc>
%[7]s</svg>`, decimal(size.Width), decimal(size.Height), tickSize, escape(s.f.ID), title, desc, s.body.String())
		return err
	}
	_, err := fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="%smm" height="%smm" viewBox="0 0 %s %s" role="img">
<title>%s</title>
<desc>%s</desc>
<style>
%s%stext { font-family: "%s", Arial, Helvetica, sans-serif }
</style>
<rect width="100%%" height="100%%" fill="#ffffff"/>
%s</svg>
`, decimal(size.Width/millimeter), decimal(size.Height/millimeter), decimal(size.Width), decimal(size.Height),
		title, desc, s.face(0), s.face(1), family, s.body.String())
	return err
}

// face embeds the glyphs that were used.
func (s *svgCanvas) face(which int) string {
	used := s.used[which].String()
	if used == "" {
		return ""
	}
	c, weight := &s.d.fonts.regular, "normal"
	if which == 1 {
		c, weight = &s.d.fonts.bold, "bold"
	}
	return fmt.Sprintf("@font-face { font-family: %q; font-weight: %s; src: url(data:font/ttf;base64,%s) format(\"truetype\") }\n",
		family, weight, base64.StdEncoding.EncodeToString(fpdf.UTF8CutFont(c.bytes, used)))
}
