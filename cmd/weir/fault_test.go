package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/analysis"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/storage"
	"weir/storage/simulated"
)

func TestInterruptFinishesAndReports(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	p := started(t, "run", "--clients", "2", "--duration", "10m", "--set", "workload.think=5ms", "--out", dir)
	untilHeld(t, dir, 1)
	p.send(t, os.Interrupt)
	code, said := p.ended()
	if code != exitInterrupt {
		t.Errorf("exit code %d", code)
	}
	for _, w := range []string{"finishing", "report.html"} {
		if !strings.Contains(said, w) {
			t.Errorf("it does not say %q:\n%s", w, said)
		}
	}
	if f := findings(t, dir); len(f.Curve) != 1 || f.Curve[0].Done == 0 {
		t.Errorf("what was measured is not in the findings: %+v", f.Curve)
	}
}

// No measurements are lost by kill -9. Afterwards weir can remove the files that the run made on
// the target, and removes no other files.
func TestKillLosesNothing(t *testing.T) {
	t.Parallel()
	target := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(target, "others.txt"), []byte("not ours"), 0o600))
	dir := filepath.Join(t.TempDir(), "run")
	p := started(t, "run", "--target", "file://"+target, "--clients", "3", "--duration", "10m", "--out", dir,
		"--set", "workload={kind: write, size: 64KiB, think: 1ms}")
	untilHeld(t, dir, 1)
	p.kill(t)
	entries, err := filepath.Glob(filepath.Join(target, "weir-*", "*", "*"))
	if err != nil || len(entries) == 0 {
		t.Fatalf("nothing was written before the kill: %v", err)
	}
	stranger := filepath.Join(filepath.Dir(entries[0]), "stranger.txt")
	require.NoError(t, os.WriteFile(stranger, []byte("put there by somebody else"), 0o600))

	code, said := weir(t, "report", "--verbose", dir)
	if code != exitFine && code != exitInvalid || !strings.Contains(said, "the run was aborted") {
		t.Errorf("report of the killed run: exit code %d\n%s", code, said)
	}
	if f := findings(t, dir); len(f.Curve) != 1 || f.Curve[0].Done == 0 {
		t.Errorf("what was measured is lost: %+v", f.Curve)
	}
	code, said = weir(t, "clean", dir)
	if code != exitError || !strings.Contains(said, "stranger.txt") {
		t.Errorf("clean: exit code %d, want an error that names the stranger's file\n%s", code, said)
	}
	if err := os.Remove(stranger); err != nil {
		t.Fatalf("the stranger's file is gone: %v", err)
	}
	if code, said = weir(t, "clean", dir); code != exitFine {
		t.Errorf("clean again: exit code %d\n%s", code, said)
	}
	left, err := os.ReadDir(target)
	if err != nil || len(left) != 1 || left[0].Name() != "others.txt" {
		t.Errorf("left in the target: %v (%v), want only others.txt", left, err)
	}
}

// If the clients need more open files than one process may have, weir starts several processes by
// itself. If they need more than the machine allows, the error is reported before the run.
func TestOpenFileLimit(t *testing.T) {
	t.Parallel()
	s := labtest.Start(t, lab.NginxConfig{})
	fill(t, s.Data, 4, 4096)
	dir := filepath.Join(t.TempDir(), "run")
	limited := func(args ...string) (code exitCode, said string) {
		return start(t, t.TempDir(), "sh", append([]string{"-c", `ulimit -n 300; exec "$0" "$@"`, "weir", "run", "--target", s.URL, "--clients",
			"120"}, args...)...).ended()
	}
	code, said := limited("--duration", "3s", "--set", "workload.think=500ms", "--out", dir)
	if code != exitFine && code != exitInvalid {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	if !strings.Contains(said, "in 3 processes") {
		t.Errorf("it does not say that it runs in 3 processes:\n%s", said)
	}
	f := findings(t, dir)
	if c := f.Curve[0]; c.Errors > 0 || c.ActiveClients < 110 || c.ActiveClients > 121 { // processes begin a moment after each other
		t.Errorf("%v clients active, %d errors, want 120 and none", c.ActiveClients, c.Errors)
	}

	if code, said := limited("--processes", "1"); code != exitUsage || !strings.Contains(said, "240 open files") {
		t.Errorf("exit code %d, want %d and the number of files needed:\n%s", code, exitUsage, said)
	}
}

// A full disk under the run directory ends the run with its reason. Earlier measurements can be
// read.
func TestFullDisk(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can mount a small file system")
	}
	disk := t.TempDir()
	require.NoError(t, syscall.Mount("weir-test", disk, "tmpfs", 0, "size=56k"))
	defer func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	}()
	dir := filepath.Join(disk, "run")
	code, said := weir(t, "run", "-q", "--out", dir, "--target", "simulated://x?servers=4&service=1ms&files=9x1KiB", "--clients", "1",
		"--duration", "2m", "--set", "hosts=[{name: localhost, role: both}]")
	if code != exitError || !strings.Contains(said, "no space left") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
	run, err := results.Open(dir)
	require.NoError(t, err)
	n := 0
	for _, err := range run.Intervals() {
		require.NoError(t, err)
		n++
	}
	if n == 0 {
		t.Error("no interval can be read")
	}
}

