package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab/browser"
	"weir/lab/labtest"
	"weir/loadtest/results"
)

// A shot is a picture of a page.
type shot struct {
	name          string // name of the file, without its ending
	width, height int    // CSS pixels of the window; the part below is cut off
	dark          bool
}

// shots returns the pictures of a page that the documentation shows.
func shots(page string) []shot {
	return []shot{{page, 1600, 1240, false}, {page + "-dark", 1600, 1240, true}, {page + "-phone", 400, 1000, true}}
}

// The pages of a real run look as the README shows them, and have no errors: the live page during
// the run, and the report after it. `make screenshots` runs this test to write docs/*.png from a
// run of a minute, and the report from another one, which no browser disturbs. Otherwise the run is
// short and the pictures are only checked.
func TestScreenshots(t *testing.T) {
	tier.Full(t, "the pictures of the pages")
	labtest.Need(t, "chromium")
	dir, hold, clients := os.Getenv("WEIR_SCREENSHOTS"), "8s", "1,2,4,8,16,32,64"
	if dir == "" {
		tier.Slow(t, "a browser takes its time")
		t.Parallel()
		dir, hold, clients = t.TempDir(), "2s", strings.TrimSuffix(strings.Repeat("1,2,4,", 20), ",") // until it is interrupted
	}
	service := limitedService(t)
	home := t.TempDir()
	out := filepath.Join(home, "runs", "disk-array")
	run := []string{"run", "--target", service, "--clients", clients, "--duration", hold, "--set", "name=disk-array", "--set",
		"load.ramp=500ms", "--set", "load.warmup=500ms"}
	cmd := exec.CommandContext(t.Context(), "weir", append(run, "--out", "runs/disk-array", "--watch=127.0.0.1:0")...)
	cmd.Dir = home
	said, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	live := ""
	lines := bufio.NewScanner(said)
	for live == "" && lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "live page"); ok {
			live = strings.TrimSpace(rest)
		}
	}
	if live == "" {
		t.Fatal("it does not say where the live page is")
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for lines.Scan() {
			t.Log(lines.Text())
		}
	}()
	untilHeld(t, out, min(6, strings.Count(clients, ",")+1))
	for _, s := range shots("live") {
		s.take(t, live, dir)
	}
	_ = cmd.Process.Signal(os.Interrupt) // it reports the measurements so far
	<-drained
	_ = cmd.Wait() // its exit code depends on the validity
	if os.Getenv("WEIR_SCREENSHOTS") != "" {
		out = filepath.Join(home, "runs", "undisturbed")
		code, said := start(t, home, "weir", append(run, "--out", out)...).ended()
		t.Logf("exit code %d\n%s", code, said)
	}
	for _, s := range shots("report") {
		s.take(t, "file://"+filepath.Join(out, results.ReportFile), dir)
	}
}

// limitedService starts a service as a process of its own. Its limits are set by flags and do not
// depend on this machine, so that its curve is the same everywhere.
func limitedService(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "weir", "serve", "--synthetic", "1000x256KiB", "--delay", "20ms", "--total-rate", "1Gbit/s")
	said, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	first, err := bufio.NewReader(said).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(first), "serving ")
	if err != nil || !ok {
		t.Fatalf("%q: %v", first, err)
	}
	return url
}

// take opens the page at url and writes its picture into dir.
func (s shot) take(t *testing.T, url, dir string) {
	t.Helper()
	var options []browser.Option
	if s.dark {
		options = append(options, browser.Dark())
	}
	p := browser.Open(t, url, s.width, s.height, options...)
	p.Wait(`document.querySelector("canvas, svg")`)
	whole := filepath.Join(t.TempDir(), s.name+".png")
	p.Screenshot(whole)
	if said := p.Errors(); len(said) > 0 {
		t.Errorf("%s complains: %q", s.name, said)
	}
	scale := 1
	if s.width < 600 {
		scale = 2 // like phones
	}
	size := smallPicture(t, whole, filepath.Join(dir, s.name+".png"), s.width*scale, s.height*scale)
	t.Logf("%s.png has %d kB", s.name, size/1000)
	if size > 200_000 {
		t.Errorf("%s.png has %d bytes: at most 200 kB", s.name, size)
	}
}
