package main

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"slices"
	"testing"

	"weir/internal/require"
)

// smallPicture writes the top of the picture in from, which has the given width, as a small picture
// with 256 colors, which are enough for pages. It returns the size in bytes.
func smallPicture(t *testing.T, from, to string, width, height int) int {
	t.Helper()
	b := require.File(t, from)
	whole, err := png.Decode(bytes.NewReader(b))
	require.NoError(t, err)
	if got := whole.Bounds(); got.Dx() != width || got.Dy() < height/2 {
		t.Errorf("%s is %v, want %d wide: something sticks out of the page", to, got, width)
	}
	top := image.Rect(0, 0, min(width, whole.Bounds().Dx()), min(height, whole.Bounds().Dy()))
	small := image.NewPaletted(top, palette(whole, top))
	draw.Draw(small, top, whole, image.Point{}, draw.Src)
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	require.NoError(t, encoder.Encode(&out, small))
	require.NoError(t, os.WriteFile(to, out.Bytes(), 0o644))
	return out.Len()
}

// palette returns the 256 most frequent colors of the picture, without colors that look like a
// color that is already in the palette.
func palette(of image.Image, part image.Rectangle) color.Palette {
	count := map[color.RGBA]int{}
	for y := part.Min.Y; y < part.Max.Y; y++ {
		for x := part.Min.X; x < part.Max.X; x++ {
			count[color.RGBAModel.Convert(of.At(x, y)).(color.RGBA)]++
		}
	}
	colors := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int {
		return cmp.Or(count[b]-count[a], cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	var p color.Palette
	for near := 24; near >= 0 && len(p) < 256; near -= 8 { // colors that are far apart first
		for _, c := range colors {
			if len(p) < 256 && !slices.ContainsFunc(p, func(q color.Color) bool { return alike(c, q.(color.RGBA), near) }) {
				p = append(p, c)
			}
		}
	}
	return p
}

func alike(a, b color.RGBA, near int) bool {
	apart := func(x, y uint8) int { return max(int(x), int(y)) - min(int(x), int(y)) }
	return max(apart(a.R, b.R), apart(a.G, b.G), apart(a.B, b.B)) <= near
}