func TestListOfManyFiles(t *testing.T) {
	tier.Slow(t, "runs for seconds")
	t.Parallel()
	target := "simulated://x?servers=9&service=1ms&files=100000x1KiB"
	var list strings.Builder
	list.WriteString("missing/1\nmissing/2\n")
	for i := range 100_000 {
		fmt.Fprintln(&list, simulated.FileName(i))
	}
	path := filepath.Join(t.TempDir(), "fileList.txt")
	require.NoError(t, os.WriteFile(path, []byte(list.String()), 0o600))
	_, said := weir(t, "plan", "--target", target, "--set", "files.list="+path)
	if !strings.Contains(said, path) || !strings.Contains(said, "100002") {
		t.Errorf("the plan does not name the list and how long it is:\n%s", said)
	}
	f := measureFor(t, "--target", target, "--clients", "9", "--duration", "1s", "--set", "files.list="+path)
	if f.Curve[0].Done < 9 { // one of each client
		t.Errorf("%d operations, errors %v", f.Curve[0].Done, f.Curve[0].ErrorsBy)
	}
	few := filepath.Join(t.TempDir(), "few.txt")
	require.NoError(t, os.WriteFile(few, []byte("missing/1\n"), 0o600))
	f = measureFor(t, "--target", target, "--clients", "1", "--duration", "1s", "--set", "files.list="+few)
	if c := f.Curve[0]; c.Done > 0 || c.ErrorsBy[storage.NotFound] == 0 {
		t.Errorf("a missing file: %d done, errors %v, want only not found", c.Done, c.ErrorsBy)
	}
	empty := filepath.Join(t.TempDir(), "empty.txt")
	require.NoError(t, os.WriteFile(empty, []byte("\n# nothing\n"), 0o600))
	if code, said := weir(t, "run", "--target", target, "--set", "files.list="+empty); code != exitUsage {
		t.Errorf("an empty list: exit code %d\n%s", code, said)
	}
}

// If a service dies while files are made, the run ends with an error and lists the files that
// remain. weir clean removes them when the service is back.
func TestServerKilledWhilePreparing(t *testing.T) {
	t.Parallel()
	s := labtest.Start(t, lab.NginxConfig{})
	dir := filepath.Join(t.TempDir(), "run")
	ended := make(chan string, 1)
	go func() {
		code, said := weir(t, "run", "--out", dir, "--target", s.URL, "--clients", "1",
			"--set", "files.make.count=1000000", "--set", "files.make.size=1kB")
		ended <- fmt.Sprintf("exit code %d\n%s", code, said)
	}()
	require.Eventually(t, "2000 bytes of the manifest", func() bool { return grows(filepath.Join(dir, results.ManifestFile), 2000) })
	s.Kill()
	said := <-ended
	if !strings.HasPrefix(said, "exit code 1\n") || !strings.Contains(said, "weir clean") {
		t.Errorf("want an error that names weir clean, got %s", said)
	}
	require.NoError(t, s.Restart(t.Context()))
	if code, said := weir(t, "clean", dir); code != exitFine {
		t.Errorf("clean: exit code %d: %s", code, said)
	}
	empty(t, s.Data)
}

// The first interrupt is enough to end the making of files, and the files made so far are removed.
func TestInterruptWhilePreparing(t *testing.T) {
	t.Parallel()
	dir, data := filepath.Join(t.TempDir(), "run"), t.TempDir()
	p := started(t, "run", "--target", "file://"+data, "--clients", "1", "--out", dir,
		"--set", "files.make.count=1000000", "--set", "files.make.size=1kB")
	require.Eventually(t, "2000 bytes of the manifest", func() bool { return grows(filepath.Join(dir, results.ManifestFile), 2000) })
	p.send(t, os.Interrupt)
	if code, said := p.ended(); code != exitInterrupt || !strings.Contains(said, "nothing was measured") {
		t.Errorf("exit code %d, it says: %s", code, said)
	}
	empty(t, data)
}

// If a worker is killed, its clients are lost and the exit code changes, but the report is
// complete.
func TestWorkerKilled(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	p := started(t, "run", "--clients", "4", "--duration", "6s", "--set", "workload.think=5ms", "--processes", "2", "--out", dir)
	untilHeld(t, dir, 1)
	killed := false
	for _, pid := range children(t, p.Process.Pid) {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // it may be gone
		if !killed && strings.Contains(string(line), "\x00worker") {
			require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
			killed = true
		}
	}
	if !killed {
		t.Fatal("no worker was found")
	}
	code, said := p.ended()
	for _, w := range []string{"was lost", "report.html", "signal: killed"} {
		if !strings.Contains(said, w) {
			t.Errorf("it does not say %q:\n%s", w, said)
		}
	}
	if code != exitError {
		t.Errorf("exit code %d, want %d", code, exitError)
	}
	if f := findings(t, dir); len(f.Curve) != 1 || f.Curve[0].Done == 0 {
		t.Errorf("curve %+v, want one step with operations", f.Curve)
	}
}

