package lab_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
)

// RabbitMQ runs as a plain user, started by any user, with its own Erlang names, admits its user
// only, keeps queues when it is killed, and is gone after Stop. internal/stomp and
// transfer/coordinator test its handling of messages.
func TestRabbitMQ(t *testing.T) {
	s := labtest.Start(t, lab.RabbitMQConfig{})
	if s.URL != "stomp://"+s.Address("stomp") || len(s.Settings[lab.BrokerPassword]) < 20 {
		t.Errorf("%s %+v", s.URL, s.URLs)
	}
	pids := s.Pids()
	if len(pids) != 2 {
		t.Errorf("processes: %v", pids)
	}
	for _, pid := range pids {
		info, err := os.Stat(filepath.Join("/proc", fmt.Sprint(pid)))
		require.NoError(t, err)
		if owner := info.Sys().(*syscall.Stat_t).Uid; owner == 0 {
			t.Errorf("process %d runs as root", pid)
		}
	}
	labtest.Subscribe(t, s, "/queue/a", "/topic/b")
	s.Kill()
	require.NoError(t, s.Restart(t.Context()))
	labtest.Subscribe(t, s, "/queue/a")
	leftNothing(t, s.System)
}
