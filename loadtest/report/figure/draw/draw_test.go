package draw

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/lab/labtest"
	"weir/loadtest/report/figure"
)

// curve is a figure with all elements of figures except columns and a heat map.
func curve() *figure.Figure {
	low, high, from, to := 0.9e9, 1.3e9, 3.0, 5.0
	f := &figure.Figure{ID: "curve", Title: "Throughput against load", Desc: "How it grows.", Stamp: "valid",
		X: figure.LoadAxis("virtual clients", "clients", []float64{1, 2, 4, 8, 16}), Y: figure.LinearAxis("Gbit/s", figure.Bits(1.5e9), 1.5e9),
		Lines: []figure.Line{
			{Name: "measured", Dots: true, Points: []figure.Point{{X: 1, Y: 0.3e9}, {X: 2, Y: 0.6e9}, {X: 4, Y: 1.1e9, Low: &low, High: &high},
				{X: 8, Y: 1.2e9}, {X: 16, Y: 1e9}}},
			{Name: "fitted usl", Color: 1, Points: []figure.Point{{X: 1, Y: 0.3e9}, {X: 6, Y: 1.15e9}, {X: 16, Y: 1e9}}},
		},
		Zones: []figure.Zone{{From: 1, To: 2, Name: "light"}},
		Marks: []figure.Mark{{X: 4, Name: "optimum: 4 clients", Low: &from, High: &to}},
	}
	f.Y.Name = "throughput"
	return f
}

func histogram() *figure.Figure {
	f := &figure.Figure{ID: "d", Title: "Transfer time", X: figure.LinearAxis("time (ms)", figure.Seconds(0.05), 0.05),
		Y: figure.LinearAxis("operations", figure.Decimal(100, " operations"), 100)}
	for i := range 50 {
		f.Columns = append(f.Columns, figure.Column{From: float64(i) / 1000, To: float64(i+1) / 1000, Y: 100 * math.Exp(-float64(i)/9)})
	}
	f.Marks = []figure.Mark{{X: 0.01, Name: "mean 10 ms"}, {X: 0.04, Name: "p99 40 ms"}}
	return f
}

func heatmap() *figure.Figure {
	h := &figure.Heat{What: "operations"}
	for i := range 601 {
		h.X = append(h.X, float64(i))
	}
	for k := range 31 {
		h.Y = append(h.Y, 0.001*math.Pow(10, float64(k)/10))
	}
	for i := range 600 {
		row := make([]int64, 30)
		for k := range row {
			row[k] = int64(1000 * math.Exp(-math.Pow(float64(k)-10-float64(i)/60, 2)/12))
		}
		h.Rows = append(h.Rows, row)
	}
	f := &figure.Figure{ID: "heat", Title: "Latency", X: figure.TimeAxis(600), Y: figure.LogAxis("latency", figure.Seconds(1), 0.001, 1),
		Heat: h}
	f.Y.Duration = true
	return f
}

// hostile has names that could be mistaken for markup, and numbers without a position.
func hostile() *figure.Figure {
	f := curve()
	evil := "</text><script>alert(1)</script>]]>&\x1b[31m\x00\u202e" + strings.Repeat("long ", 60) + "日本 😀 \xff"
	f.Title, f.Desc, f.Stamp, f.Zones[0].Name, f.Marks[0].Name = evil, evil, evil, evil, evil
	f.X.Label, f.Y.Name, f.Y.Label = evil, evil, evil
	for i := range f.Lines {
		f.Lines[i].Name = evil
	}
	nan, inf := math.NaN(), math.Inf(1)
	f.Lines[0].Points = append(f.Lines[0].Points, figure.Point{X: nan, Y: 1}, figure.Point{X: 3, Y: inf, Low: &nan, High: &inf},
		figure.Point{X: 3, Y: 1e9, Low: &nan, High: &inf})
	f.Marks = append(f.Marks, figure.Mark{X: nan, Name: "nowhere"}, figure.Mark{X: inf, Low: &nan, High: &inf})
	f.Zones = append(f.Zones, figure.Zone{From: nan, To: inf})
	f.Columns = []figure.Column{{From: nan, To: inf, Y: nan}, {From: 1, To: 2, Y: inf}}
	f.Heat = &figure.Heat{X: []float64{1, nan, 4}, Y: []float64{1, 2}, Rows: [][]int64{{5, 6, 7}, nil}, What: evil}
	return f
}

