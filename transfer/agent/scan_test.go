package agent

import (
	"errors"
	"fmt"
	"hash/adler32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/transfer"
)

// A scan finds all files below a folder, completely or not at all, with checksums, and reports the
// unreadable files; the agent's hidden files and links that lead outside are excluded.
func TestScan(t *testing.T) {
	t.Parallel()
	b := newBoss(t)
	s := b.runs("A", t.TempDir())
	outside := filepath.Join(t.TempDir(), "outside")
	top := filepath.Join(s.root, "in", "run")
	if err := errors.Join(os.MkdirAll(filepath.Join(top, "block"), 0o750), os.MkdirAll(filepath.Join(top, ".weir"), 0o750),
		os.WriteFile(outside, []byte("x"), 0o600), os.Symlink(outside, filepath.Join(top, "leak")),
		os.WriteFile(filepath.Join(top, ".weir", "part"), []byte("x"), 0o600), os.Symlink("f0", filepath.Join(top, "link"))); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"link": "file 0"}
	for i := range 2500 {
		name, text := fmt.Sprintf("f%d", i), fmt.Sprintf("file %d", i)
		if i%2 == 1 {
			name = "block/" + name
		}
		want[name] = text
		require.NoError(t, os.WriteFile(filepath.Join(top, name), []byte(text), 0o600))
	}
	b.gives("A", transfer.Work{Scans: []transfer.Scan{{ID: 9, Path: "in/run"}, {ID: 9, Path: "in/run"}, {ID: 10, Path: "nothing"},
		{ID: 11, Path: "../.."}}})
	found := map[int64][]transfer.ScannedFile{}
	problems := map[int64]string{}
	require.Eventually(t, "the end of the scans", func() bool {
		clear(found)
		done := map[int64]bool{}
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, r := range b.reports {
			for _, f := range r.Found {
				found[f.Scan] = append(found[f.Scan], f.Files...)
				problems[f.Scan] += f.Problem
				done[f.Scan] = done[f.Scan] || f.Done
			}
		}
		return len(done) == 3 && done[9] && done[10] && done[11]
	})
	if len(found[9]) != len(want) {
		t.Errorf("%d files, want %d", len(found[9]), len(want))
	}
	for _, f := range found[9] {
		if text := want[f.Path]; f.Size != int64(len(text)) || f.Adler != fmt.Sprintf("%08x", adler32.Checksum([]byte(text))) {
			t.Errorf("%+v, want %q", f, text)
		}
	}
	if !strings.Contains(problems[10], "nothing") || !strings.Contains(problems[9], "leak") || len(found[10]) > 0 {
		t.Errorf("problems %v, found %v", problems, found[10])
	}
	if len(found[11]) != len(want) || !strings.HasPrefix(found[11][0].Path, "in/run/") { // it does not go above the root
		t.Errorf("%d files below ../.., the first is %v", len(found[11]), found[11][0])
	}
	if strings.Contains(problems[10], s.root) {
		t.Errorf("it tells where the root is: %s", problems[10])
	}
}
