package figure

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Every cell that holds anything is drawn in its color, and no other.
func TestHeatIsDrawn(t *testing.T) {
	h := &Heat{X: []float64{0, 0.7, 1.7, 2.7, 3.2}, Y: []float64{0.001, 0.01, 0.1, 1}, What: "operations",
		Rows: [][]int64{{1, 0, 0}, {1, 1000, 0}, {0, 1000, 1}, {0, 0, 30}}}
	f := &Figure{ID: "heat", Title: "heat", Desc: "a heat", Heat: h, X: TimeAxis(3.2), Y: LogAxis("", Seconds(1), 0.001, 1)}
	svg := string(f.SVG())
	drawn := map[[2]int]int{}
	for _, path := range regexp.MustCompile(`<path class="h(\d)" d="([^"]*)"`).FindAllStringSubmatch(svg, -1) {
		level, _ := strconv.Atoi(path[1])
		for _, part := range regexp.MustCompile(`M(\d+) (\d+)\.5h(\d+)`).FindAllStringSubmatch(path[2], -1) {
			x, _ := strconv.Atoi(part[1])
			y, _ := strconv.Atoi(part[2])
			n, _ := strconv.Atoi(part[3])
			for i := range n {
				drawn[[2]int{x + i, 2 - y}] = level
			}
		}
	}
	for i, row := range h.Rows {
		for k, n := range row {
			if got, want := drawn[[2]int{i, k}], heatLevel(n, 1000); got != want {
				t.Errorf("cell %d, %d with %d: level %d, want %d", i, k, n, got, want)
			}
		}
	}
	if !strings.Contains(svg, `viewBox="0.3 0 3.2 3"`) || !strings.Contains(svg, "1.00 k operations") {
		t.Errorf("the first column is narrower, and the legend says what counts:\n%s", svg)
	}
}

func TestHeatLevels(t *testing.T) {
	for _, c := range []struct {
		n, most int64
		want    int
	}{{0, 10, 0}, {-1, 10, 0}, {1, 1, heatLevels}, {1, 10, 1}, {10, 10, heatLevels}, {1 << 40, 1 << 62, 6}, {3, 1 << 62, 1}} {
		if got := heatLevel(c.n, c.most); got != c.want {
			t.Errorf("%d of %d: %d, want %d", c.n, c.most, got, c.want)
		}
	}
}

// Heats that cannot be right are not drawn, and do no harm.
func TestHeatsThatAreWrong(t *testing.T) {
	for _, h := range []*Heat{{}, {X: []float64{1}, Rows: [][]int64{{1}}}, {X: []float64{0, 0}, Y: []float64{1, 2}, Rows: [][]int64{{1}}},
		{X: []float64{0, 1}, Y: []float64{1}, Rows: [][]int64{{1}}}, {X: []float64{0, 1}, Y: []float64{1, 2, 3}, Rows: [][]int64{nil}}} {
		f := &Figure{ID: "x", Heat: h, X: TimeAxis(1), Y: LogAxis("", Seconds(1), 1, 3)}
		if svg := f.SVG(); strings.Contains(string(svg), "NaN") {
			t.Errorf("%+v: %s", h, svg)
		}
	}
}

// A path through relative steps ends where its points are, without drift.
func TestPen(t *testing.T) {
	var p pen
	for i := range 1000 {
		p.to(float64(i)*0.333, 100-float64(i)*0.0777)
	}
	words := regexp.MustCompile(`-?\d*\.?\d+`).FindAllString(strings.ReplaceAll(string(p.d), "l", " "), -1)
	x, y := 0.0, 0.0
	for i, w := range words {
		v, err := strconv.ParseFloat(w, 64)
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			x += v
		} else {
			y += v
		}
	}
	if len(words) != 2000 || x < 332.6 || x > 332.8 || y < 22.3 || y > 22.5 {
		t.Errorf("%d numbers to %g, %g: %.100s", len(words), x, y, p.d)
	}
}
