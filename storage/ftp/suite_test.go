package ftp

import (
	"net/url"
	"testing"

	"weir/lab"
	"weir/storage"
	"weir/storage/storagetest"
)

func targetOf(t testing.TB, text string, cred storage.Credentials) storage.Target {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return storage.Target{URL: u, Cred: cred}
}

func TestGridFTPPassesTheSuite(t *testing.T) {
	g := lab.StartGridFTP(t, lab.GridFTPConfig{})
	storagetest.Run(t, Driver(), targetOf(t, g.URL, storage.Credentials{}), storagetest.Options{
		Network: true, Lacks: []storagetest.Lack{storagetest.ForeignNames},
	})
}

// Without MLST and MLSD, since with them a plain FTP server is like a GridFTP server.
func TestPlainFTPPassesTheSuite(t *testing.T) {
	f := lab.StartProFTPD(t, lab.ProFTPDConfig{Old: true})
	storagetest.Run(t, Driver(), targetOf(t, f.URL, secret(f)), storagetest.Options{
		Network: true, Few: true, Clients: 20, Lacks: []storagetest.Lack{storagetest.ServerSums},
	})
}

func secret(f *lab.System) storage.Credentials {
	return storage.Credentials{Method: "basic", User: f.User, Password: "secret"}
}
