package lab_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
)

// Artemis and Keycloak run as a plain user, started by any user, start again, and are gone after
// Stop. transfer/coordinator tests their messages and tokens.
func TestArtemisAndKeycloak(t *testing.T) {
	tier.Full(t, "ActiveMQ Artemis and Keycloak")
	for _, name := range []string{"artemis", "keycloak"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := labtest.Start(t, lab.StarterOf(name))
			pids := s.Pids()
			if len(pids) != 1 {
				t.Errorf("processes: %v", pids)
			}
			for _, pid := range pids {
				info, err := os.Stat(filepath.Join("/proc", fmt.Sprint(pid)))
				require.NoError(t, err)
				if owner := info.Sys().(*syscall.Stat_t).Uid; owner == 0 {
					t.Errorf("process %d runs as root", pid)
				}
			}
			require.NoError(t, s.Restart(t.Context()))
			leftNothing(t, s)
		})
	}
}
