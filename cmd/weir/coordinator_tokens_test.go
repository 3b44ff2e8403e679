package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/transfer"
)

// says runs a command as the newcomer. It returns the output and reports whether the command
// succeeded.
func (n *newcomer) says(command string, env ...string) (said string, ok bool) {
	n.t.Helper()
	cmd := exec.CommandContext(n.t.Context(), "weir", strings.Fields(command)[1:]...)
	cmd.Dir, cmd.Env = n.dir, append(n.env[:len(n.env):len(n.env)], env...)
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

// Tokens are listed and revoked, and revoked tokens are invalid.
func TestTokenCommands(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	n.stays("weir coordinator --listen 127.0.0.1:0")
	raw, ok := n.says("weir coordinator token --name alice --role read --life 1h")
	if !ok {
		t.Fatal(raw)
	}
	n.write("alice.token", raw)
	if said, ok := n.says("weir coordinator token list"); !ok || !strings.Contains(said, "alice") || !strings.Contains(said, "read") ||
		strings.Contains(said, strings.TrimSpace(raw)) {
		t.Errorf("%s", said)
	}
	text, ok := n.says("weir coordinator token list --json")
	var list struct{ Tokens []transfer.Token }
	if err := json.Unmarshal([]byte(text), &list); err != nil || !ok || len(list.Tokens) != 2 || list.Tokens[0].Subject != "alice" {
		t.Fatalf("%s, %v", text, err)
	}
	if said, ok := n.says("weir site list --token-file alice.token"); !ok {
		t.Error(said)
	}
	if said, ok := n.says("weir coordinator token revoke " + list.Tokens[0].ID); !ok || !strings.Contains(said, "of alice is revoked") {
		t.Error(said)
	}
	if said, ok := n.says("weir site list --token-file alice.token"); ok || !strings.Contains(said, "was revoked") {
		t.Error(said)
	}
	if said, ok := n.says("weir coordinator token list"); !ok || strings.Contains(said, "alice") {
		t.Error(said)
	}
	if said, ok := n.says("weir coordinator token list --all"); !ok || !strings.Contains(said, "revoked by administrator") {
		t.Error(said)
	}
	if said, ok := n.says("weir coordinator token revoke none"); ok || !strings.Contains(said, "there is no token") {
		t.Error(said)
	}
}

// A second coordinator of a user does not replace the local address of a coordinator that responds,
// and reports how it can be reached itself. It does replace the address of a coordinator that has
// ended.
func TestSecondCoordinator(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	file := filepath.Join(n.dir, ".config/weir/coordinator.json")
	kept := func() string {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		return string(text)
	}
	first, said := n.stays("weir coordinator --listen 127.0.0.1:0 --state s1")
	url, _, _ := strings.Cut(strings.TrimPrefix(said, "coordinator at "), "#")
	before := kept()
	_, said = n.stays("weir coordinator --listen 127.0.0.1:0 --state s2")
	if !strings.Contains(said, "another coordinator, which runs at "+url) || kept() != before {
		t.Errorf("%s\n%s", said, kept())
	}
	own := "WEIR_CONFIG=" + filepath.Join(n.dir, "third.json")
	n.env = append(n.env, own)
	_, said = n.stays("weir coordinator --listen 127.0.0.1:0 --state s3")
	third, _, _ := strings.Cut(strings.TrimPrefix(said, "coordinator at "), "#")
	if text, err := os.ReadFile(filepath.Join(n.dir, "third.json")); err != nil || !strings.Contains(string(text), third) || kept() != before {
		t.Errorf("%s: %s, %v", said, text, err)
	}
	n.env = n.env[:len(n.env)-1]
	require.NoError(t, first.Process.Signal(os.Interrupt))
	require.Eventually(t, "the coordinator stops answering", func() bool {
		said, ok := n.says("weir site list")
		return !ok && strings.Contains(said, "does not answer")
	})
	_, said = n.stays("weir coordinator --listen 127.0.0.1:0 --state s4")
	if !strings.Contains(said, "does not answer any more") || kept() == before {
		t.Errorf("%s\n%s", said, kept())
	}
}
