package tcp

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"slices"
	"testing"

	"weir/internal/require"
)

// getent resolves names like the C library: this machine's own name in any case, and an error for a
// name that does not exist.
func TestGetent(t *testing.T) {
	if _, err := exec.LookPath("getent"); err != nil {
		t.Skip(err)
	}
	host, err := os.Hostname()
	require.NoError(t, err)
	want, err := net.DefaultResolver.LookupNetIP(t.Context(), "ip", host)
	if err == nil {
		for i := range want {
			want[i] = want[i].Unmap()
		}
		got := getent(t.Context(), host)
		if len(got) == 0 || !slices.Contains(want, got[0]) {
			t.Errorf("%s: %v, want one of %v", host, got, want)
		}
	}
	missing := (*net.DNSError)(nil)
	if found, err := lookup(t.Context(), "ip", "no-such-host.invalid"); !errors.As(err, &missing) || !missing.IsNotFound {
		t.Errorf("%v, %v", found, err)
	}
}
