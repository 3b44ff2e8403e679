package figure

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"weir/internal/require"
)

func TestThinKeepsExtremes(t *testing.T) {
	var points []Point
	for i := range 10_000 {
		points = append(points, Point{X: float64(i), Y: math.Sin(float64(i) / 100)})
	}
	points[1234].Y, points[8765].Y = 50, -50
	got := ThinTo(points, MostPoints)
	if len(got) > MostPoints {
		t.Errorf("%d points", len(got))
	}
	top, bottom, last := 0.0, 0.0, -1.0
	for _, p := range got {
		top, bottom = max(top, p.Y), min(bottom, p.Y)
		if p.X <= last {
			t.Fatal("points out of order")
		}
		last = p.X
	}
	if top != 50 || bottom != -50 {
		t.Errorf("extremes %v and %v were lost", bottom, top)
	}
}

func TestAxes(t *testing.T) {
	for _, most := range []float64{0, 1e-12, 0.003, 1, 7, 999, 1.3e9, 8e14, math.Inf(1), math.NaN(), -4} {
		a := LinearAxis("", Scale{1, ""}, most)
		if n := len(a.Ticks); n < 3 || n > 8 || a.Max < most && !math.IsInf(most, 0) {
			t.Errorf("linear to %v: ticks %v, end %v", most, a.Ticks, a.Max)
		}
	}
	for _, c := range [][2]float64{{0.001, 0.009}, {1e-6, 3600}, {0, 0}, {0.5, 0.5}, {0.016, 0.32}} {
		a := LogAxis("", Scale{1000, "ms"}, c[0], c[1])
		if n := len(a.Ticks); n < 2 || n > 14 || c[0] > 0 && (a.Min > c[0]*(1+1e-9) || a.Max < c[1]*(1-1e-9)) {
			t.Errorf("log %v: %v", c, a.Ticks)
		}
	}
	for _, steps := range [][]float64{nil, {0}, {5}, {1, 2, 4, 256}, {1000, 2000, 3000}, {8, 4, 2, 4, 8}, {-1, 1e300}} {
		a := LoadAxis("", "", steps)
		for _, x := range steps {
			if p := a.At(x); p < 0 || p > 1 || math.IsNaN(p) {
				t.Errorf("%v: %v lies at %v", steps, x, p)
			}
		}
	}
}

// The script of a page receives columns of numbers; null replaces numbers that JSON cannot
// represent.
func TestLineJSON(t *testing.T) {
	low, high := 1.0, 2.25
	l := Line{Name: "p99 </script>", Color: 2, Dash: true, Points: []Point{{X: 1, Y: 1.23456789e9, Low: &low, High: &high},
		{X: 2, Y: math.NaN()}, {X: 3, Y: math.Inf(1)}}}
	got, err := json.Marshal(Figure{ID: "a", Lines: []Line{l}})
	require.NoError(t, err)
	want := `"lines":[{"name":"p99 \u003c/script\u003e","color":2,"dash":true,"x":[1,2,3],"y":[1.234568e+09,null,null],"low":[1,null,null],"high":[2.25,null,null]}]`
	if !strings.Contains(string(got), want) {
		t.Errorf("%s\nhas no\n%s", got, want)
	}
}

// A single load is in the middle of the axis, and not at its end.
func TestAxisOfOneLoad(t *testing.T) {
	for _, load := range []float64{0.5, 1, 4, 3000} {
		a := LoadAxis("", "", []float64{load, load})
		if at := a.At(load); at < 0.4 || at > 0.6 {
			t.Errorf("a load of %v lies at %v of %v to %v", load, at, a.Min, a.Max)
		}
	}
}

// TestAlt checks that the alternative text has axes, lines and definition.
func TestAlt(t *testing.T) {
	f := Figure{Desc: "Bars: 95% intervals", X: Axis{Label: "virtual clients"}, Y: Axis{Name: "throughput", Label: "Gbit/s"},
		Lines: []Line{{Name: "measured"}, {}, {Name: "fitted usl"}}}
	if got := f.Alt(); got != "throughput (Gbit/s) by virtual clients. Lines: measured; fitted usl. Bars: 95% intervals" {
		t.Error(got)
	}
	f = Figure{X: Axis{Label: "time"}, Y: Axis{Label: "latency"}, Heat: &Heat{What: "operations"}}
	if got := f.Alt(); got != "operations by latency and time" {
		t.Error(got)
	}
}
