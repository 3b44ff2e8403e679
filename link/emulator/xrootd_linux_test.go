package emulator

import (
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
	"weir/link"
)

// A real client that reads from a real server over a link takes the time that the link needs for
// the bytes, and not much more.
func TestXRootDOverLinks(t *testing.T) {
	labtest.Need(t, "xrdcp")
	needSpaces(t)
	const size = 5 << 20
	server := labtest.Start(t, lab.XRootDConfig{})
	require.NoError(t, server.WriteFile("f", make([]byte, size)))
	u, err := url.Parse(server.URL)
	require.NoError(t, err)
	n, _ := up(t, link.Spec{Rate: 50e6, RTT: 20 * ms}, link.Spec{Rate: 200e6, RTT: 5 * ms})
	for i, rate := range []float64{50e6, 200e6} {
		address, err := n.Sites[i].Reach(t.Context(), u.Host)
		require.NoError(t, err)
		cmd := exec.Command("timeout", "60", "xrdcp", "--silent", "--force", fmt.Sprintf("root://%s/%s/f", address, u.Path),
			filepath.Join(t.TempDir(), "f"))
		if err := lab.NoDNS(cmd); err != nil {
			t.Log(err)
		}
		begin := time.Now()
		require.NoError(t, n.Sites[i].Start(cmd))
		require.NoError(t, cmd.Wait())
		least := time.Duration(8e9 * size / rate)
		t.Logf("%d bytes took %v, %v at least", size, time.Since(begin), least)
		if took := time.Since(begin); took < least {
			t.Errorf("%v is faster than the link", took)
		}
	}
}

// Programs that monitor interfaces find the speed of a link.
func TestSpeedIsReported(t *testing.T) {
	n, _ := up(t, link.Spec{Rate: 20e6})
	device := n.Sites[0].over.(*spoke).here.name
	if got := speed(t, device); got != 20 {
		t.Errorf("the device tells %d Mbit/s, not 20", got)
	}
	require.NoError(t, n.Sites[0].Change(link.Spec{Rate: 1e9}))
	if got := speed(t, device); got != 1000 {
		t.Errorf("the device tells %d Mbit/s, not 1000", got)
	}
}

// speed returns the speed that a device reports, in Mbit/s.
func speed(t *testing.T, name string) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	cmd := ethtoolCmd{cmd: unix.ETHTOOL_GSET}
	require.NoError(t, ethtool(fd, name, &cmd))
	return int(cmd.speed) | int(cmd.speedHigh)<<16
}
