package draw

import (
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/loadtest/report/figure"
)

func page(t *testing.T) *Page {
	t.Helper()
	p, err := NewPage()
	require.NoError(t, err)
	return p
}

// A part of a page is well-formed, contains a description, and has no content that the policy of a
// page refuses.
func TestPage(t *testing.T) {
	p := page(t)
	for _, f := range []*figure.Figure{curve(), histogram(), heatmap(), hostile()} {
		svg := string(p.Still(f))
		for d := xml.NewDecoder(strings.NewReader("<p>" + svg + "</p>")); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v\n%s", f.ID, err, svg)
			}
		}
		for _, never := range []string{"NaN", "Inf", "<style", "<script", " style=", "fill=\"#"} {
			if strings.Contains(svg, never) {
				t.Errorf("%s: %s", f.ID, never)
			}
		}
		if !strings.Contains(svg, `aria-labelledby="`+f.ID+`-t `+f.ID+`-d"`) {
			t.Errorf("%s is not described", f.ID)
		}
	}
	if svg := string(p.Still(curve())); strings.Count(svg, ">measured<") != 1 || !strings.Contains(svg, "optimum: 4 clients") {
		t.Errorf("names of lines and marks: %s", svg)
	}
}

// Every cell with a count is drawn in its color, and no other cell is drawn.
func TestHeatIsDrawn(t *testing.T) {
	h := &figure.Heat{X: []float64{0, 0.7, 1.7, 2.7, 3.2}, Y: []float64{0.001, 0.01, 0.1, 1}, What: "operations",
		Rows: [][]int64{{1, 0, 0}, {1, 1000, 0}, {0, 1000, 1}, {0, 0, 30}}}
	f := &figure.Figure{ID: "heat", Title: "heat", Desc: "a heat", Heat: h, X: figure.TimeAxis(3.2),
		Y: figure.LogAxis("", figure.Seconds(1), 0.001, 1)}
	p := page(t)
	svg := string(p.SVG(f))
	scale := regexp.MustCompile(`(?s)<path class="f h1".*?<text`).FindString(svg) // cells and scale are all in these
	count := map[string]int{}
	for _, path := range regexp.MustCompile(`<path class="f (h\d)" d="([^"]*)"`).FindAllStringSubmatch(scale, -1) {
		count[path[1]] += strings.Count(path[2], "M")
	}
	// The scale shows each of the eight classes three times.
	if want := map[string]int{"h1": 3 + 3, "h8": 3 + 2, "h4": 3 + 1, "h2": 3, "h3": 3, "h5": 3, "h6": 3, "h7": 3}; len(count) != 8 ||
		count["h1"] != want["h1"] || count["h8"] != want["h8"] || count["h4"] != want["h4"] || count["h5"] != want["h5"] {
		t.Errorf("%v, want %v\n%s", count, want, scale)
	}
	if !strings.Contains(svg, ">1.00 k<") {
		t.Errorf("the scale does not say what counts:\n%s", svg)
	}
}

func TestLevels(t *testing.T) {
	for _, c := range []struct {
		n, most float64
		want    int
	}{{1, 1, shades - 1}, {1, 10, 0}, {10, 10, shades - 1}} {
		if got := level(c.n, c.most); got != c.want {
			t.Errorf("%g of %g: %d, want %d", c.n, c.most, got, c.want)
		}
	}
}

// Invalid heat maps are not drawn, and cause no failure.
func TestHeatsThatAreWrong(t *testing.T) {
	p := page(t)
	for _, h := range []*figure.Heat{{}, {X: []float64{1}, Rows: [][]int64{{1}}},
		{X: []float64{0, 0}, Y: []float64{1, 2}, Rows: [][]int64{{1}}},
		{X: []float64{0, 1}, Y: []float64{1}, Rows: [][]int64{{1}}}, {X: []float64{0, 1}, Y: []float64{1, 2, 3}, Rows: [][]int64{nil}}} {
		f := &figure.Figure{ID: "x", Heat: h, X: figure.TimeAxis(1), Y: figure.LogAxis("", figure.Seconds(1), 1, 3)}
		if svg := p.SVG(f); strings.Contains(string(svg), "NaN") {
			t.Errorf("%+v: %s", h, svg)
		}
	}
}

// A path of relative steps ends at the position of its last point, without drift.
func TestRelativePath(t *testing.T) {
	var points []point
	for i := range 1000 {
		points = append(points, point{float64(i) * 0.333, 100 - float64(i)*0.0777})
	}
	path := relative(points)
	words := regexp.MustCompile(`-?\d*\.?\d+`).FindAllString(strings.ReplaceAll(path, "l", " "), -1)
	x, y := 0.0, 0.0
	for i, w := range words {
		v, err := strconv.ParseFloat(w, 64)
		require.NoError(t, err)
		if i%2 == 0 {
			x += v
		} else {
			y += v
		}
	}
	if len(words) != 2000 || x < 332.6 || x > 332.8 || y < 22.3 || y > 22.5 {
		t.Errorf("%d numbers to %g, %g: %.100s", len(words), x, y, path)
	}
}
