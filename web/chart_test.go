package web

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/lab/browser"
	"weir/loadtest/report/figure"
	"weir/loadtest/report/figure/draw"
)

// charts shows figures as a report holds them, and returns when all are drawn.
func charts(t *testing.T, width int, figures ...figure.Figure) *browser.Page {
	t.Helper()
	script, there := Bundle("report.js")
	style, _ := Bundle("report.css")
	if !there {
		if os.Getenv("WEIR_REQUIRE") == "all" {
			t.Fatal("web/dist is empty: make web fills it")
		}
		t.Skip("web/dist is empty: make web fills it")
	}
	drawn, err := draw.NewPage()
	require.NoError(t, err)
	columns, packed := [][]any{}, []map[string]any{}
	var places strings.Builder
	for i, f := range figures {
		f.ID, f.Title = fmt.Sprintf("f%d", i), fmt.Sprintf("figure %d", i)
		b, err := json.Marshal(f)
		require.NoError(t, err)
		var m map[string]any
		require.NoError(t, json.Unmarshal(b, &m))
		for _, l := range list(m["lines"]) {
			columns = append(columns, list(l.(map[string]any)["x"]))
			l.(map[string]any)["x"] = len(columns) - 1
		}
		packed = append(packed, m)
		fmt.Fprintf(&places, `<figure data-figure="%d"><h3>%s</h3>%s</figure>`, i, f.Title, drawn.SVG(&f))
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	require.NoError(t, json.NewEncoder(z).Encode(map[string]any{"x": columns, "figures": packed}))
	require.NoError(t, z.Close())
	page := `<!DOCTYPE html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><style>` + Theme() + style +
		`</style><main>` + places.String() + `</main><script type="application/octet-stream" id="figures">` +
		base64.StdEncoding.EncodeToString(zipped.Bytes()) + `</script><script>` + script + `</script></html>`
	file := filepath.Join(t.TempDir(), "charts.html")
	require.NoError(t, os.WriteFile(file, []byte(page), 0o644))
	p := browser.Open(t, "file://"+file, width, 900)
	p.Wait(`(() => { const next = document.querySelector("figure[data-figure]:not(.charted)"); next?.scrollIntoView({block: "center"}); return !next })()`)
	return p
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// said returns what the chart says where the mouse is, at a share of its width
// and its height.
func said(p *browser.Page, n int, x, y float64) string {
	over := p.Box(fmt.Sprintf(`figure[data-figure="%d"] .u-over`, n))
	p.Move(over.X+1+(over.Width-2)*x, over.Y+1+(over.Height-2)*y)
	var text string
	p.Eval(fmt.Sprintf(`(() => { const b = document.querySelector('figure[data-figure="%d"] .chart-box'); return b.hidden ? "" : b.innerText })()`, n), &text)
	return strings.Join(strings.Fields(text), " ")
}

// ink is how many points of a chart's canvas are painted.
func ink(p *browser.Page, n int) int {
	var painted int
	p.Eval(fmt.Sprintf(`(() => { const c = document.querySelector('figure[data-figure="%d"] canvas:not(.heat-legend canvas)'), d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
		let n = 0; for (let i = 3; i < d.length; i += 4) if (d[i] > 0) n++; return n })()`, n), &painted)
	return painted
}

func line(xy ...float64) figure.Line {
	var l figure.Line
	for i := 0; i < len(xy); i += 2 {
		l.Points = append(l.Points, figure.Point{X: xy[i], Y: xy[i+1]})
	}
	return l
}

// Every kind of plot is drawn and says its values, the odd ones as well.
func TestCharts(t *testing.T) {
	low, high := 90e6, 110e6
	steps := figure.Line{Name: "measured", Dots: true, Points: []figure.Point{{X: 1, Y: 12.5e6}, {X: 8, Y: 100e6, Low: &low, High: &high},
		{X: 64, Y: 500e6}}}
	load := figure.LoadAxis("virtual clients", "clients", []float64{1, 8, 64})
	back := line(1, 1e6, 4, 5e6, 8, 9e6, 4, 6e6, 1, 2e6)
	back.Dots, back.Name = true, "up and down"
	gap := line(0, 1, 1, math.NaN(), 2, 3)
	gap.Name = "with a gap"
	long := figure.Line{Name: "long"}
	for i := range 50_000 {
		long.Points = append(long.Points, figure.Point{X: float64(i), Y: 1e9 + 1e8*math.Sin(float64(i)/500)})
	}
	ms := figure.Seconds(0.5)
	figures := []figure.Figure{
		{X: load, Y: figure.LinearAxis("Gbit/s", figure.Bits(500e6), 500e6),
			Lines: []figure.Line{steps, {Name: "model", Color: 1, Dash: true,
				Points: []figure.Point{{X: 1, Y: 10e6}, {X: 16, Y: 310e6, Low: &low, High: &high}, {X: 64, Y: 500e6, Low: &low, High: &high}}}},
			Marks: []figure.Mark{{X: 8, Name: "knee: 8 clients", Low: &low, High: &high}}},
		{X: figure.LoadAxis("virtual clients", "clients", []float64{1, 4, 8}), Y: figure.LinearAxis("Mbit/s", figure.Bits(9e6), 9e6),
			Lines: []figure.Line{back}},
		{X: figure.TimeAxis(2), Y: figure.LinearAxis("files/s", figure.Decimal(3, " files/s"), 3), Lines: []figure.Line{gap},
			Zones: []figure.Zone{{From: 0, To: 1, Name: "8"}, {From: 1, To: 2, Name: "16"}}},
		{X: figure.TimeAxis(50_000), Y: figure.LinearAxis("Gbit/s", figure.Bits(1.1e9), 1.1e9), Lines: []figure.Line{long}},
		{X: figure.LogAxis("transfer time (ms)", ms, 0.001, 0.5), Y: figure.LinearAxis("operations", figure.Decimal(500, " operations"), 500),
			Columns: []figure.Column{{From: 0.001, To: 0.01, Y: 3}, {From: 0.01, To: 0.1, Y: 500}, {From: 0.1, To: 0.5, Y: 42}}},
		{X: figure.TimeAxis(40), Y: figure.LogAxis("latency (ms)", ms, 0.001, 1),
			Heat: &figure.Heat{X: []float64{0, 10, 20, 30, 40}, Y: []float64{0.001, 0.01, 0.1, 1},
				Rows: [][]int64{{1, 0, 0}, {0, 12_345, 0}, {0, 0, 0}, {5, 5, 5}}, What: "operations"}},
		{X: figure.TimeAxis(10), Y: figure.LinearAxis("s", figure.Seconds(1), 1)},
		{X: figure.LoadAxis("", "", []float64{5}), Y: figure.LinearAxis("%", figure.Percent(), 1), Lines: []figure.Line{line(5, 0.5)}},
	}
	p := charts(t, 1600, figures...)
	for _, c := range []struct {
		n    int
		x, y float64
		want string
	}{
		{0, 0.5, 0.2, "8 clients measured 800 Mbit/s 720 Mbit/s to 880 Mbit/s model 1.20 Gbit/s"},
		{0, 0, 0.9, "1 client measured 100 Mbit/s model 80.0 Mbit/s"},
		{0, 0.9, 0.9, "64 clients measured 4.00 Gbit/s model 4.00 Gbit/s 720 Mbit/s to 880 Mbit/s"},
		{1, 0.5, 0.5, "4 clients up and down 48.0 Mbit/s"},
		{2, 0.02, 0.5, "0 s with a gap 1 files/s"},
		{2, 0.99, 0.5, "2 s with a gap 3 files/s"},
		{2, 0.5, 0.5, ""},
		{3, 0.5, 0.5, "6h56m40s long 7.45 Gbit/s"},
		{4, 0.5, 0.5, "10 ms to 100 ms 500 operations"},
		{4, 0.02, 0.5, "1 ms to 10 ms 3 operations"},
		{5, 0.3, 0.5, "10 s to 20 s 10 ms to 100 ms 12.3 k operations"},
		{5, 0.99, 0.01, "30 s to 40 s 100 ms to 1 s 5 operations"},
		{6, 0.5, 0.5, ""},
		{7, 0.5, 0.5, "5 50%"},
	} {
		got := said(p, c.n, c.x, c.y)
		if c.n == 3 { // which of the seconds that one pixel stands for
			got, c.want = strings.Join(strings.Fields(got)[1:3], " "), "long "+strings.Fields(got)[2]
		}
		if c.n == 2 && c.want != "" {
			c.want = strings.Replace(c.want, "1 files/s", "1 file/s", 1)
			if strings.Contains(got, "files/s") {
				c.want = strings.Replace(c.want, "1 file/s", "1 files/s", 1)
			}
		}
		if got != c.want {
			t.Errorf("figure %d at %v, %v says %q, not %q", c.n, c.x, c.y, got, c.want)
		}
	}
	for i := range figures {
		if n := ink(p, i); n < 1000 {
			t.Errorf("figure %d has %d painted points", i, n)
		}
	}
	if e := p.Errors(); len(e) > 0 {
		t.Errorf("the page complains: %q", e)
	}
}

// A chart can be zoomed as deep as one likes, everywhere, and comes back.
func TestDeepZoom(t *testing.T) {
	l := figure.Line{Name: "l"}
	for i := range 1000 {
		l.Points = append(l.Points, figure.Point{X: 0.001 * math.Pow(1.01, float64(i)), Y: 1 + float64(i)})
	}
	p := charts(t, 400, figure.Figure{X: figure.LogAxis("time", figure.Scale{Factor: 1000, Unit: "ms"}, 0.001, 21),
		Y: figure.LogAxis("files/s", figure.Scale{Factor: 1, Unit: "files/s"}, 1, 1000), Lines: []figure.Line{l}},
		figure.Figure{X: figure.TimeAxis(7200), Y: figure.LinearAxis("Gbit/s", figure.Bits(1e9), 1e9),
			Lines: []figure.Line{line(0, 1e9, 3600, 5e8, 7200, 1e9)}})
	for i := range 2 {
		p.Eval(fmt.Sprintf(`document.querySelectorAll(".chart-plot")[%d].focus()`, i), nil)
		p.Keys(browser.Home + strings.Repeat("+", 40) + browser.Right + browser.Left + strings.Repeat("-", 3) + browser.End +
			strings.Repeat("+", 40))
		p.Wait(fmt.Sprintf(`!document.querySelectorAll(".chart-reset")[%d].hidden`, i))
		p.Keys(browser.Escape)
		p.Wait(fmt.Sprintf(`document.querySelectorAll(".chart-reset")[%d].hidden`, i))
	}
	if e := p.Errors(); len(e) > 0 {
		t.Errorf("the page complains: %q", e)
	}
}
