package emulator

import (
	"errors"
	"os"
	"testing"

	"weir/internal/require"
	"weir/link"
)

// Best tries to make links to determine where they are possible, and leaves no objects.
func TestBest(t *testing.T) {
	before := interfaces(t)
	exe, err := os.Executable()
	require.NoError(t, err)
	t.Setenv(asProbe, "1")
	c, err := Best(t.Context(), []string{exe})
	here := Probe()
	t.Log(c, err)
	switch {
	case here == "" && (err != nil || c.Isolated):
		t.Errorf("%+v, %v where all is possible", c, err)
	case here != "" && !c.Isolated && !errors.Is(err, ErrImpossible):
		t.Errorf("%+v, %v, though %s", c, err, here)
	case here == "":
		n, err := Up(t.Context(), []link.Named{{Spec: link.Spec{Rate: 2e6, RTT: 51 * ms}}}, moverOptions(t))
		require.NoError(t, err)
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
	if now := interfaces(t); len(now) != len(before) {
		t.Errorf("devices %v, before %v", now, before)
	}
}
