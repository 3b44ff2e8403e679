package ftp

import (
	"testing"

	"weir/internal/require"
	"weir/lab"
	"weir/storage"
	"weir/storage/storagetest"
)

// gridTarget returns a GridFTP server that admits proxies, and the credentials for it.
func gridTarget(t testing.TB, change func(*storage.Auth)) (*lab.System, storage.Credentials) {
	t.Helper()
	g := lab.StartGridFTP(t, lab.GridFTPConfig{Auth: "gsi"})
	return g, gridCred(t, g, change)
}

func gridCred(t testing.TB, g *lab.System, change func(*storage.Auth)) storage.Credentials {
	t.Helper()
	a := storage.Auth{Method: storage.X509Auth, ProxyFile: g.Proxy, CADir: g.CADir}
	if change != nil {
		change(&a)
	}
	cred, err := a.Read()
	require.NoError(t, err)
	return cred
}

// TestGSIPassesTheSuite with all ways to secure data connections.
func TestGSIPassesTheSuite(t *testing.T) {
	for _, data := range []storage.DataChannel{storage.ClearData, storage.AuthenticatedData, storage.SafeData, storage.PrivateData} {
		t.Run(string(data), func(t *testing.T) {
			g, cred := gridTarget(t, func(a *storage.Auth) { a.DataChannel = data })
			storagetest.Run(t, Driver(), storagetest.TargetOf(t, g.URL, cred), storagetest.Options{
				Network: true, Few: data != storage.ClearData, Clients: 20, Lacks: []storagetest.Lack{storagetest.ForeignNames},
			})
		})
	}
}
