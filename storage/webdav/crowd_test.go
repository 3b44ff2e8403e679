package webdav

import (
	"crypto/tls"
	"testing"

	"weir/internal/tier"
	"weir/lab"
	"weir/lab/labtest"
	"weir/storage"
	"weir/storage/storagetest"
)

// TestCrowd checks the resources of thousands of idle clients. WEIR_CROWD=19000 selects the full
// size.
func TestCrowd(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector has shadow memory")
	}
	tier.Slow(t, "thousands of clients")
	const usual = 2000
	plain := labtest.Start(t, lab.NginxConfig{Workers: 3, Connections: 9900})
	place(t, plain.Data, "f", 1, 64<<10)
	t.Run("http", func(t *testing.T) {
		s := storagetest.Open(t, Driver(), storagetest.TargetOf(t, plain.URL, storage.Credentials{}))
		storagetest.Crowd(t, s, "f", usual, 3<<10)
	})
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		secure := labtest.Start(t, lab.NginxConfig{Config: lab.Config{TLS: true}, Workers: 3, Connections: 9900,
			Extra: "ssl_protocols TLSv1.2 TLSv1.3;"})
		place(t, secure.Data, "f", 1, 64<<10)
		conf := trust(t, secure.CAFile)
		conf.MinVersion, conf.MaxVersion = version, version
		for _, mode := range []storage.Resumption{storage.ResumeNone, storage.ResumeOwn} {
			t.Run(tls.VersionName(version)+", "+string(mode), func(t *testing.T) {
				target := storagetest.TargetOf(t, secure.URLs["https"], storage.Credentials{TLS: conf})
				target.Resume = mode
				storagetest.Crowd(t, storagetest.Open(t, Driver(), target), "f", usual, 8<<10)
			})
		}
	}
}
