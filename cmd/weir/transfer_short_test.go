package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/transfer"
)

// However many files there are, a screenful is kept and printed, with the way to
// see the others.
func TestShortlistIsShort(t *testing.T) {
	t.Parallel()
	var l shortlist
	for i := range 100_000 {
		one := transfer.Item{Name: fmt.Sprintf("/f%d", i), State: transfer.Done}
		if i%2 == 1 {
			one.State, one.Reason = transfer.FileFailed, "gone"
		}
		if err := l.add(one); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := l.print(&out, 7); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(l.first)+len(l.missing) != 2*mostRows || len(lines) != mostRows+2 || !strings.Contains(lines[1], "/f1: gone") ||
		lines[mostRows+1] != "and 49980 more: weir transfer manifest 7 --all" {
		t.Errorf("%d and %d files are kept; printed:\n%s", len(l.first), len(l.missing), out.String())
	}
}

// Names that no coordinator would read are not sent.
func TestTooManyNames(t *testing.T) {
	t.Parallel()
	list := filepath.Join(t.TempDir(), "list")
	if err := os.WriteFile(list, []byte(strings.Repeat("/store/run1/"+strings.Repeat("x", 1000)+"\n", 31_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	f := submitFlags{filesOf: list, what: transfer.Submission{To: "C"}}
	if _, err := f.submission("/store/run1"); err == nil || !strings.Contains(err.Error(), "31000 files have") || !strings.Contains(err.Error(), "ask for the whole dataset") {
		t.Error(err)
	}
}
