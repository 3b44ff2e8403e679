package xrootd

import (
	"testing"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/storage"
	"weir/storage/storagetest"
)

// TestCrowd checks the resources of a thousand idle clients with a session each.
func TestCrowd(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector has shadow memory")
	}
	tier.Slow(t, "a thousand clients")
	for _, scheme := range []string{"root", "roots"} {
		t.Run(scheme, func(t *testing.T) {
			xr := labtest.Start(t, lab.XRootDConfig{Config: lab.Config{TLS: scheme == "roots"}})
			require.NoError(t, xr.WriteFile("f", made(64<<10)))
			url, cred := xr.URL, storage.Credentials{}
			if scheme == "roots" {
				url, cred = xr.URLs[scheme], credentials(t, storage.Auth{CAFile: xr.CAFile})
			}
			storagetest.Crowd(t, serviceAt(t, url, cred), "f", 1000, 8<<10)
		})
	}
}
