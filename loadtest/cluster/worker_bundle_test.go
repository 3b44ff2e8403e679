package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/loadtest/scenario"
	"weir/storage"
)

// Files that the plan names are transferred under names that are plain in any shell; their contents
// are never copied, except certificates, which are not secret.
func TestBundle(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "state")
	for name, text := range map[string]string{"my token": "secret", "ca/a.pem": "A\n", "ca/b.0": "B\n", "ca/c.txt": "C\n",
		"own ca.pem": "O\n"} {
		path := filepath.Join(from, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	plan := &scenario.Plan{Target: "https://x/", Auth: storage.Auth{Method: "token", TokenFile: filepath.Join(from, "my token"),
		CADir: filepath.Join(from, "ca"), CAFile: filepath.Join(from, "own ca.pem")}, Files: scenario.Files{List: "list.txt"}}
	b, err := newBundle(plan, to)
	require.NoError(t, err)
	if a := b.Plan.Auth; a.TokenFile != "auth_token_file" || a.CADir != "" || a.CAFile != "auth_ca_file" || b.Plan.Files.List != "" {
		t.Errorf("%+v", b.Plan)
	}
	if plan.Auth.TokenFile != filepath.Join(from, "my token") || plan.Files.List == "" {
		t.Errorf("the plan itself was changed: %+v", plan)
	}
	if len(b.Files) != 2 {
		t.Fatalf("%q", b.Files)
	}
	if at, err := os.Readlink(filepath.Join(to, "auth_token_file")); err != nil || at != filepath.Join(from, "my token") {
		t.Errorf("%s, %v", at, err)
	}
	if text, err := os.ReadFile(filepath.Join(to, "auth_ca_file")); err != nil || string(text) != "O\n\nA\n\nB\n\n" {
		t.Errorf("%q, %v", text, err)
	}
	for want, auth := range map[string]storage.Auth{
		"auth.password_variable: the variable PW is not available to clients on other machines": {Method: "basic", PasswordVariable: "PW"},
		"no such file":                   {Method: "token", TokenFile: filepath.Join(from, "none")},
		"no certificate authority is in": {CADir: t.TempDir()},
	} {
		if _, err := newBundle(&scenario.Plan{Target: "https://x/", Auth: auth}, filepath.Join(t.TempDir(), "state")); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