func drawer(t *testing.T, o Options) *Drawer {
	t.Helper()
	d, err := New(o)
	require.NoError(t, err)
	return d
}

func drawn(t *testing.T, d *Drawer, f *figure.Figure, format string) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, d.Draw(&b, f, format))
	return b.Bytes()
}

// The same figure gives the same bytes, independent of the time and the machine.
func TestSameBytes(t *testing.T) {
	for _, f := range []*figure.Figure{curve(), histogram(), heatmap(), hostile()} {
		for _, format := range Formats() {
			first := drawn(t, drawer(t, Defaults()), f, format)
			for range 3 {
				if !bytes.Equal(first, drawn(t, drawer(t, Defaults()), f, format)) {
					t.Fatalf("%s of %s differs from one drawing to the next", format, f.ID)
				}
			}
			if bytes.Contains(first, []byte("Date")) {
				t.Errorf("%s has a date", format)
			}
		}
	}
}

// SVG is well formed, contains its texts as texts, and nothing that runs or loads.
func TestSVG(t *testing.T) {
	for _, f := range []*figure.Figure{curve(), histogram(), heatmap(), hostile()} {
		b := drawn(t, drawer(t, Defaults()), f, "svg")
		elements := map[string]int{}
		var texts []string
		for d := xml.NewDecoder(bytes.NewReader(b)); ; {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", f.ID, err)
			}
			switch token := token.(type) {
			case xml.StartElement:
				elements[token.Name.Local]++
			case xml.CharData:
				texts = append(texts, string(token))
			}
		}
		for name := range elements {
			if !strings.Contains(" svg title desc style rect path text ", " "+name+" ") {
				t.Errorf("%s has an element %s", f.ID, name)
			}
		}
		if bytes.Contains(b, []byte("NaN")) || bytes.Contains(b, []byte("Inf")) {
			t.Errorf("%s is drawn nowhere", f.ID)
		}
		if all := strings.Join(texts, "\n"); f.ID == "curve" && f.Title == "Throughput against load" {
			for _, want := range []string{"throughput (Gbit/s)", "virtual clients", "measured", "fitted usl", "optimum: 4 clients", "95%: 3 to 5",
				"light", "valid"} {
				if !strings.Contains(all, want) {
					t.Errorf("no text %q", want)
				}
			}
		}
	}
}

// dark counts pixels of about that color in a part of the image, which is given in shares of its
// sides.
func dark(img image.Image, left, top, right, bottom float64, like tint) int {
	b := img.Bounds()
	n := 0
	for y := int(top * float64(b.Dy())); y < int(bottom*float64(b.Dy())); y++ {
		for x := int(left * float64(b.Dx())); x < int(right*float64(b.Dx())); x++ {
			r, g, bl, _ := color.NRGBAModel.Convert(img.At(x, y)).RGBA()
			if near(r>>8, like.r) && near(g>>8, like.g) && near(bl>>8, like.b) {
				n++
			}
		}
	}
	return n
}

func near(a uint32, b uint8) bool { return math.Abs(float64(a)-float64(b)) < 25 }

// PNG has the requested resolution, and ink at the positions of the data.
func TestPNG(t *testing.T) {
	o := Defaults()
	for _, dpi := range []int{96, 300} {
		o.DPI = dpi
		b := drawn(t, drawer(t, o), curve(), "png")
		img, err := png.Decode(bytes.NewReader(b))
		require.NoError(t, err)
		if want := int(math.Round(86 / 25.4 * float64(dpi))); img.Bounds().Dx() != want {
			t.Errorf("%d pixels wide, want %d", img.Bounds().Dx(), want)
		}
		if !bytes.Contains(b[:64], []byte("pHYs")) {
			t.Error("no resolution")
		}
		// The first point is low at the left, the best point high near the right.
		if n := dark(img, 0.1, 0.5, 0.25, 0.85, palette(0)); n < dpi/16 {
			t.Errorf("%d dpi: %d pixels of the first point", dpi, n)
		}
		if n := dark(img, 0.7, 0.1, 0.85, 0.5, palette(0)); n < dpi/16 {
			t.Errorf("%d dpi: %d pixels of the best point", dpi, n)
		}
		if n := dark(img, 0.3, 0.15, 0.95, 0.6, palette(1)); n < dpi/2 {
			t.Errorf("%d dpi: %d pixels of the fitted line", dpi, n)
		}
	}
}

