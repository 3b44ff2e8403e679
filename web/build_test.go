package web

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
)

// Where there is no Node the build goes on without the scripts, and says so; a
// check of the types fails.
func TestBuildWithoutNode(t *testing.T) {
	bin := t.TempDir()
	for _, name := range []string{"sh", "dirname"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skip(err)
		}
		require.NoError(t, os.Symlink(path, filepath.Join(bin, name)))
	}
	for _, c := range []struct {
		args []string
		code int
	}{{[]string{"build"}, 0}, {[]string{"build", "--check"}, 1}} {
		cmd := exec.CommandContext(t.Context(), "sh", c.args...)
		cmd.Env = []string{"PATH=" + bin}
		out, err := cmd.CombinedOutput()
		var exited *exec.ExitError
		if err != nil && !errors.As(err, &exited) {
			t.Fatal(err)
		}
		if cmd.ProcessState.ExitCode() != c.code || !strings.Contains(string(out), "without the pages' scripts") {
			t.Errorf("%v: exit code %d, %s", c.args, cmd.ProcessState.ExitCode(), out)
		}
	}
}
