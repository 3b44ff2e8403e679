package paper

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image/color"
	"image/png"
	"io"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
)

// A pngCanvas draws pixels with gonum's canvas, whose y grows upwards.
type pngCanvas struct {
	d   *Drawer
	img *vgimg.Canvas
}

func newPNG(d *Drawer) *pngCanvas {
	return &pngCanvas{d, vgimg.NewWith(vgimg.UseWH(vg.Length(d.Size.Width), vg.Length(d.Size.Height)), vgimg.UseDPI(d.DPI), vgimg.UseBackgroundColor(color.White))}
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

func (c rgb) color() color.Color { return color.RGBA{c.r, c.g, c.b, 255} }

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

func (p *pngCanvas) fill(points []point, c rgb) {
	p.img.SetColor(c.color())
	path := p.path(points)
	path.Close()
	p.img.Fill(path)
}

func (p *pngCanvas) text(at point, s string, l letters) {
	p.img.SetColor(l.color.color())
	to := vg.Point{X: vg.Length(at.x), Y: vg.Length(p.d.Size.Height - at.y)}
	face := p.d.fonts.of(l).face(l.size)
	if !l.turned {
		p.img.FillString(face, to, s)
		return
	}
	p.img.Push()
	p.img.Translate(to)
	p.img.Rotate(math.Pi / 2)
	p.img.FillString(face, vg.Point{}, s)
	p.img.Pop()
}

// write adds the resolution, from which programs take the size on paper: the
// chunk pHYs of https://www.w3.org/TR/png-3/#11pHYs, which must come before
// the pixels and is put behind the header.
func (p *pngCanvas) write(w io.Writer) error {
	var b bytes.Buffer
	if err := png.Encode(&b, p.img.Image()); err != nil {
		return fmt.Errorf("paper: png: %w", err)
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
