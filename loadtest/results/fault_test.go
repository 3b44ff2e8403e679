package results

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/internal/require"
	"weir/loadtest/measure"
)

// asChild selects the role of this test binary when a test starts it again.
const asChild = "WEIR_RESULTS_CHILD"

func TestMain(m *testing.M) {
	switch dir := os.Getenv(asChild + "_DIR"); os.Getenv(asChild) {
	case "":
		os.Exit(m.Run())
	case "kill":
		writeForever(dir)
	case "limit":
		writeToLimit(dir)
	}
}

// writeForever writes lines until it is killed, and prints a dot for each.
func writeForever(dir string) {
	w, err := Create(dir, testPlan(), About{})
	if err != nil {
		panic(err)
	}
	m, err := OpenManifest(dir)
	if err != nil {
		panic(err)
	}
	for i := range 1 << 20 {
		if err := errors.Join(m.Created("f", 1, 2), w.Interval(testInterval(i))); err != nil {
			panic(err)
		}
		_, _ = os.Stdout.WriteString(".")
	}
}

func TestKilledRunKeepsWhatItHandedOver(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), asChild+"=kill", asChild+"_DIR="+dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	told, err := io.ReadFull(out, make([]byte, 200))
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Kill())
	rest, _ := io.ReadAll(out)
	told += len(rest)
	_ = cmd.Wait() // killed on purpose
	r := open(t, dir)
	if n := len(collect(t, r.Intervals())); n < told || n > told+1 {
		t.Errorf("%d lines kept of %d handed over", n, told)
	}
	m, err := OpenManifest(dir)
	require.NoError(t, err)
	defer m.Close()
	left, err := m.Left()
	if err != nil || len(left) != 1 || left[0] != (Made{"f", 1, 2}) {
		t.Errorf("%v, %v", left, err)
	}
}

func TestFullDisk(t *testing.T) {
	w, dir := create(t)
	require.NoError(t, w.Interval(testInterval(0)))
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	kept := w.intervals.f
	w.intervals.f = full
	err = w.Interval(testInterval(1))
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "/dev/full") {
		t.Errorf("the error must name the reason and the file: %v", err)
	}
	w.intervals.f = kept
	require.NoError(t, errors.Join(full.Close(), w.Event(measure.Event{Time: time.Now(), Kind: measure.EventEnd}), w.Close()))
	if n := len(collect(t, open(t, dir).Intervals())); n != 1 {
		t.Errorf("%d lines, want the 1 before the disk was full", n)
	}
}

// writeToLimit writes until the kernel accepts only a part of a line.
func writeToLimit(dir string) {
	signal.Ignore(syscall.SIGXFSZ)
	w, err := Create(dir, testPlan(), About{})
	if err != nil {
		panic(err)
	}
	limit := syscall.Rlimit{Cur: 10_000, Max: 10_000}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		panic(err)
	}
	for i := range 1000 {
		if err := w.Interval(testInterval(i)); err != nil {
			_, _ = os.Stdout.WriteString(err.Error())
			return
		}
	}
}

func TestPartOfALineIsCutOff(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), asChild+"=limit", asChild+"_DIR="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), IntervalsFile) || !strings.Contains(string(out), "file too large") {
		t.Fatalf("%v: %s", err, out)
	}
	b, err := os.ReadFile(filepath.Join(dir, IntervalsFile))
	if err != nil || len(b) == 0 || b[len(b)-1] != '\n' {
		t.Errorf("the file must end with a whole line: %d bytes, %v", len(b), err)
	}
	if n := len(collect(t, open(t, dir).Intervals())); n == 0 {
		t.Error("nothing was kept")
	}
}
