package cluster

import (
	"os"
	"path/filepath"
	"testing"

	"weir/internal/require"
)

// A server continues with the state that it has stored.
func TestState(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, stateFile), []byte(`{"run":"0123456789abcdef","port":4711}`), 0o600))
	s, err := readState(dir)
	if want := (state{Run: "0123456789abcdef", Port: 4711}); err != nil || s != want {
		t.Errorf("%+v, %v; want %+v", s, err, want)
	}
	s.Port++
	require.NoError(t, s.write(dir))
	if got, err := readState(dir); err != nil || got != s {
		t.Errorf("%+v, %v; want %+v", got, err, s)
	}
}
