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

// lacks is what no XRootD server has: a question mark begins what a path
// carries besides itself, and a move replaces what was there.
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

// TestEveryAuthenticationPassesTheSuite has servers of each version as well; the one that
// asks for nothing is reached over TLS.
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

// TestClusterPassesTheSuite has three data servers behind a redirector. A
// folder is moved on one of them, whatever lies in it on the others.
func TestClusterPassesTheSuite(t *testing.T) {
	xr := labtest.Start(t, lab.XRootDConfig{Servers: 3})
	// The redirector may place a folder and the one in it on different servers: the outer one is empty on its own then, and may go.
	storagetest.Run(t, Driver(), storagetest.TargetOf(t, xr.URL, storage.Credentials{}), storagetest.Options{
		Few: true, Clients: 20, Lacks: lacks(storagetest.FolderMove, storagetest.SafeRemove),
	})
}

// TestAsynchronousServerPassesTheSuite has a server that reads and writes
// asynchronously, and answers as it can.
func TestAsynchronousServerPassesTheSuite(t *testing.T) {
	xr := labtest.Start(t, lab.XRootDConfig{Extra: "xrootd.async force minsize 16k segsize 64k\n"})
	storagetest.Run(t, Driver(), storagetest.TargetOf(t, xr.URL, storage.Credentials{}),
		storagetest.Options{Few: true, Sum: "crc32c", Lacks: lacks()})
}

// settings returns what a client of a lab system says in its scenario.
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