// An invalid run is recognizable in all sizes.
func TestStamp(t *testing.T) {
	for _, size := range []string{"column", "wide", "40x40"} {
		o := Defaults()
		var err error
		if o.Size, err = ParseSize(size); err != nil {
			t.Fatal(err)
		}
		o.DPI = 150
		for _, stamp := range []string{"suspect", "invalid"} {
			f := curve()
			f.Stamp = stamp
			img, err := png.Decode(bytes.NewReader(drawn(t, drawer(t, o), f, "png")))
			require.NoError(t, err)
			if n := dark(img, 0.3, 0, 1, 0.3, alarm(stamp)); n < 500 {
				t.Errorf("%s, %s: %d pixels of the stamp", size, stamp, n)
			}
			if svg := drawn(t, drawer(t, o), f, "svg"); bytes.Count(svg, []byte(strings.ToUpper(stamp))) < 1 {
				t.Errorf("%s: not in the SVG", stamp)
			}
		}
	}
}

// Lines that differ in color also differ in their markers or their dashes.
func TestGrey(t *testing.T) {
	for _, dots := range []bool{true, false} {
		f := &figure.Figure{}
		for i := range 12 {
			f.Lines = append(f.Lines, figure.Line{Name: "line", Color: i % 6, Dots: dots})
		}
		all := styles(f)
		for i := range all {
			for k := range i {
				a, b := all[i], all[k]
				if a.marker == b.marker && len(a.dash) == len(b.dash) && (len(a.dash) == 0 || a.dash[0] == b.dash[0]) &&
					(dots || a.markers == b.markers) && (dots || i-k < 6) {
					t.Errorf("dots %v: lines %d and %d cannot be told apart in grey", dots, k, i)
				}
			}
		}
	}
}

// Real readers accept the PDF: its text can be searched, and its font is embedded.
func TestPDF(t *testing.T) {
	labtest.Need(t, "pdftotext")
	labtest.Need(t, "pdffonts")
	labtest.Need(t, "pdftoppm")
	dir := t.TempDir()
	for _, f := range []*figure.Figure{curve(), histogram(), heatmap(), hostile()} {
		path := filepath.Join(dir, "f.pdf")
		require.NoError(t, os.WriteFile(path, drawn(t, drawer(t, Defaults()), f, "pdf"), 0o600))
		said := run(t, "pdffonts", path)
		if strings.Contains(said, " no  yes yes") || !strings.Contains(said, "TrueType") {
			t.Errorf("fonts are not embedded: %s", said)
		}
		run(t, "pdftoppm", "-png", "-r", "72", path, filepath.Join(dir, "page"))
		if f.Title != "Throughput against load" {
			continue
		}
		text := run(t, "pdftotext", path, "-")
		for _, want := range []string{"throughput (Gbit/s)", "virtual clients", "measured", "fitted usl", "optimum: 4 clients"} {
			if !strings.Contains(text, want) {
				t.Errorf("no text %q in %s", want, text)
			}
		}
	}
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil || strings.Contains(string(out), "Error") {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]float64{"column": 86, "wide": 178, "120x80": 120, "120mmx80mm": 120, "55.5x70mm": 55.5} {
		s, err := ParseSize(text)
		if err != nil || math.Abs(s.Width/millimeter-want) > 1e-9 {
			t.Errorf("%s: %v %v", text, s, err)
		}
	}
	for _, text := range []string{"", "x", "120", "39x80", "120x1001", "NaNx80", "infx80", "-80x80", "huge"} {
		if s, err := ParseSize(text); err == nil || !strings.Contains(err.Error(), "size") {
			t.Errorf("%q: %v %v", text, s, err)
		}
	}
	for _, o := range []Options{{Size: Defaults().Size, DPI: 10}, {Size: Size{10, 10}, DPI: 300}, {Size: Size{2800, 2800}, DPI: 1200},
		{Size: Size{math.NaN(), 200}, DPI: 300}} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v can be drawn with", o)
		}
	}
	if err := drawer(t, Defaults()).Draw(io.Discard, curve(), "gif"); err == nil || !strings.Contains(err.Error(), "svg, png, pdf") {
		t.Error(err)
	}
}

