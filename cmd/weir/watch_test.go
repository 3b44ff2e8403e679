package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/pause"
	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab/browser"
	"weir/lab/labtest"
	"weir/loadtest/analysis"
	"weir/loadtest/results"
	"weir/web"
)

// A watching is a weir with a live page, as a process of its own.
type watching struct {
	*exec.Cmd
	url  string
	told chan string // its output, sent when it has ended
}

// watch starts weir, which prints the address of its live page.
func watch(t *testing.T, args ...string) *watching {
	t.Helper()
	return watchIn(t, t.TempDir(), args...)
}

// watchIn is like watch, in an existing folder.
func watchIn(t *testing.T, dir string, args ...string) *watching {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 3*time.Minute)
	w := &watching{Cmd: exec.CommandContext(ctx, "weir", args...), told: make(chan string, 1)}
	w.Dir = dir
	r, err := w.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, w.Start())
	t.Cleanup(func() { cancel(); _ = w.Wait() })
	lines := bufio.NewReader(r)
	said := ""
	for w.url == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("weir %v ended: %s%s", args, said, line)
		}
		said += line
		if _, url, ok := strings.Cut(line, "live page      "); ok {
			w.url = strings.TrimSpace(url)
		}
	}
	go func() {
		rest, _ := io.ReadAll(lines) // the remaining output
		w.told <- said + string(rest)
	}()
	return w
}

// end interrupts it, or waits for its own end, and returns its exit code.
func (w *watching) end(t *testing.T, interrupt bool) (code exitCode, said string) {
	t.Helper()
	if interrupt {
		require.NoError(t, w.Process.Signal(os.Interrupt))
	}
	said = <-w.told
	_ = w.Wait() // its code is returned
	return exitCode(w.ProcessState.ExitCode()), said
}

// The page of a real run follows it, reconnects to another server, and finally has as many seconds
// as the run directory.
func TestWatchInBrowser(t *testing.T) {
	t.Parallel()
	if _, ok := web.Bundle("live.js"); !ok {
		if os.Getenv("WEIR_REQUIRE") == "all" {
			t.Fatal(web.Missing)
		}
		t.Skip(web.Missing)
	}
	dir := filepath.Join(t.TempDir(), "run")
	address := labtest.Address(t)
	w := watch(t, "run", "--watch="+address, "--clients", "1,2,4", "--duration", "10m", "--set", "workload.think=5ms", "--out", dir)
	p := browser.Open(t, w.url, 1600, 1000)
	p.Wait(`Number(document.querySelector("#time-throughput")?.dataset.points) > 3 && document.querySelector("[role=progressbar]").ariaValueNow > 0`)
	p.Reload() // in the middle
	p.Wait(`Number(document.querySelector("#time-throughput")?.dataset.points) > 5`)
	require.NoError(t, w.Process.Signal(os.Interrupt))
	p.Wait(`document.querySelector(".state").textContent.startsWith("The run is over")`)
	p.Wait(`document.querySelector(".says .meta").textContent === "The result:"`)
	if code, said := w.end(t, false); code != exitInterrupt {
		t.Fatalf("exit code %d: %s", code, said)
	}
	p.Wait(`document.querySelector(".wire.lost")`)

	w = watch(t, "watch", dir, "--listen", address)
	p.Wait(`!document.querySelector(".wire.lost")`)
	run, err := results.Open(dir)
	require.NoError(t, err)
	found, series, err := analysis.AnalyzeWithSeries(run)
	require.NoError(t, err)
	p.Wait(fmt.Sprintf(`document.querySelector("#time-throughput").dataset.points === "%d"`, len(series.Points)))
	p.Wait(`document.querySelector(".says .meta").textContent === "The result:" && !document.querySelector("a.report").hidden`)
	var verdict, report string
	p.Eval(`document.querySelector(".verdict").textContent`, &verdict)
	p.Eval(`document.querySelector("a.report").href`, &report)
	if !strings.HasSuffix(verdict, found.Headline) {
		t.Errorf("the page says %q, not %q", verdict, found.Headline)
	}
	opened := browser.Open(t, report, 1200, 900)
	opened.Wait(`document.querySelector(".verdict") || document.body.textContent.length > 1000`)
	for _, e := range append(opened.Errors(), p.Errors()...) {
		if !strings.Contains(e, "net::ERR_") && !strings.Contains(e, "/events") { // the server was away
			t.Error(e)
		}
	}
	if code, said := w.end(t, true); code != exitFine {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// weir watch waits for a run that does not exist yet, and needs no file of it.
func TestWatchWaits(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "later")
	w := watch(t, "watch", dir, "--listen", "127.0.0.1:0")
	if text := labtest.Get(t, w.url+"plain"); !strings.Contains(text, "Waiting for the run to begin") {
		t.Error(text)
	}
	if code, said := w.end(t, true); code != exitFine || !strings.Contains(said, "does not exist yet") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// The page of a campaign has all its runs, and the page of a search shows the search.
func TestWatchCampaignAndSearch(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "campaign")
	w := watch(t, "run", "--watch=0", "--target", "simulated://x?service=1ms", "--repeat", "2", "--clients", "1,2", "--duration", "1s",
		"--set", "load.ramp=0s", "--set", "load.warmup=0s", "--out", dir)
	if code, said := w.end(t, false); code != exitFine && code != exitInvalid {
		t.Errorf("exit code %d: %s", code, said)
	}
	w = watch(t, "watch", dir, "--listen", "0")
	for n := 0; n != 2; {
		n = strings.Count(labtest.Get(t, w.url+"plain"), "/plain?run=")
	}
	w.end(t, true)
	w = watch(t, "find", "simulated://x?service=1ms", "--watch=0", "--duration", "300ms", "--time", "3s", "--out",
		filepath.Join(t.TempDir(), "search"))
	if code, said := w.end(t, false); code != exitFine && code != exitInvalid {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// An open page does not prevent a run from ending, and an interrupt ends the run and the page.
func TestWatchIsInterrupted(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	t.Parallel()
	w := watch(t, "run", "--watch=0", "--target", "simulated://x?service=1ms", "--clients", "4", "--duration", "10m", "--out",
		filepath.Join(t.TempDir(), "run"))
	resp, err := http.Get(w.url + "events")
	require.NoError(t, err)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() && !strings.Contains(lines.Text(), `"state":"running"`) {
	}
	if code, said := w.end(t, true); code != exitInterrupt {
		t.Errorf("exit code %d: %s", code, said)
	}
	told := ""
	for lines.Scan() {
		told += lines.Text()
	}
	if !strings.Contains(told, `"state":"ended"`) || !strings.Contains(told, `"final":true`) {
		t.Errorf("the page was not told the end: %.2000s", told)
	}
}

// The analysis for the page contains the findings that the page shows.
func TestGlance(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	if code, said := started(t, "run", "--target", "simulated://x?service=1ms", "--clients", "1,2", "--duration", "500ms", "--set",
		"load.ramp=0s", "--set", "load.warmup=0s", "--out", dir).ended(); code != exitFine && code != exitInvalid {
		t.Fatalf("exit code %d: %s", code, said)
	}
	code, said := started(t, "glance", dir).ended()
	if code != exitFine || !strings.HasPrefix(said, `{"at":`) || !strings.Contains(said, `"headline":"`) {
		t.Errorf("exit code %d: %.300s", code, said)
	}
	if code, said := started(t, "glance", filepath.Dir(dir)).ended(); code != exitError || !strings.Contains(said, "is not a run directory") {
		t.Errorf("exit code %d: %.300s", code, said)
	}
}

// Invalid flags are reported before anything is measured.
func TestWatchUsage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("short"), 0o600))
	for want, args := range map[string][]string{
		"is a file":                 {"watch", file},
		"is no address":             {"watch", "x", "--listen", "a b"},
		"16 characters or more":     {"watch", "x", "--token-file", file},
		"no such file":              {"watch", "x", "--token-file", file + "x"},
		"needs --watch":             {"run", "--watch-token-file", file},
		"use HOST:PORT":             {"run", "--watch=http://x:1/"},
		"2 arguments given":         {"watch", "a", "b"},
		"is not an address of this": {"watch", "x", "--listen", "192.0.2.1:0"},
	} {
		if code, said := weir(t, args...); code == exitFine || !strings.Contains(said, want) {
			t.Errorf("weir %v: exit code %d: %s", args, code, said)
		}
	}
}

