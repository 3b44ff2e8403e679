package emulator

import (
	"os"
	"testing"

	"weir/internal/require"
	"weir/link"
)

// The best way is chosen by trying; what it promises is possible.
func TestBest(t *testing.T) {
	before := interfaces(t)
	exe, err := os.Executable()
	require.NoError(t, err)
	t.Setenv(asProbe, "1")
	far, near := []link.Named{{Spec: link.Spec{Rate: 2e6, RTT: 51 * ms}}}, []link.Named{{Spec: link.Spec{Rate: 2e6}}}
	both := []Choice{Best(t.Context(), far, []string{exe}), Best(t.Context(), near, []string{exe})}
	for i, links := range [][]link.Named{far, near} {
		c := both[i]
		t.Log(c)
		if here := Probe(); here.Userspace == "" && (c.Way != Userspace || c.Isolated) {
			t.Errorf("%+v where all is possible", c)
		} else if here.Spaces != "" && c.Way != Proxy && !c.Isolated {
			t.Errorf("%+v, though %s", c, here.Spaces)
		}
		if c.Isolated {
			continue
		}
		n, err := Up(t.Context(), c, links, moverOptions(t))
		require.NoError(t, err)
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
	if now := interfaces(t); len(now) != len(before) {
		t.Errorf("devices %v, before %v", now, before)
	}
}
