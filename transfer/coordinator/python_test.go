package coordinator

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/tpc"
	"weir/lab/labtest"
	"weir/transfer/access"
	"weir/transfer/transfertest"
)

// The Python client submits, waits, lists and cancels at a real coordinator with real agents.
func TestPythonClient(t *testing.T) {
	t.Parallel()
	labtest.Need(t, "python3")
	h := start(t, Config{Approve: -1, JobArea: tpc.Loopback})
	a := h.Agent("A", transfertest.Endpoint())
	h.Agent("B", nil)
	c := h.Agent("C", nil)
	c.Stop()
	a.Write("/store/run1", 5, 10_000)
	h.Scan("/store/run1", "A", "/store/run1")
	raw := h.NewToken("alice", access.MaySubmit)
	folder, err := filepath.Abs("../../client/python")
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "python3", "-W", "error", "testdata/client.py")
	cmd.Env = append(os.Environ(), "URL="+h.URL()+"#"+h.Pin(), "TOKEN="+raw, "PYTHONPATH="+folder, "PYTHONDONTWRITEBYTECODE=1")
	said, err := cmd.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(said), "ok") {
		t.Errorf("%v\n%s", err, said)
	}
}
