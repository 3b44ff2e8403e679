package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"weir/internal/require"
	"weir/lab"
)

// Workers in folders of their own trust whom the plan trusts.
func TestCredentialsTravel(t *testing.T) {
	t.Parallel()
	s := lab.StartNginx(t, lab.NginxConfig{Config: lab.Config{TLS: true}, User: "ada", Password: "it is 8 words long"})
	fill(t, s.Data, 3, 4096)
	r := newRemote(t)
	secret := filepath.Join(t.TempDir(), "pass word")
	require.NoError(t, os.WriteFile(secret, []byte("it is 8 words long\n"), 0o600))
	code, said := r.local(t, "--workers", "2", "--target", s.URLs["https"], "--clients", "2", "--duration", "1s", "--set",
		"auth={method: basic, user: ada, password_file: '"+secret+"', ca_dir: '"+s.CADir+"'}", "--set", "workload.think=10ms").ended()
	if code != exitFine && code != exitInvalid {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	if f := findings(t, r.run()); len(f.Curve) != 1 || f.Curve[0].Done == 0 || f.Curve[0].Errors > 0 {
		t.Errorf("%+v\n%s", f.Curve, said)
	}
	if out, err := exec.CommandContext(t.Context(), "grep", "-rl", "8 words", r.run()).Output(); err == nil {
		t.Errorf("the password is in %s", out)
	}
	r.left(t)
}
