package results

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/loadtest/measure"
	"weir/monitor"
)

// runWith returns a run with the given texts as intervals and samples.
func runWith(t testing.TB, intervals, hosts string) *Run {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{IntervalsFile: intervals, HostsFile: hosts} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return &Run{Dir: dir}
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"start":"2026-01-01T00:00:00Z","done":%d}`+"\n", i)
	}
	return b.String()
}

// Pieces that are decoded on many cores arrive in the order of the file, each with its row.
func TestStreamKeepsTheOrder(t *testing.T) {
	const lines = 40_000 // about fifteen pieces
	run := runWith(t, numbered(lines), "")
	next := int64(0)
	render := func(out []byte, iv *measure.Interval) []byte { return fmt.Appendf(out, "row %d", iv.Done) }
	err := run.EachInterval(render, func(iv *measure.Interval, row []byte) error {
		if iv.Done != next || string(row) != fmt.Sprintf("row %d", next) {
			return fmt.Errorf("line %d has %d and %q", next, iv.Done, row)
		}
		next++
		return nil
	})
	if err != nil || next != lines {
		t.Errorf("%d lines, %v", next, err)
	}
}

func TestStreamEndsEarly(t *testing.T) {
	before := runtime.NumGoroutine()
	run := runWith(t, numbered(40_000), "")
	enough := errors.New("enough")
	n := 0
	err := run.EachInterval(nil, func(*measure.Interval, []byte) error {
		if n++; n == 12_345 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || n != 12_345 {
		t.Errorf("%d lines, %v", n, err)
	}
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; { // including goroutines about to end
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines are left", runtime.NumGoroutine()-before)
		}
		runtime.Gosched()
	}
}

// A stream and an iterator of the same file return the same lines and errors.
func TestStreamAndIteratorAgree(t *testing.T) {
	good, bad := `{"start":"2026-01-01T00:00:00Z","done":1}`, `{"start":"2026-01-01T00:00:00Z","done":-1}`
	long := `{"start":"2026-01-01T00:00:00Z","server":"` + strings.Repeat("x", 3*piece) + `"}`
	for name, text := range map[string]string{
		"empty": "", "one": good, "no newline": good + "\n" + good, "empty lines": "\n\n \n" + good + "\r\n\n" + good + "\n\n",
		"torn": good + "\n" + good[:20], "torn and impossible": good + "\n" + bad, "impossible": good + "\n\n" + bad + "\n" + good + "\n",
		"damaged": good + "\n{\n" + good + "\n", "damaged at a distance": numbered(9000) + "x\n" + numbered(9000),
		"long": good + "\n" + long + "\n" + good + "\n", "long and torn": good + "\n" + long[:2*piece],
		"far too long": good + "\n" + strings.Repeat(" ", longest+piece) + "\n" + good + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			run := runWith(t, text, "")
			var want, got []int64
			var wantErr error
			for iv, err := range run.Intervals() {
				if wantErr = err; err == nil {
					want = append(want, iv.Done)
				}
			}
			gotErr := run.EachInterval(nil, func(iv *measure.Interval, _ []byte) error {
				got = append(got, iv.Done)
				return nil
			})
			if fmt.Sprint(want) != fmt.Sprint(got) || fmt.Sprint(wantErr) != fmt.Sprint(gotErr) {
				t.Errorf("%d lines, %v; the iterator gave %d, %v", len(got), gotErr, len(want), wantErr)
			}
		})
	}
	if err := (&Run{Dir: t.TempDir()}).EachSample(nil, func(*monitor.Sample, []byte) error { return nil }); err != nil {
		t.Errorf("a file that is missing has no lines: %v", err)
	}
}

// FuzzStream compares the stream with the iterator on damaged files.
func FuzzStream(f *testing.F) {
	f.Add([]byte(numbered(3)))
	f.Add(bytes.Join([][]byte{line(f, filled[measure.Interval]()), line(f, testInterval(1)), []byte(`{"start":`)}, []byte("\n")))
	f.Fuzz(func(t *testing.T, text []byte) {
		run := runWith(t, string(text), string(text))
		n, m := 0, 0
		var want error
		for _, err := range run.Intervals() {
			if want = err; err == nil {
				n++
			}
		}
		got := run.EachInterval(nil, func(*measure.Interval, []byte) error { m++; return nil })
		if n != m || fmt.Sprint(want) != fmt.Sprint(got) {
			t.Fatalf("%d lines, %v; the iterator gave %d, %v", m, got, n, want)
		}
		_ = run.EachSample(nil, func(s *monitor.Sample, _ []byte) error { return checkSample(s) })
	})
}
