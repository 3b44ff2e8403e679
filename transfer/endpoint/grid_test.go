package endpoint

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/require"
	"weir/serve"
	"weir/serve/servetest/requests"
)

// environment sets the variables with which gfal2 and davix trust g, with a token if it is not "".
func (g *grid) environment(t *testing.T, raw string) {
	t.Helper()
	t.Setenv("X509_CERT_DIR", g.xrootd.CADir)
	t.Setenv("BEARER_TOKEN", raw)
	t.Setenv("X509_USER_PROXY", "")
	if os.Getenv("GFAL_PYTHONBIN") == "" { // its modules are packaged for the distribution's python
		t.Setenv("GFAL_PYTHONBIN", "/usr/bin/python3")
	}
}

// The clients of the grid have an endpoint and XRootD copy: between two endpoints, and between an
// endpoint and XRootD, pulled and pushed, with checksums compared.
func TestGridClientsHaveDoorsCopy(t *testing.T) {
	gfal, davix := requests.Program(t, "gfal-copy"), requests.Program(t, "davix-cp")
	g := newGrid(t, "")
	second := t.TempDir()
	other := start(t, g.secure(t, second))
	text := requests.Content(1, 3_000_000)
	requests.Write(t, text, g.dir, "here")
	require.NoError(t, os.WriteFile(filepath.Join(g.xrootd.Data, "there"), []byte(text), 0o644))
	dav := func(url string) string { return "dav" + strings.TrimPrefix(url, "http") }
	here, there := dav(g.door.URL()), dav(g.xrootd.URLs["https"])
	plain := start(t, serve.Config{Dir: second, Extensions: copying(local())}) // without TLS and credentials
	for name, tt := range map[string]struct {
		from, to, dir string
		active        map[string]*serve.Server // the endpoint that copies; nil is XRootD
	}{
		"door-door":   {here + "/here", dav(other.URL()), second, map[string]*serve.Server{"pull": other, "push": g.door}},
		"door-xrootd": {here + "/here", there, g.xrootd.Data, map[string]*serve.Server{"push": g.door}},
		"xrootd-door": {there + "/there", here, g.dir, map[string]*serve.Server{"pull": g.door}},
		// pushed within the server
		"plain": {dav(plain.URL()) + "/there", dav(plain.URL()), second, map[string]*serve.Server{"pull": plain}},
	} {
		g.environment(t, g.token(t, "storage.read:/ storage.modify:/"))
		if name == "plain" {
			g.environment(t, "")
			requests.Write(t, text, second, "there")
		}
		for _, mode := range []string{"pull", "push"} {
			before := copies(t, tt.active[mode])
			file := name + "-gfal-" + mode
			out, err := requests.Run(t, gfal, "-v", "--copy-mode", mode, "-K", "adler32", tt.from, tt.to+"/"+file)
			if err != nil || requests.SHA256(requests.Read(t, tt.dir, file)) != requests.SHA256(text) {
				t.Errorf("%s: %v\n%s", file, err, out)
			}
			if out, err := requests.Run(t, gfal, "--copy-mode", mode, tt.from, tt.to+"/"+file); err == nil {
				t.Errorf("%s: a file that is there was replaced\n%s", file, out)
			}
			if out, err := requests.Run(t, gfal, "-f", "--copy-mode", mode, "-K", "adler32", tt.from, tt.to+"/"+file); err != nil {
				t.Errorf("%s once more: %v\n%s", file, err, out)
			}
			file = name + "-davix-" + mode
			https := func(url string) string { return "http" + strings.TrimPrefix(url, "dav") }
			out, err = requests.Run(t, davix, "--capath", g.xrootd.CADir, "--copy-mode", mode, "-H",
				"Authorization: Bearer "+os.Getenv("BEARER_TOKEN"),
				"-H", "TransferHeaderAuthorization: Bearer "+os.Getenv("BEARER_TOKEN"), https(tt.from), https(tt.to)+"/"+file)
			if err != nil || requests.SHA256(requests.Read(t, tt.dir, file)) != requests.SHA256(text) {
				t.Errorf("%s: %v\n%s", file, err, out)
			}
			if s := tt.active[mode]; s != nil && copies(t, s)-before != 3 {
				t.Errorf("%s %s: %d third-party copies, not 3: the bytes went through the client", name, mode, copies(t, s)-before)
			}
		}
	}
}

// copies returns the number of third-party copies that an endpoint began.
func copies(t *testing.T, s *serve.Server) int64 {
	if s == nil {
		return 0
	}
	return answers(t, s, os.Getenv("BEARER_TOKEN"), "COPY", http.StatusAccepted)
}
