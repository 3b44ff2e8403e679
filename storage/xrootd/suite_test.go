package xrootd

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

func TestServerPassesTheSuite(t *testing.T) {
	xr := lab.StartXRootD(t, lab.XRootDConfig{})
	storagetest.Run(t, Driver(), targetOf(t, xr.URL, storage.Credentials{}), storagetest.Options{
		Network: true, Lacks: []storagetest.Lack{storagetest.QuestionMarks, storagetest.SafeMove},
	})
}
