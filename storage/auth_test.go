package storage

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"weir/internal/require"
)

func TestInClear(t *testing.T) {
	token, password := Credentials{Method: "token", Token: "t"}, Credentials{Method: "basic", User: "u", Password: "p"}
	for _, c := range []struct {
		url     string
		cred    Credentials
		refused bool
	}{
		{"http://se.example.org/data", token, true},
		{"dav://se.example.org:8080/data", token, true},
		{"http://10.0.0.1/data", password, true},
		{"http://u:p@10.0.0.1/data", Credentials{}, true},
		{"http://localhost.example.org/", token, true},
		{"https://se.example.org/data", token, false},
		{"davs://u:p@se.example.org/data", Credentials{}, false},
		{"http://se.example.org/data", Credentials{}, false},
		{"http://127.0.0.1:8080/data", token, false},
		{"http://[::1]:8080/data", password, false},
		{"http://localhost/data", token, false},
		{"http://se.example.org/data", Credentials{Token: "t", From: Auth{Insecure: true}}, false},
	} {
		u, err := url.Parse(c.url)
		require.NoError(t, err)
		if err := (&Target{URL: u, Cred: c.cred}).InClear(); (err != nil) != c.refused {
			t.Errorf("%s: %v", c.url, err)
		}
	}
}

// TestDiscovered checks that a token is searched in the order of WLCG Bearer Token Discovery, and
// only for method token without a token of its own.
func TestDiscovered(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	named, empty := write("named", "a\n"), write("empty", " \n")
	own := write(fmt.Sprintf("bt_u%d", os.Geteuid()), "b")
	missing := filepath.Join(dir, "missing")
	for name, c := range map[string]struct {
		variable, file, dir string
		auth, want          Auth
	}{
		"variable":         {" t ", named, dir, Auth{Method: TokenAuth}, Auth{Method: TokenAuth, TokenVariable: "BEARER_TOKEN"}},
		"named file":       {" ", named, dir, Auth{Method: TokenAuth}, Auth{Method: TokenAuth, TokenFile: named}},
		"named, missing":   {"", missing, dir, Auth{Method: TokenAuth}, Auth{Method: TokenAuth, TokenFile: missing}},
		"named, empty":     {"", empty, dir, Auth{Method: TokenAuth}, Auth{Method: TokenAuth, TokenFile: own}},
		"folder":           {"", "", dir, Auth{Method: TokenAuth}, Auth{Method: TokenAuth, TokenFile: own}},
		"a file of auth":   {"t", named, dir, Auth{Method: TokenAuth, TokenFile: "f"}, Auth{Method: TokenAuth, TokenFile: "f"}},
		"another method":   {"t", named, dir, Auth{Method: BasicAuth}, Auth{Method: BasicAuth}},
		"no method stated": {"t", named, dir, Auth{}, Auth{}},
	} {
		t.Setenv("BEARER_TOKEN", c.variable)
		t.Setenv("BEARER_TOKEN_FILE", c.file)
		t.Setenv("XDG_RUNTIME_DIR", c.dir)
		if got := c.auth.Discovered(); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
