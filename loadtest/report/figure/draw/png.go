package draw

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image/color"
	"image/png"
	"io"
	"math"

	"golang.org/x/image/font"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
)

// A pngCanvas draws pixels with gonum's canvas, whose y grows upwards.
type pngCanvas struct {
	d   *Drawer
	img *vgimg.Canvas
}

func newPNG(d *Drawer) *pngCanvas {
	return &pngCanvas{d, vgimg.NewWith(vgimg.UseWH(vg.Length(d.Size.Width), vg.Length(d.Size.Height)), vgimg.UseDPI(d.DPI),
		vgimg.UseBackgroundColor(color.White))}
}

func (p *pngCanvas) path(points []point) vg.Path {
	var path vg.Path
	for i, at := range points {
		to := vg.Point{X: vg.Length(at.x), Y: vg.Length(p.d.Size.Height - at.y)}
		if i == 0 {
			path.Move(to)
		} else {
			path.Line(to)
		}
	}
	return path
}

func (c tint) color() color.Color { return color.RGBA{c.r, c.g, c.b, 255} }

func (p *pngCanvas) stroke(points []point, with pen) {
	dash := make([]vg.Length, len(with.dash))
	for i, x := range with.dash {
		dash[i] = vg.Length(x)
	}
	p.img.SetColor(with.color.color())
	p.img.SetLineWidth(vg.Length(with.width))
	p.img.SetLineDash(dash, 0)
	p.img.Stroke(p.path(points))
}

func (p *pngCanvas) fill(points []point, c tint, _ string) {
	p.img.SetColor(c.color())
	path := p.path(points)
	path.Close()
	p.img.Fill(path)
}

func (p *pngCanvas) mark(shape int, at point, r float64, c tint, note string) {
	p.fill(outline(shape, at, r), c, note)
}

func (p *pngCanvas) text(at point, s string, l letters) {
	p.img.SetColor(l.color.color())
	to := vg.Point{X: vg.Length(at.x), Y: vg.Length(p.d.Size.Height - at.y)}
	face := p.d.fonts.of(l).face(l.size)
	if !l.turned {
		p.img.FillString(face, to, s)
		return
	}
	p.img.Fill(outlines(p.d.fonts.of(l), to, s, l.size)) // gonum would rotate pixels, which blurs them
}

// outlines returns the outlines of s, written upwards from a position: the curves of the glyphs,
// with the font's distances between neighbors.
func outlines(c *cut, from vg.Point, s string, size float64) vg.Path {
	var path vg.Path
	var buf sfnt.Buffer
	em := fixed.Int26_6(c.font.UnitsPerEm())
	scale := size / float64(em)
	x := 0.0
	// A glyph's y grows downwards, in units of the font.
	place := func(p fixed.Point26_6) vg.Point {
		return vg.Point{X: from.X + vg.Length(float64(p.Y)*scale), Y: from.Y + vg.Length((x+float64(p.X))*scale)}
	}
	before := sfnt.GlyphIndex(0)
	for _, r := range s {
		i, err := c.font.GlyphIndex(&buf, r)
		if err != nil {
			continue
		}
		if kern, err := c.font.Kern(&buf, before, i, em, font.HintingNone); err == nil && before != 0 {
			x += float64(kern)
		}
		before = i
		segments, err := c.font.LoadGlyph(&buf, i, em, nil)
		if err != nil {
			continue
		}
		for _, g := range segments {
			switch g.Op {
			case sfnt.SegmentOpMoveTo:
				path.Move(place(g.Args[0]))
			case sfnt.SegmentOpLineTo:
				path.Line(place(g.Args[0]))
			case sfnt.SegmentOpQuadTo:
				path.QuadTo(place(g.Args[0]), place(g.Args[1]))
			case sfnt.SegmentOpCubeTo:
				path.CubeTo(place(g.Args[0]), place(g.Args[1]), place(g.Args[2]))
			}
		}
		if wide, err := c.font.GlyphAdvance(&buf, i, em, font.HintingNone); err == nil {
			x += float64(wide)
		}
	}
	return path
}

// write adds the resolution, from which programs compute the size on paper: the chunk pHYs of
// https://www.w3.org/TR/png-3/#11pHYs, which must precede the pixels and is inserted after the
// header.
func (p *pngCanvas) write(w io.Writer) error {
	var b bytes.Buffer
	if err := png.Encode(&b, p.img.Image()); err != nil {
		return fmt.Errorf("png: %w", err)
	}
	const header = 8 + 4 + 4 + 13 + 4 // signature; length, type, data and checksum of IHDR
	perMeter := uint32(math.Round(float64(p.d.DPI) / 0.0254))
	chunk := []byte{0, 0, 0, 9, 'p', 'H', 'Y', 's'}
	chunk = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(chunk, perMeter), perMeter)
	chunk = append(chunk, 1) // meters
	chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(chunk[4:]))
	for _, part := range [][]byte{b.Bytes()[:header], chunk, b.Bytes()[header:]} {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}
