package main

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"hash/adler32"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab/browser"
	"weir/lab/labtest"
	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/trial"
)

// The coordinator's page looks as the documentation shows it: three agents and a storage server of
// limited speed, with a running request, a partial request and a request that waits for approval.
// Only `make screenshots` takes the pictures.
func TestScreenshotsOfTransfers(t *testing.T) {
	tier.Full(t, "the pictures of the pages")
	dir := os.Getenv("WEIR_SCREENSHOTS")
	if dir == "" {
		t.Skip("make screenshots takes them")
	}
	labtest.Need(t, "chromium")
	r := rooms(t, trial.Options{Sites: []trial.Site{{Name: "CERN"}, {Name: "DESY"}, {Name: "FNAL"}}, Coordinator: []string{"--plain"}})
	c, err := r.Client()
	require.NoError(t, err)
	defer c.Close()
	tape := t.TempDir()
	slow := exec.CommandContext(t.Context(), "weir", "serve", tape, "--total-rate", "300Mbit/s")
	said, err := slow.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, slow.Start())
	defer func() {
		_ = slow.Process.Kill()
		_ = slow.Wait()
	}()
	first, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		t.Fatal(first, err)
	}
	if _, err := c.AddSite(t.Context(), transfer.NewSite{Name: "RAL",
		URL: strings.TrimSuffix(strings.TrimSpace(strings.TrimPrefix(first, "serving ")), "/")}); err != nil {
		t.Fatal(err)
	}
	files := transfer.NewFiles{Dataset: "/store/data/Run2026C/Muon/RAW", Site: "RAL", By: "this test"}
	text := make([]byte, 4<<20)
	for i := range 400 {
		_, _ = rand.Read(text[:1024]) // never fails
		f := catalog.File{Name: fmt.Sprintf("%s/%04d.root", files.Dataset, i), Size: int64(len(text)),
			Adler: fmt.Sprintf("%08x", adler32.Checksum(text))}
		at := filepath.Join(tape, filepath.FromSlash(f.Name))
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
		require.NoError(t, os.WriteFile(at, text, 0o600))
		files.Files = append(files.Files, transfer.NewFile{File: f})
	}
	if _, err := c.AddFiles(t.Context(), files); err != nil {
		t.Fatal(err)
	}
	for _, run := range []string{"A", "B", "D"} {
		name := "/store/data/Run2026" + run + "/Muon/RAW"
		r.fills("CERN", name, trial.Files(name, 10, 1<<20)...)
	}
	r.completes(r.submits(transfer.Submission{Dataset: "/store/data/Run2026A/Muon/RAW", To: "DESY"}))
	for _, f := range trial.Files("/store/data/Run2026B/Muon/RAW", 10, 1)[3:5] {
		require.NoError(t, os.Remove(filepath.Join(r.Root("CERN"), filepath.FromSlash(f.Name))))
	}
	r.ends(r.submits(transfer.Submission{Dataset: "/store/data/Run2026B/Muon/RAW", To: "FNAL", Tries: 1}))
	if _, err := c.Submit(t.Context(), transfer.Submission{Dataset: "/store/data/Run2026D/Muon/RAW", To: "FNAL",
		Comment: "for the calibration"}); err != nil {
		t.Fatal(err)
	}
	runs := r.submits(transfer.Submission{Dataset: files.Dataset, To: "DESY"})
	r.submits(transfer.Submission{Dataset: files.Dataset, To: "FNAL"})
	link := func() string { return strings.TrimSpace(r.wants(0, words("coordinator link"))) }
	for _, s := range []struct {
		shot
		at string
	}{{shot{"transfer", 1400, 1000, false}, "#/"}, {shot{"transfer-dark", 1400, 1000, true}, "#/"},
		{shot{"transfer-request", 1400, 1000, false}, fmt.Sprintf("#/requests/%d", runs)}} {
		var options []browser.Option
		if s.dark {
			options = append(options, browser.Dark())
		}
		p := browser.Open(t, link(), s.width, s.height, options...)
		p.Wait(`document.querySelector("nav")`)
		p.Eval(`location.hash = "`+s.at+`"`, nil)
		p.Wait(`document.querySelector("canvas")`)
		begin := time.Now()
		p.Wait(fmt.Sprintf(`Date.now() > %d`, begin.Add(16*time.Second).UnixMilli())) // so that the chart shows some time
		whole := filepath.Join(t.TempDir(), s.name+".png")
		p.Screenshot(whole)
		if said := p.Errors(); len(said) > 0 {
			t.Errorf("%s complains: %q", s.name, said)
		}
		if size := smallPicture(t, whole, filepath.Join(dir, s.name+".png"), s.width, s.height); size > 200_000 {
			t.Errorf("%s.png has %d bytes: at most 200 kB", s.name, size)
		}
	}
}
