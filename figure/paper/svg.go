package paper

import (
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"

	"codeberg.org/go-pdf/fpdf"

	"weir/figure"
)

// An svgCanvas writes SVG 1.1 that needs nothing else: the glyphs it uses are
// in it. Programs that ignore embedded fonts take one with the same widths.
type svgCanvas struct {
	d    *Drawer
	f    *figure.Figure
	body strings.Builder
	used [2]strings.Builder // letters of the regular and the bold font
}

func newSVG(d *Drawer, f *figure.Figure) *svgCanvas { return &svgCanvas{d: d, f: f} }

// decimal writes x with two decimals at most.
func decimal(x float64) string {
	s := strconv.FormatFloat(x, 'f', 2, 64)
	s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	if s == "-0" {
		return "0"
	}
	return s
}

func (c rgb) hex() string { return fmt.Sprintf("#%02x%02x%02x", c.r, c.g, c.b) }

func (s *svgCanvas) add(format string, args ...any) { _, _ = fmt.Fprintf(&s.body, format, args...) }

func (s *svgCanvas) path(points []point) {
	s.body.WriteString(`<path d="`)
	for i, p := range points {
		verb := "L"
		if i == 0 {
			verb = "M"
		}
		s.body.WriteString(verb + decimal(p.x) + " " + decimal(p.y))
	}
}

func (s *svgCanvas) stroke(points []point, p pen) {
	s.path(points)
	s.add(`" fill="none" stroke="%s" stroke-width="%s" stroke-linejoin="round"`, p.color.hex(), decimal(p.width))
	if len(p.dash) > 0 {
		var d []string
		for _, x := range p.dash {
			d = append(d, decimal(x))
		}
		s.add(` stroke-dasharray="%s"`, strings.Join(d, " "))
	}
	s.body.WriteString("/>\n")
}

func (s *svgCanvas) fill(points []point, c rgb) {
	s.path(points)
	s.add("Z\" fill=\"%s\"/>\n", c.hex())
}

func (s *svgCanvas) text(at point, text string, l letters) {
	weight, which := "", 0
	if l.bold {
		weight, which = ` font-weight="bold"`, 1
	}
	s.used[which].WriteString(text)
	turn := ""
	if l.turned {
		turn = fmt.Sprintf(` transform="rotate(-90 %s %s)"`, decimal(at.x), decimal(at.y))
	}
	s.add(`<text x="%s" y="%s" font-size="%s"%s fill="%s"%s>%s</text>`+"\n", decimal(at.x), decimal(at.y), decimal(l.size), weight, l.color.hex(), turn, escape(text))
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // memory
	return b.String()
}

func (s *svgCanvas) write(w io.Writer) error {
	size := s.d.Size
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
		escape(s.d.fonts.plain(s.f.Title)), escape(s.d.fonts.plain(s.f.Desc)), s.face(0), s.face(1), family, s.body.String())
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
