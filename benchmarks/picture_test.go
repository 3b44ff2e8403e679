package bench

import (
	"bytes"
	"image"
	"image/draw"
	"image/png"
	"math"
	"os"
	"slices"
	"strings"

	"weir/loadtest/report/figure"
	paint "weir/loadtest/report/figure/draw"
)

// pictureText describes the picture at the top of the page.
const pictureText = "Client CPU time per GB and per file of weir and of the usual clients, without and with TLS"

// A pictured is a zone of the picture: a case, and its sides that are shown, weir's side first.
type pictured struct {
	name, label string
	sides       []string
	limit       string // the side that shows the limit
}

var (
	picturedBytes = []pictured{
		{"download-1", "HTTP read", []string{"weir", "curl"}, systemCalls},
		{"tls-download-1", "HTTPS read", []string{"weir", "curl"}, systemCalls},
		{"upload-nginx-1", "HTTP write", []string{"weir", "curl"}, systemCalls},
		{"tls-upload-1", "HTTPS write", []string{"weir", "curl"}, systemCalls},
		{"root-download-1", "root:// read", []string{"weir", "xrdcp"}, systemCalls},
		{"roots-download-1", "roots:// read", []string{"weir", "xrdcp"}, ""},
		{"ftp-download-1", "GridFTP read", []string{"weir", "globus-url-copy"}, ""},
		{"transfer-large", "verified copy", []string{"weir", "xrdcp", "gfal-copy", "rclone"}, systemCalls},
	}
	picturedFiles = []pictured{
		{"small-64", "HTTP 4 KiB", []string{"weir", "wrk"}, "bare"},
		{"tls-sessions-100", "new HTTPS, 4 KiB", []string{"weir", "wrk", "curl"}, ""},
		{"root-read", "root:// 4 KiB", []string{"weir"}, "bare"},
		{"root-fresh", "new root://, 1 MiB", []string{"weir, 100", "xrdcp, 100"}, ""},
		{"ftp-small", "GridFTP 4 KiB", []string{"weir", "globus-url-copy"}, ""},
		{"transfer-small", "copy of 64 KiB", []string{"weir", "rclone"}, ""},
	}
)

// picture returns the plots of the picture, the upper one first.
func (p page) picture() []*figure.Figure {
	return []*figure.Figure{
		p.plot(picturedBytes, "cpu", clientCPU, []string{"weir", "curl", "xrdcp", "globus-url-copy", "gfal-copy", "rclone"}),
		p.plot(picturedFiles, "cpu-file", requestCPU, []string{"weir", "curl", "xrdcp", "globus-url-copy", "wrk", "rclone"}),
	}
}

// plot shows a metric of several programs, and the limit as a dashed line in each zone where it was measured.
func (p page) plot(zones []pictured, id string, m metric, programs []string) *figure.Figure {
	name := m.name
	if m == requestCPU {
		name = "client CPU per file"
	}
	f := &figure.Figure{ID: id, Title: name, Desc: pictureText,
		X: figure.Axis{Label: "median, smallest and largest of all rounds", Max: float64(len(zones))}} // without numbers
	for k, program := range programs {
		f.Lines = append(f.Lines, figure.Line{Name: program, Color: k, Dots: true, Loose: true})
	}
	limit := "bare system calls"
	least, most := math.Inf(1), 0.
	for i, z := range zones {
		f.Zones = append(f.Zones, figure.Zone{From: float64(i) + .04, To: float64(i) + .96, Name: z.label})
		s := p.find(z.name)
		if s == nil {
			continue
		}
		for k, side := range z.sides {
			program, _, _ := strings.Cut(side, ",")
			if v, low, high, ok := s.cellOf(side, m.name); ok {
				l := &f.Lines[slices.Index(programs, program)]
				l.Points = append(l.Points, figure.Point{X: float64(i) + .15 + .7*(float64(k)+.5)/float64(len(z.sides)), Y: v, Low: &low, High: &high})
				least, most = min(least, low), max(most, high)
			}
		}
		if v, low, _, ok := s.cellOf(z.limit, m.name); ok {
			f.Lines = append(f.Lines, figure.Line{Name: limit, Dash: true,
				Points: []figure.Point{{X: float64(i) + .04, Y: v}, {X: float64(i) + .96, Y: v}}})
			limit = "" // the line continues in the next zones
			least = min(least, low)
		}
	}
	f.Y = figure.LogAxis(name+" ("+strings.TrimSpace(m.suffix)+")", figure.Scale{Factor: 1}, least, most)
	return f
}

// writePicture writes plots, one below the other, as a PNG file.
func writePicture(name string, plots ...*figure.Figure) error {
	d, err := paint.New(paint.Options{Size: paint.Size{Width: 480, Height: 190}, DPI: 150})
	if err != nil {
		return err
	}
	var all []image.Image
	var whole image.Rectangle
	for _, f := range plots {
		var b bytes.Buffer
		if err := d.Draw(&b, f, "png"); err != nil {
			return err
		}
		if len(plots) == 1 {
			return os.WriteFile(name, b.Bytes(), 0o644)
		}
		img, err := png.Decode(&b)
		if err != nil {
			return err
		}
		all = append(all, img)
		whole.Max.X, whole.Max.Y = max(whole.Max.X, img.Bounds().Dx()), whole.Max.Y+img.Bounds().Dy()
	}
	sheet := image.NewRGBA(whole)
	top := 0
	for _, img := range all {
		draw.Draw(sheet, img.Bounds().Add(image.Pt(0, top)), img, img.Bounds().Min, draw.Src)
		top += img.Bounds().Dy()
	}
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, sheet); err != nil {
		return err
	}
	return os.WriteFile(name, b.Bytes(), 0o644)
}
