package ftp

import (
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/storage"
	"weir/storage/storagetest"
)

// gridTarget returns a GridFTP server that accepts proxies, and the credentials for it.
func gridTarget(t testing.TB, change func(*storage.Auth)) (*lab.System, storage.Credentials) {
	t.Helper()
	g := labtest.Start(t, lab.GridFTPConfig{Auth: "gsi"})
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

// TestGSIPassesTheSuite runs the suite with all ways to secure data connections. In the first tier,
// secured data connections transfer only one file, since each connection costs both sides the key
// generation of a proxy.
func TestGSIPassesTheSuite(t *testing.T) {
	for _, data := range []storage.DataChannel{storage.ClearData, storage.AuthenticatedData, storage.SafeData, storage.PrivateData} {
		t.Run(string(data), func(t *testing.T) {
			g, cred := gridTarget(t, func(a *storage.Auth) { a.DataChannel = data })
			target := storagetest.TargetOf(t, g.URL, cred)
			bringsFile(t, target)
			if data != storage.ClearData {
				tier.Full(t, "the suite over secured data connections")
			}
			storagetest.Run(t, Driver(), target, storagetest.Options{
				Network: true, Few: data != storage.ClearData, Clients: 20, Lacks: []storagetest.Lack{storagetest.ForeignNames},
			})
		})
	}
}

// bringsFile writes a file, reads it and removes it.
func bringsFile(t *testing.T, target storage.Target) {
	t.Helper()
	client := storagetest.Client(t, Driver(), target)
	for _, kind := range []storage.Kind{storage.Write, storage.Read, storage.Stat, storage.Remove} {
		op := storage.Op{Kind: kind, Path: "one-file", Size: 300_000, Timeout: time.Minute}
		r, err := client.Do(t.Context(), &op, &silent{})
		if err != nil || (kind == storage.Read && r.Size != op.Size) {
			t.Fatalf("%s: %+v, %v", kind, r, err)
		}
	}
}
