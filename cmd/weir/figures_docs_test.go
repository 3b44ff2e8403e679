package main

import (
	"image"
	"image/png"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
)

// The commands of docs/seeing.md about figures work as written, the names in its list are the names
// of files, and pandas reads the numbers.
func TestSeeingPageFigures(t *testing.T) {
	tier.Full(t, "the page, line by line")
	t.Parallel()
	page := section(t, "seeing.md", "## Figures for papers and wiki pages")
	dir := t.TempDir()
	table, err := os.ReadFile("../../loadtest/analysis/testdata/gridftp/AverageThroughput.csv")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "old.csv"), table, 0o600))
	for _, name := range []string{"latest", "direct", "staged"} {
		args := []string{"run", "--quiet", "--target", "simulated://x?servers=4&service=10ms&files=9x1KiB", "--clients", "2,4,8", "--duration",
			"1s", "--set", "load.ramp=0s", "--set", "load.warmup=0s", "--out", "runs/" + name}
		if code, said := start(t, dir, "weir", args...).ended(); code != exitFine && code != exitInvalid {
			t.Fatalf("exit code %d: %s", code, said)
		}
	}
	commands := regexp.MustCompile(`(?m)^\$ weir (.*)$`).FindAllStringSubmatch(page, -1)
	if len(commands) != 3 {
		t.Errorf("%d commands", len(commands))
	}
	for _, c := range commands {
		if code, said := start(t, dir, "weir", strings.Fields(c[1])...).ended(); code != exitFine && code != exitInvalid {
			t.Errorf("weir %s: exit code %d: %s", c[1], code, said)
		}
	}
	for _, name := range []string{"throughput-vs-clients", "throughput-per-client-vs-clients", "efficiency-vs-clients", "latency-vs-clients",
		"wall-clock-time-vs-clients", "throughput-vs-time", "files-vs-time", "clients-vs-time", "latency-vs-time", "latency-heat-map-vs-time",
		"latency-tail"} {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("%s is not listed", name)
		}
		if _, err := os.Stat(filepath.Join(dir, "figures", name+".pdf")); err != nil {
			t.Error(err)
		}
	}
	python := needPandas(t)
	snippet := regexp.MustCompile("(?s)```python\n(.*?)```").FindStringSubmatch(page)
	if snippet == nil {
		t.Fatal("no snippet")
	}
	said := exec.CommandContext(t.Context(), python, "-c", strings.ReplaceAll("\n"+snippet[1], "\n  ", "\n"))
	said.Dir = dir
	out, err := said.CombinedOutput()
	if err != nil || !slices.Contains(strings.Fields(string(out)), "8") {
		t.Errorf("%v: %s", err, out)
	}
}

// The picture in docs/seeing.md is the output of this command for the first seed's table. `make
// screenshots` runs this test to write it.
func TestFigureOfDocs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if code, said := weir(t, "analyze", "../../loadtest/analysis/testdata/gridftp/AverageThroughput.csv", "--figures", dir, "--format", "png",
		"--dpi", "200", "--size", "120x75"); code != exitFine {
		t.Fatalf("exit code %d: %s", code, said)
	}
	drawn := filepath.Join(dir, "throughput-vs-clients.png")
	if to := os.Getenv("WEIR_SCREENSHOTS"); to != "" {
		b, err := os.ReadFile(drawn)
		if err == nil {
			err = os.WriteFile(filepath.Join(to, "figure.png"), b, 0o644)
		}
		require.NoError(t, err)
	}
	a, b := picture(t, drawn), picture(t, "../../docs/figure.png")
	if a.Bounds() != b.Bounds() {
		t.Fatalf("docs/figure.png has %v, not %v: make screenshots", b.Bounds(), a.Bounds())
	}
	off := 0.0
	for y := range a.Bounds().Dy() {
		for x := range a.Bounds().Dx() {
			r, _, _, _ := a.At(x, y).RGBA()
			s, _, _, _ := b.At(x, y).RGBA()
			off += math.Abs(float64(r)-float64(s)) / 65535
		}
	}
	if share := off / float64(a.Bounds().Dx()*a.Bounds().Dy()); share > 0.002 {
		t.Errorf("docs/figure.png differs in %.2f%%: make screenshots", 100*share)
	}
}

func picture(t *testing.T, path string) image.Image {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	img, err := png.Decode(file)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return img
}