// The commands of docs/seeing.md about the live page work as written, except for the port.
func TestWatchPageOfDocs(t *testing.T) {
	tier.Full(t, "the page, line by line")
	t.Parallel()
	text := section(t, "seeing.md", "### The live page")
	dir := t.TempDir()
	scenario := "target: simulated://x?service=1ms\nload: {clients: [1, 2], ramp: 0s, warmup: 0s, duration: 500ms}\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "scenario.yaml"), []byte(scenario), 0o600))
	ran := 0
	for line := range strings.Lines(text) {
		command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ weir ")
		if !ok {
			continue
		}
		ran++
		args := strings.Fields(command)
		forever := args[0] == "watch"
		if args[len(args)-1] == "--watch" {
			args[len(args)-1] = "--watch=0"
		} else {
			args = append(args, "--listen", "0")
		}
		if code, said := watchIn(t, dir, args...).end(t, forever); code != exitFine && code != exitInvalid {
			t.Errorf("weir %s: exit code %d: %s", command, code, said)
		}
	}
	if ran != 3 {
		t.Errorf("%d commands found", ran)
	}
}

// On a terminal a run with an open page waits after its end until the page is closed.
func TestWatchWaitsForPages(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	t.Parallel()
	if _, err := exec.LookPath("script"); err != nil {
		t.Skip("script, of the package bsdutils, is not installed")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	log := filepath.Join(t.TempDir(), "log")
	cmd := exec.CommandContext(ctx, "script", "-qfc", "weir run --watch=0 --target 'simulated://x?service=1ms' --clients 1 "+
		"--duration 3s --out "+filepath.Join(t.TempDir(), "run"), log)
	require.NoError(t, cmd.Start())
	said := func(what string) string {
		for {
			b, _ := os.ReadFile(log) // it may not be there yet
			if _, after, ok := strings.Cut(string(b), what); ok {
				return after
			}
			if ctx.Err() != nil {
				t.Fatalf("it never said %q: %s", what, b)
			}
			pause.For(ctx, 50*time.Millisecond)
		}
	}
	url := strings.Fields(said("live page      "))[0]
	resp, err := http.Get(url + "events")
	require.NoError(t, err)
	said("is served until it is closed, or Ctrl-C")
	again, err := http.Get(url + "plain")
	if err != nil {
		t.Fatal("the page is gone while it is open: ", err)
	}
	again.Body.Close()
	resp.Body.Close()
	if err := cmd.Wait(); err != nil && ctx.Err() != nil {
		t.Error(err)
	}
}