// Names of marks cover neither points nor each other.
func TestMarkNamesKeepClear(t *testing.T) {
	f := curve()
	f.Marks = append(f.Marks, figure.Mark{X: 4.2, Name: "knee: 4 clients"}, figure.Mark{X: 15.9, Name: "highest: 16 clients"})
	d := drawer(t, Defaults())
	s := newSheet(d, newSVG(d, f), f)
	s.draw()
	if len(s.taken) != 3 {
		t.Fatalf("%d names", len(s.taken))
	}
	for i, b := range s.taken {
		if b.left < s.left || b.right > s.right || b.top < s.top || b.bottom > s.bottom {
			t.Errorf("name %d is outside: %+v", i, b)
		}
		for _, other := range s.taken[:i] {
			if b.left < other.right && b.right > other.left && b.top < other.bottom && b.bottom > other.top {
				t.Errorf("names cover each other: %+v %+v", b, other)
			}
		}
		for _, p := range f.Lines[0].Points {
			if x, y := s.px(p.X), s.py(p.Y); x > b.left && x < b.right && y > b.top && y < b.bottom {
				t.Errorf("name %d covers the point at %v", i, p.X)
			}
		}
	}
}

func TestTicks(t *testing.T) {
	a := figure.LoadAxis("clients", "clients", []float64{269.7, 564, 808.6, 918.1, 1000, 2244.4, 5000})
	a.Base, a.Min = 0, 0
	got := ticks(&a, 200, 34)
	if len(got) != 6 || got[0].text != "0" || math.Signbit(got[0].at) || got[5].text != "5000" {
		t.Errorf("%v", got)
	}
	l := figure.LogAxis("s", figure.Seconds(1), 0.01, 10)
	named, small := 0, 0
	for _, t := range ticks(&l, 200, 20) {
		if t.text == "" {
			small++
		} else {
			named++
		}
	}
	if named != 4 || small != 24 {
		t.Errorf("%d named and %d small ticks", named, small)
	}
}

// Every figure is drawn, with any content, and its SVG is well formed.
func FuzzDraw(f *testing.F) {
	f.Add("Title", "measured", 0.0, 1.0, 10.0, 0.5, 5.0, uint8(3))
	f.Add("", "\xff<&>\x00", -1e308, 1e308, 2.0, math.Inf(1), math.NaN(), uint8(255))
	f.Add("a", "b", 1e-300, 1e-299, 10.0, 1e-299, 0.0, uint8(0))
	f.Fuzz(func(t *testing.T, title, name string, low, high, base, x, y float64, n uint8) {
		fig := &figure.Figure{Title: title, Desc: name, Stamp: name, X: figure.Axis{Label: name, Factor: 1, Min: low, Max: high, Base: base,
			Ticks: []float64{low, x, high}},
			Y: figure.Axis{Name: name, Label: title, Factor: x, Min: y, Max: high, Duration: n%2 == 0, Ticks: []float64{y}}}
		for i := range n % 8 {
			l := figure.Line{Name: name, Color: int(n) - 100, Dash: i%2 == 0, Dots: i%3 == 0}
			for k := range int(n) {
				l.Points = append(l.Points, figure.Point{X: x * float64(k), Y: y, Low: &low, High: &high})
			}
			fig.Lines = append(fig.Lines, l)
			fig.Marks = append(fig.Marks, figure.Mark{X: x, Name: name, Low: &y, High: &high})
			fig.Zones = append(fig.Zones, figure.Zone{From: low, To: x, Name: name})
			fig.Columns = append(fig.Columns, figure.Column{From: low, To: x, Y: y})
		}
		if n%5 == 0 {
			fig.Heat = &figure.Heat{X: []float64{low, x, high}, Y: []float64{y, high}, Rows: [][]int64{{int64(n)}, {-1, 7}}, What: title}
		}
		d := drawer(t, Options{Size: Defaults().Size, DPI: 50, Title: true})
		b := drawn(t, d, fig, "svg")
		for x := xml.NewDecoder(bytes.NewReader(b)); ; {
			if _, err := x.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%v\n%s", err, b)
			}
		}
		if body, _, _ := bytes.Cut(b, []byte("<text")); bytes.Contains(body, []byte("NaN")) && !strings.Contains(title+name, "NaN") {
			t.Errorf("drawn nowhere: %s", body)
		}
		drawn(t, d, fig, "pdf")
		if n%16 == 1 {
			drawn(t, d, fig, "png")
		}
	})
}
