package text

import (
	"fmt"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/transfer"
)

// A screenful of files is kept and printed, regardless of their number, with the command that lists
// the other files.
func TestShortlistIsShort(t *testing.T) {
	t.Parallel()
	var l Shortlist
	for i := range 100_000 {
		one := transfer.Item{Name: fmt.Sprintf("/f%d", i), State: transfer.Done}
		if i%2 == 1 {
			one.State, one.Reason = transfer.FileFailed, "gone"
		}
		require.NoError(t, l.Add(one))
	}
	var out strings.Builder
	require.NoError(t, l.Print(&out, 7))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(l.first)+len(l.missing) != 2*MaxRows || len(lines) != MaxRows+2 || !strings.Contains(lines[1], "/f1: gone") ||
		lines[MaxRows+1] != "and 49980 more: weir transfer manifest 7 --all" {
		t.Errorf("%d and %d files are kept; printed:\n%s", len(l.first), len(l.missing), out.String())
	}
}

// An attempt that was reported too late is no success.
func TestLateAttemptsInWords(t *testing.T) {
	done := transfer.Outcome{Verified: true}
	for _, c := range []struct {
		a    transfer.Attempt
		want string
	}{
		{transfer.Attempt{Outcome: done}, "done, verified"},
		{transfer.Attempt{Late: true, Outcome: done}, "reported too late, another attempt counts"},
		{transfer.Attempt{Late: true, Outcome: transfer.Outcome{Fault: transfer.Transient, Reason: "reset"}}, "transient: reset"},
	} {
		if got := outcome(&c.a); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
