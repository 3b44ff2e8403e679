package main

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/require"
	"weir/lab"
	"weir/lab/labtest"
)

// Workers in folders of their own trust the same authorities as the plan.
func TestCredentialsTravel(t *testing.T) {
	t.Parallel()
	s := labtest.Start(t, lab.NginxConfig{Config: lab.Config{TLS: true}, User: "ada", Password: "it is 8 words long"})
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

// jwt returns a token with an expiry time. No server of these tests checks anything else in it.
func jwt(ends time.Time) string {
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	return part(`{"alg":"none"}`) + "." + part(fmt.Sprintf(`{"exp":%d,"jti":"%s"}`, ends.Unix(), ends)) + ".x"
}

// A token is renewed during the run: the plan warns of its expiry, no operation fails, and the
// findings count the renewal.
func TestTokenRenewedDuringARun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	first, second := jwt(time.Now().Add(time.Second)), jwt(time.Now().Add(time.Hour))
	require.NoError(t, os.WriteFile(file, []byte(first), 0o600))
	var want atomic.Pointer[string]
	want.Store(&first)
	var served, refused atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+*want.Load() {
			refused.Add(1)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.Method == http.MethodGet && served.Add(1) == 100 { // renewed, and the old token expires at once
			if err := os.WriteFile(file, []byte(second), 0o600); err != nil {
				t.Error(err)
			}
			want.Store(&second)
		}
		_, _ = w.Write(make([]byte, 1000))
	}))
	defer s.Close()
	list := filepath.Join(t.TempDir(), "list")
	require.NoError(t, os.WriteFile(list, []byte("f 1000\n"), 0o600))
	args := []string{"--target", s.URL, "--clients", "2", "--duration", "2s", "--set", "files.list=" + list, "--set",
		"load={ramp: 0s, warmup: 0s}", "--set", "workload.think=2ms", "--set", "auth={method: token, token_file: " + file + "}"}
	if code, said := weir(t, append([]string{"plan"}, args...)...); code != exitFine ||
		!strings.Contains(said, "warning: the token in "+file) {
		t.Errorf("exit code %d\n%s", code, said)
	}
	dir := filepath.Join(t.TempDir(), "run")
	_, said := weir(t, append([]string{"run", "--out", dir}, args...)...)
	f := findings(t, dir)
	if len(f.Curve) != 1 || f.Curve[0].Done == 0 || f.Curve[0].Errors > 0 || f.Renewed != 1 ||
		!strings.Contains(strings.Join(f.Warnings, "\n"), "the token in "+file) {
		t.Errorf("%+v, %d renewals, %d refused, warnings %q\n%s", f.Curve, f.Renewed, refused.Load(), f.Warnings, said)
	}
}
