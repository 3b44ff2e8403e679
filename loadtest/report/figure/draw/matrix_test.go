package draw

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/loadtest/report/figure"
)

// links returns the matrix of n sites, with a sum of each, in which the first link is slow and the
// link from the second to the first is unknown.
func links(n int, name string) *figure.Figure {
	m := &figure.Matrix{What: "achieved share of the target", Sums: true}
	for i := range n + 1 {
		site := fmt.Sprintf("%s%02d", name, i)
		if i == n {
			site = "all"
		}
		m.Rows, m.Columns = append(m.Rows, site), append(m.Columns, site)
		row := make([]figure.Cell, n+1)
		for k := range row {
			if i != k || i == n {
				row[k] = figure.PercentCell(1, "")
			}
		}
		m.Cells = append(m.Cells, row)
	}
	m.Cells[0][1] = figure.PercentCell(0.62, "disks of C")
	m.Cells[1][0] = figure.Cell{There: true, Share: math.NaN(), Text: "–"}
	return &figure.Figure{ID: "matrix", Title: "Links", Matrix: m, X: figure.Axis{Label: "destination"}, Y: figure.Axis{Label: "source"}}
}

// A matrix shows each share as a color and a number, and an empty field for a missing link.
func TestMatrix(t *testing.T) {
	p, err := NewPage()
	require.NoError(t, err)
	text := string(p.Still(links(6, "T")))
	for want, n := range map[string]int{">62</text>": 1, ">100</text>": 6*5 - 2 + 7 + 6, "<title>disks of C</title>": 1, ">–</text>": 1,
		`class="f q3"`: 2, ">destination<": 1, ">source<": 1, ">all<": 2, "&lt; 20%": 1} {
		if got := strings.Count(text, want); got != n {
			t.Errorf("%d times %q, not %d", got, want, n)
		}
	}
	for _, f := range []*figure.Figure{links(30, "T2-"), links(30, "a long name of a site with <b>markup</b> in it "),
		links(1, ""), {Matrix: &figure.Matrix{}}} {
		for _, size := range []string{"column", "wide", "180x180"} {
			o := Defaults()
			o.DPI, o.Title = 100, true
			o.Size, _ = ParseSize(size)
			d, err := New(o)
			require.NoError(t, err)
			for _, format := range Formats() {
				var out bytes.Buffer
				require.NoError(t, d.Draw(&out, f, format))
				if out.Len() == 0 || strings.Contains(out.String(), "<b>") {
					t.Errorf("%s, %s: %.100s", size, format, out.String())
				}
			}
		}
		if still := string(p.Still(f)); strings.Contains(still, "<b>") || strings.Contains(still, "NaN") {
			t.Errorf("%.300s", still)
		}
	}
}

// Each level is darker than the level before, also in a grey print, and the numbers on it are
// readable.
func TestLevelsInGrey(t *testing.T) {
	light := func(c tint) float64 {
		part := func(x uint8) float64 {
			if s := float64(x) / 255; s > 0.04045 {
				return math.Pow((s+0.055)/1.055, 2.4)
			}
			return float64(x) / 255 / 12.92
		}
		return 0.2126*part(c.r) + 0.7152*part(c.g) + 0.0722*part(c.b)
	}
	before := 1.2
	for i := range len(figure.Levels()) + 1 {
		field, ink := light(levelTint(i)), light(levelText(i))
		if (before+0.05)/(field+0.05) < 1.2 {
			t.Errorf("level %d can hardly be told from the level before", i)
		}
		if contrast := (max(field, ink) + 0.05) / (min(field, ink) + 0.05); contrast < 4.5 {
			t.Errorf("level %d: contrast %.1f", i, contrast)
		}
		before = field
	}
	for share, want := range map[float64]int{1.2: 0, 0.95: 0, 0.946: 0, 0.94: 1, 0.62: 2, 0: 5, 0.2: 4} {
		if got := figure.Level(share); got != want {
			t.Errorf("%v has level %d, not %d", share, got, want)
		}
	}
}
