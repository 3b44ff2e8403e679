package webdav

import (
	"fmt"
	"testing"

	"weir/lab"
	"weir/lab/labtest"
	"weir/storage"
	"weir/storage/storagetest"
)

// XRootD servers copy from each other, in both directions, with TLS and without.
func TestXRootDCopiesPassTheSuite(t *testing.T) {
	for _, version := range labtest.XRootDs() {
		a := labtest.Start(t, lab.XRootDConfig{Version: version, Copies: true})
		b := labtest.Start(t, lab.XRootDConfig{Version: version, Copies: true, Authority: a})
		cred, err := storage.Auth{CAFile: a.CAFile}.Read()
		if err != nil {
			t.Fatal(err)
		}
		for _, scheme := range []string{"http", "https"} {
			for _, push := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s push %v", version, scheme, push), func(t *testing.T) {
					target := storagetest.TargetOf(t, b.URLs[scheme], cred)
					origin := storagetest.TargetOf(t, a.URLs[scheme], cred)
					target.Origin = &storage.Origin{URL: origin.URL, Cred: cred, Push: push, SciTag: 129}
					o := storagetest.Options{}
					if push { // XRootD ignores Overwrite when it pushes
						o.Lacks = append(o.Lacks, storagetest.SafeCopy)
					} else if scheme == "https" { // it cannot copy an empty file with several streams
						target.Origin.Streams, o.Lacks = 2, append(o.Lacks, storagetest.EmptyCopies)
					}
					storagetest.Copies(t, Driver(), target, o)
				})
			}
		}
	}
}
