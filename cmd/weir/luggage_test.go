package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weir/lab"
	"weir/scenario"
	"weir/storage"
)

// Files that the plan names travel under names that any shell takes; what is in
// them is never copied, but for certificates, which are no secret.
func TestLuggage(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "state")
	for name, text := range map[string]string{"my token": "secret", "ca/a.pem": "A\n", "ca/b.0": "B\n", "ca/c.txt": "C\n", "own ca.pem": "O\n"} {
		path := filepath.Join(from, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	plan := &scenario.Plan{Target: "https://x/", Auth: storage.Auth{Method: "token", TokenFile: filepath.Join(from, "my token"), CADir: filepath.Join(from, "ca"), CAFile: filepath.Join(from, "own ca.pem")}, Files: scenario.Files{List: "list.txt"}}
	l, err := pack(plan, to, false)
	if err != nil {
		t.Fatal(err)
	}
	if a := l.plan.Auth; a.TokenFile != "auth_token_file" || a.CADir != "" || a.CAFile != "auth_ca_file" || l.plan.Files.List != "" {
		t.Errorf("%+v", l.plan)
	}
	if plan.Auth.TokenFile != filepath.Join(from, "my token") || plan.Files.List == "" {
		t.Errorf("the plan itself was changed: %+v", plan)
	}
	if len(l.files) != 2 {
		t.Fatalf("%q", l.files)
	}
	if at, err := os.Readlink(filepath.Join(to, "auth_token_file")); err != nil || at != filepath.Join(from, "my token") {
		t.Errorf("%s, %v", at, err)
	}
	if b, err := os.ReadFile(filepath.Join(to, "auth_ca_file")); err != nil || string(b) != "O\n\nA\n\nB\n\n" {
		t.Errorf("%q, %v", b, err)
	}
	for want, auth := range map[string]storage.Auth{
		"auth.password_variable: the variable PW stays on this machine": {Method: "basic", PasswordVariable: "PW"},
		"no such file":                   {Method: "token", TokenFile: filepath.Join(from, "none")},
		"no certificate authority is in": {CADir: t.TempDir()},
	} {
		if _, err := pack(&scenario.Plan{Target: "https://x/", Auth: auth}, filepath.Join(t.TempDir(), "state"), false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Workers in folders of their own trust whom the plan trusts.
func TestCredentialsTravel(t *testing.T) {
	t.Parallel()
	s := lab.StartNginx(t, lab.NginxConfig{Config: lab.Config{TLS: true}, User: "ada", Password: "it is 8 words long"})
	fill(t, s.Data, 3, 4096)
	r := newRemote(t)
	secret := filepath.Join(t.TempDir(), "pass word")
	if err := os.WriteFile(secret, []byte("it is 8 words long\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, said := r.local(t, "--workers", "2", "--target", s.URLs["https"], "--clients", "2", "--hold", "1s", "--set", "auth={method: basic, user: ada, password_file: '"+secret+"', ca_dir: '"+s.CADir+"'}", "--set", "workload.think=10ms").ended()
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
