package results

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"weir/internal/require"
)

// TestStalledDisk checks that a file that accepts nothing, as on a disk that is full of other
// writes, does not delay callers for longer than diskPatience, and has all lines in their order in
// the end.
func TestStalledDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	reader, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer reader.Close()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	l := linesOf(f)
	const lines = 1000 // of 1 KiB: the pipe holds 64
	line := func(i int) []byte { return fmt.Appendf(nil, "%1023d\n", i) }
	longest := time.Duration(0)
	for i := range lines {
		begin := time.Now()
		require.NoError(t, l.append(line(i)))
		longest = max(longest, time.Since(begin))
	}
	if longest < diskPatience/2 || longest > 20*diskPatience {
		t.Errorf("the longest call took %s", longest)
	}
	got := make([]byte, 1024)
	written := make(chan error, 1)
	go func() { written <- l.written() }()
	for i := range lines {
		if i == lines-64-2 { // the pipe holds the last ones
			select {
			case err := <-written:
				t.Fatalf("lines count as written before the file has them: %v", err)
			default:
			}
		}
		if n, err := reader.Read(got); err != nil || n != len(got) || !bytes.Equal(got, line(i)) {
			t.Fatalf("line %d is %q, %v", i, bytes.TrimSpace(got[:n]), err)
		}
	}
	require.NoError(t, <-written)
	_ = l.close() // a pipe does not support sync
	if l.append(line(0)) == nil {
		t.Error("a closed file takes lines")
	}
}
