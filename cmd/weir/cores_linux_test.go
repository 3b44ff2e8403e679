package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"weir/internal/require"
)

// A server on one processor has no thread on another.
func TestServeOnOneCore(t *testing.T) {
	t.Parallel()
	cmd, url := serving(t, "serve", "--events", "100x40KiB", "--cores", "1", "--while-stdin")
	resp, err := http.Get(url + "/file000000.dat")
	require.NoError(t, err)
	n, err := io.Copy(io.Discard, resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil || n != 100*40<<10 {
		t.Fatal(n, err)
	}
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", cmd.Process.Pid))
	if err != nil || len(threads) == 0 {
		t.Skip("this system has no /proc")
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(filepath.Base(thread))
		require.NoError(t, err)
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(id, &set); err == nil && set.Count() != 1 {
			t.Errorf("a thread may run on %d processors", set.Count())
		}
	}
}
