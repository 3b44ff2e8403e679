package xrootd

import (
	"testing"

	"weir/lab"
	"weir/lab/labtest"
	"weir/storage"
	"weir/storage/storagetest"
)

const copiesByRoot = "ofs.tpc ttl 60 120 pgm /usr/bin/xrdcp --server\n"

// XRootD servers copy from each other.
func TestCopiesPassTheSuite(t *testing.T) {
	for _, version := range labtest.XRootDs() {
		t.Run(version, func(t *testing.T) {
			a := labtest.Start(t, lab.XRootDConfig{Version: version, Extra: copiesByRoot})
			b := labtest.Start(t, lab.XRootDConfig{Version: version, Extra: copiesByRoot})
			target := storagetest.TargetOf(t, b.URL, storage.Credentials{})
			target.Origin = &storage.Origin{URL: storagetest.TargetOf(t, a.URL, storage.Credentials{}).URL, SciTag: 129}
			storagetest.Copies(t, Driver(), target, storagetest.Options{})
		})
	}
}