// children returns the processes that pid has started.
func children(t *testing.T, pid int) (all []int) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil || len(files) == 0 {
		t.Skip("this kernel does not tell a process's children")
	}
	for _, f := range files {
		b, _ := os.ReadFile(f) // a thread may be gone
		for _, word := range strings.Fields(string(b)) {
			child, err := strconv.Atoi(word)
			require.NoError(t, err)
			all = append(all, child)
		}
	}
	return all
}

// A kind of operation that the service does not support is refused before the load.
func TestUnsupportedOperationsAreRefused(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead || strings.HasSuffix(r.URL.Path, "/") {
			w.WriteHeader(http.StatusNotImplemented)
			return
		}
		w.Header().Set("Content-Length", "100")
		if r.Method == http.MethodGet {
			_, _ = w.Write(make([]byte, 100))
		}
	}))
	defer s.Close()
	for kind, refused := range map[string]bool{"checksum": true, "list": true, "stat": false} {
		code, said := weir(t, "run", "--quiet", "--out", filepath.Join(t.TempDir(), "run"), "--target", s.URL, "--clients", "1",
			"--duration", "500ms", "--set", "load={ramp: 0, warmup: 0}", "--set", "files.list="+writeTemp(t, "d/f 100\n"),
			"--set", "workload={kind: mix, mix: {read: 9, "+kind+": 1}, think: 5ms}")
		if (code == exitError) != refused || refused && !strings.Contains(said, "cannot do "+kind) {
			t.Errorf("%s: exit code %d:\n%s", kind, code, said)
		}
	}
}

// If the service reports a different checksum for a read, all results of the run count the read as
// done and wrong, and as an error. Checks follow the reads, so that a short run ends before all
// checks are made.
func TestWrongPayloadsAreCountedOnce(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Digest", "adler32=00000001")
		w.Header().Set("Content-Length", "100")
		if r.Method == http.MethodGet {
			_, _ = w.Write(make([]byte, 100))
		}
	}))
	defer s.Close()
	dir := filepath.Join(t.TempDir(), "run")
	code, said := weir(t, "run", "--quiet", "--out", dir, "--target", s.URL, "--clients", "2", "--duration", "1s",
		"--set", "load={ramp: 0, warmup: 0}", "--set", "files.list="+writeTemp(t, "f 100\n"), "--set", "workload={verify: 100%, think: 20ms}")
	f := findings(t, dir)
	c := f.Curve[0]
	if code != exitInvalid || c.Wrong == 0 || c.Errors > 0 || c.ErrorRatio != float64(c.Wrong)/float64(c.Done) {
		t.Errorf("exit code %d, %d done, %d wrong, %d errors, error ratio %v\n%s", code, c.Done, c.Wrong, c.Errors, c.ErrorRatio, said)
	}
	for _, name := range []string{"curve.csv", "intervals.csv"} {
		rows, err := csv.NewReader(bytes.NewReader(require.File(t, filepath.Join(dir, name)))).ReadAll()
		require.NoError(t, err)
		var done, wrong int64
		for _, row := range rows[1:] {
			if phase := slices.Index(rows[0], "phase"); phase >= 0 && row[phase] != measure.Measured {
				continue
			}
			for column, sum := range map[string]*int64{"done": &done, "wrong": &wrong} {
				x, err := strconv.ParseInt(row[slices.Index(rows[0], column)], 10, 64)
				require.NoError(t, err)
				*sum += x
			}
		}
		if done != c.Done || wrong != c.Wrong {
			t.Errorf("%s has %d done and %d wrong, findings.json %d and %d", name, done, wrong, c.Done, c.Wrong)
		}
	}
}

// A compressed response that was not requested causes a warning and makes the result suspect if the sizes of the files are unknown. If
// sizes are requested, the warning comes before the load.
func TestUnrequestedEncodingIsWarnedOf(t *testing.T) {
	t.Parallel()
	for encoding, workload := range map[string]string{"gzip": "{think: 20ms}", "deflate": "{think: 20ms, part: {size: 10B, count: 1}}",
		"identity": "{think: 20ms}"} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", encoding)
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(make([]byte, 100)))
		}))
		defer s.Close()
		dir := filepath.Join(t.TempDir(), "run")
		_, said := weir(t, "run", "--quiet", "--out", dir, "--target", s.URL, "--clients", "2", "--duration", "1s",
			"--set", "load={ramp: 0, warmup: 0}", "--set", "files.list="+writeTemp(t, "f\n"), "--set", "workload="+workload)
		f := findings(t, dir)
		warned := slices.ContainsFunc(f.Warnings, func(w string) bool { return strings.Contains(w, encoding) })
		state, detail := status(f, "verification")
		c := f.Curve[0]
		if c.Done == 0 || warned != (encoding != "identity") || (c.Encoded == c.Done && state == analysis.Warn) != (encoding == "gzip") {
			t.Errorf("%s: %d of %d reads, %s: %s, %q\n%s", encoding, c.Encoded, c.Done, state, detail, f.Warnings, said)
		}
	}
}
