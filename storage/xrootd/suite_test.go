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

func TestSharedSessionsPassTheSuite(t *testing.T) {
	xr := lab.StartXRootD(t, lab.XRootDConfig{Config: lab.Config{TLS: true}})
	for _, url := range []string{xr.URL, xr.URLs["roots"]} {
		target := targetOf(t, url, credentials(t, storage.Auth{CAFile: xr.CAFile}))
		target.Shared = true
		t.Run(target.URL.Scheme, func(t *testing.T) {
			storagetest.Run(t, Driver(), target, storagetest.Options{
				Network: true, Shared: true, Few: true, Lacks: []storagetest.Lack{storagetest.QuestionMarks, storagetest.SafeMove},
			})
		})
	}
}

func credentials(t testing.TB, a storage.Auth) storage.Credentials {
	t.Helper()
	c, err := a.Read()
	if err != nil {
		t.Fatal(err)
	}
	return c
}
