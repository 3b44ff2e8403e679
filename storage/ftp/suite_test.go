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
