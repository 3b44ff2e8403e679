package client

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
)

// A saved configuration is found, and is never mixed with the configuration of another coordinator.
func TestFindingTheCoordinator(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir", "coordinator.json")
	for key, v := range map[string]string{"WEIR_CONFIG": path, "WEIR_COORDINATOR": "", "WEIR_TOKEN_FILE": ""} {
		t.Setenv(key, v)
	}
	if _, err := Find("", ""); err == nil || !strings.Contains(err.Error(), "weir coordinator") {
		t.Errorf("nothing is known: %v", err)
	}
	kept := Config{URLs: []string{"https://here:1"}, Pin: "ab", Token: "secret"}
	require.NoError(t, kept.Save(path))
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	for address, want := range map[string]Config{
		"":                   kept,
		"https://here:1/":    kept,
		"https://here:1#ab":  kept,
		"https://here:1#cd":  {URLs: []string{"https://here:1"}, Pin: "cd"},
		"https://there:1#ef": {URLs: []string{"https://there:1"}, Pin: "ef"},
	} {
		if c, err := Find(address, ""); err != nil || c.URLs[0] != want.URLs[0] || c.Pin != want.Pin || c.Token != want.Token {
			t.Errorf("%q: %+v, %v", address, c, err)
		}
	}
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("other\n"), 0o600))
	if c, err := Find("https://there:1", token); err != nil || c.Token != "other" {
		t.Errorf("%+v, %v", c, err)
	}
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	if _, err := Find("", ""); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a damaged file: %v", err)
	}
}

// A token goes without TLS to this machine only.
func TestWhereTokensMayGo(t *testing.T) {
	for u, want := range map[string]string{
		"https://far:1": "", "http://127.0.0.1:8": "", "http://[::1]:8": "", "http://localhost:8": "",
		"http://far:1": "TLS", "far:1": "https://", "": "no URL", "ftp://x": "https://",
	} {
		c, err := New(Config{URLs: []string{u}})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", u, err)
		}
		if err == nil {
			c.Close()
		}
	}
}

// A coordinator that is too busy to respond counts as running: another coordinator does not take
// its place. A coordinator whose port is closed does not count as running.
func TestBusyCoordinatorStays(t *testing.T) {
	tier.Slow(t, "it waits for three seconds")
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0") // the kernel accepts, and no process responds
	require.NoError(t, err)
	conf := Config{URLs: []string{"https://" + l.Addr().String()}, Pin: strings.Repeat("0", 64), Token: "x"}
	if !answers(t.Context(), conf) {
		t.Error("a coordinator that accepts connections is taken for one that has gone")
	}
	require.NoError(t, l.Close())
	if answers(t.Context(), conf) {
		t.Error("a closed port is taken for a coordinator")
	}
}
