package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
)

// The figures of a real run with a real server can be read by other programs: poppler finds the
// axes with their units, PNG has ink, and SVG is well formed.
func TestFiguresOfARun(t *testing.T) {
	t.Parallel()
	labtest.Need(t, "pdftotext")
	web := labtest.Start(t, lab.NginxConfig{})
	fill(t, web.Data, 5, 1<<20)
	dir := t.TempDir()
	out, figures := filepath.Join(dir, "run"), filepath.Join(dir, "figures")
	code, said := weir(t, "run", "--target", web.URL, "--clients", "1,2,4", "--duration", "2s", "--set", "load.ramp=0s", "--set",
		"load.warmup=100ms", "--out", out, "--quiet")
	if code != exitFine && code != exitInvalid {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	if code, said := weir(t, "report", out, "--figures", figures); code != exitFine && code != exitInvalid ||
		!strings.Contains(said, "figures in") {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	labels := map[string][]string{
		"throughput-vs-clients":            {"throughput (", "bit/s)", "virtual clients"},
		"throughput-per-client-vs-clients": {"throughput per client (", "bit/s)", "virtual clients"},
		"cpu-vs-clients":                   {"CPU (% of the machine's cores)", "server", "clients"},
		"wall-clock-time-vs-clients":       {"mean wall clock time (", "s)", "virtual clients"},
		"files-vs-time":                    {"files/s)", "time since the start (seconds)"},
		"latency-heat-map-vs-time":         {"latency", "time since the start (seconds)", "operations"},
	}
	for name, want := range labels {
		text := exec.CommandContext(t.Context(), "pdftotext", filepath.Join(figures, name+".pdf"), "-")
		said, err := text.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, said)
		}
		for _, w := range want {
			if !strings.Contains(string(said), w) {
				t.Errorf("%s.pdf has no text %q:\n%s", name, w, said)
			}
		}
	}
	pngs, err := filepath.Glob(filepath.Join(figures, "*.png"))
	if err != nil || len(pngs) < len(labels) {
		t.Fatal(pngs, err)
	}
	for _, path := range pngs {
		if share := ink(t, path); share < 0.002 || share > 0.6 && !strings.Contains(path, "heat-map") { // a heat map may fill its field
			t.Errorf("%s: %.1f%% ink", path, 100*share)
		}
		wellFormed(t, strings.TrimSuffix(path, "png")+"svg")
	}
}

// ink returns the share of pixels in the inner part of a PNG that are not white.
func ink(t *testing.T, path string) float64 {
	t.Helper()
	img := picture(t, path)
	b := img.Bounds()
	n, all := 0, 0
	for y := b.Dy() / 5; y < b.Dy()*4/5; y++ {
		for x := b.Dx() / 4; x < b.Dx()*9/10; x++ {
			if r, g, bl, _ := img.At(x, y).RGBA(); r+g+bl < 3*0xdfff { // darker than shades and grids
				n++
			}
			all++
		}
	}
	return float64(n) / float64(all)
}

func wellFormed(t *testing.T, path string) {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	for d := xml.NewDecoder(file); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Errorf("%s: %v", path, err)
			return
		}
	}
}
