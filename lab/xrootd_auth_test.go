package lab

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// client runs a real client against s and returns what it printed.
func client(t *testing.T, env []string, argv ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "XRD_CONNECTIONRETRY=1", "XRD_REQUESTTIMEOUT=10")
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// there checks that the real xrdcp writes a file through s and reads it back.
func there(t *testing.T, s *System, env []string, name string) {
	t.Helper()
	want, dir := payload(), t.TempDir()
	local, back := filepath.Join(dir, "local"), filepath.Join(dir, "back")
	if err := os.WriteFile(local, want, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, argv := range [][]string{{local, s.URL + "/" + name}, {s.URL + "/" + name, back}} {
		if out, err := client(t, env, "xrdcp", "-s", argv[0], argv[1]); err != nil {
			t.Fatalf("xrdcp %v: %v\n%s\n%s", argv, err, out, s.Log())
		}
	}
	same(t, back, want)
}

func TestXRootDAuth(t *testing.T) {
	for _, servers := range []int{0, 3} {
		for _, auth := range XRootDAuths() {
			t.Run(auth+strings.Repeat("-cluster", min(1, servers)), func(t *testing.T) {
				start := time.Now()
				s := StartXRootD(t, XRootDConfig{Auth: auth, Servers: servers})
				t.Log("up", time.Since(start), s.Env, s.Settings)
				there(t, s, s.Env, "a")
				t.Log("done", time.Since(start))
			})
		}
	}
}
