package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"weir/internal/require"
)

// Artemis and Keycloak run as a plain user whoever starts them, start again, and are gone after Stop. transfer/coordinator tests their
// messages and tokens.
func TestArtemisAndKeycloak(t *testing.T) {
	FullTier(t, "ActiveMQ Artemis and Keycloak")
	for name, c := range map[string]starter{"artemis": ArtemisConfig{}, "keycloak": KeycloakConfig{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startFor(t, c)
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
