package xrootd

import (
	"encoding/json"
	"os"
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/storage"
	"weir/storage/storagetest"
)

func TestMain(m *testing.M) { os.Exit(tier.Main(m)) }

// lacks returns the features that all XRootD servers lack: a question mark separates a path from
// its opaque information, and a move replaces an existing file.
func lacks(more ...storagetest.Lack) []storagetest.Lack {
	return append([]storagetest.Lack{storagetest.QuestionMarks, storagetest.SafeMove}, more...)
}

func TestServerPassesTheSuite(t *testing.T) {
	xr := labtest.Start(t, lab.XRootDConfig{})
	for _, sum := range []string{"adler32", "md5", "crc32c"} {
		t.Run(sum, func(t *testing.T) {
			storagetest.Run(t, Driver(), storagetest.TargetOf(t, xr.URL, storage.Credentials{}), storagetest.Options{
				Network: true, Sum: sum, Few: sum != "adler32", Lacks: lacks(),
			})
		})
	}
}

// TestEveryAuthenticationPassesTheSuite runs servers of each version with each authentication; the
// server without authentication is accessed over TLS.
func TestEveryAuthenticationPassesTheSuite(t *testing.T) {
	for name, version := range versions() {
		for _, auth := range lab.XRootDAuths() {
			t.Run(name+"/"+auth, func(t *testing.T) {
				xr := labtest.Start(t, lab.XRootDConfig{Version: version, Auth: auth, Config: lab.Config{TLS: auth == "none"}})
				url := xr.URL
				if auth == "none" {
					url = xr.URLs["roots"]
				}
				target := storagetest.TargetOf(t, url, credentials(t, settings(t, xr)))
				if version != "" && auth == "gsi" { // a login takes three times as long there
					brings(t, target)
					return
				}
				storagetest.Run(t, Driver(), target, storagetest.Options{Few: true, Lacks: lacks()})
			})
		}
	}
}

// TestLaterServersPassTheSuite is TestServerPassesTheSuite with later versions.
func TestLaterServersPassTheSuite(t *testing.T) {
	tier.Full(t, "further versions of XRootD")
	for _, version := range lab.XRootDVersions() {
		t.Run(version, func(t *testing.T) {
			xr := labtest.Start(t, lab.XRootDConfig{Version: version})
			storagetest.Run(t, Driver(), storagetest.TargetOf(t, xr.URL, storage.Credentials{}),
				storagetest.Options{Network: true, Sum: "adler32", Lacks: lacks()})
		})
	}
}

// TestClusterPassesTheSuite runs three data servers behind a redirector. A folder is moved on one
// of them, without regard to its contents on the other servers.
func TestClusterPassesTheSuite(t *testing.T) {
	xr := labtest.Start(t, lab.XRootDConfig{Servers: 3})
	// The redirector may place a folder and its subfolder on different servers: the outer folder is
	// then empty on its own server, and may be removed.
	storagetest.Run(t, Driver(), storagetest.TargetOf(t, xr.URL, storage.Credentials{}), storagetest.Options{
		Few: true, Clients: 20, Lacks: lacks(storagetest.FolderMove, storagetest.SafeRemove),
	})
}

// TestAsynchronousServerPassesTheSuite runs a server that reads and writes asynchronously, and
// responds in any order.
func TestAsynchronousServerPassesTheSuite(t *testing.T) {
	xr := labtest.Start(t, lab.XRootDConfig{Extra: "xrootd.async force minsize 16k segsize 64k\n"})
	storagetest.Run(t, Driver(), storagetest.TargetOf(t, xr.URL, storage.Credentials{}),
		storagetest.Options{Few: true, Sum: "crc32c", Lacks: lacks()})
}

// settings returns the auth settings for clients of a lab system.
func settings(t testing.TB, s *lab.System) storage.Auth {
	t.Helper()
	b, err := json.Marshal(s.Settings)
	require.NoError(t, err)
	a := storage.Auth{}
	require.NoError(t, json.Unmarshal(b, &a))
	if a.CAFile == "" && a.CADir == "" {
		a.CAFile = s.CAFile
	}
	return a
}

func TestSharedSessionsPassTheSuite(t *testing.T) {
	xr := labtest.Start(t, lab.XRootDConfig{Config: lab.Config{TLS: true}})
	for _, url := range []string{xr.URL, xr.URLs["roots"]} {
		target := storagetest.TargetOf(t, url, credentials(t, storage.Auth{CAFile: xr.CAFile}))
		target.Shared = true
		t.Run(target.URL.Scheme, func(t *testing.T) {
			storagetest.Run(t, Driver(), target, storagetest.Options{
				Network: true, Shared: true, Few: true, Lacks: lacks(),
			})
		})
	}
}

func credentials(t testing.TB, a storage.Auth) storage.Credentials {
	t.Helper()
	c, err := a.Read()
	require.NoError(t, err)
	return c
}
