package xrootd

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"
	"testing"
	"time"

	"weir/lab"
	"weir/lab/labtest"
	"weir/storage"
	"weir/storage/storagetest"
)

// versions returns the tested XRootDs, by their names: this system's ("") is "system".
func versions() map[string]string {
	all := map[string]string{}
	for _, v := range labtest.XRootDs() {
		all[cmp.Or(v, "system")] = v
	}
	return all
}

// TestTLSThatServersDemand runs servers that require TLS before the login, after it, or for data,
// with clients that use root://; data servers behind a redirector as well. xrdcp cannot connect to
// servers that require TLS for data alone.
func TestTLSThatServersDemand(t *testing.T) {
	for name, version := range versions() {
		for _, c := range []struct {
			demand  string
			servers int
		}{{"login", 0}, {"session", 0}, {"data", 0}, {"login session data", 0}, {"capable session", 0}, {"all -tpc", 0}, {"session", 2},
			{"data", 2}} {
			t.Run(name+"/"+c.demand+map[int]string{2: "/cluster"}[c.servers], func(t *testing.T) {
				t.Parallel()
				xr := labtest.Start(t, lab.XRootDConfig{Version: version, Servers: c.servers, Config: lab.Config{TLS: true}, Extra: "xrootd.tls " +
					c.demand + "\n"})
				for _, shared := range []bool{false, true} {
					target := storagetest.TargetOf(t, xr.URL, credentials(t, storage.Auth{CAFile: xr.CAFile}))
					target.Shared = shared
					if e := brings(t, target); !slices.Contains(e.phases, storage.Secured) {
						t.Errorf("shared %v: no TLS: %v", shared, e.phases)
					}
				}
			})
		}
	}
}

// brings writes a file, reads it with its checksum, requests its size and removes it.
func brings(t *testing.T, target storage.Target) *events {
	t.Helper()
	client := storagetest.Client(t, Driver(), target)
	var e events
	path := rand.Text() // redirectors remember for a while where a removed file was, and refuse to create it again
	for _, op := range []storage.Op{{Kind: storage.Write, Size: 100_000, Sum: "adler32"}, {Kind: storage.Read, Size: 100_000, Sum: "adler32"},
		{Kind: storage.Stat}, {Kind: storage.Remove}} {
		op.Path, op.Timeout = path, 30*time.Second
		r, err := client.Do(t.Context(), &op, &e)
		if err != nil {
			t.Fatalf("%s: %v", op.Kind, err)
		}
		e.signed += r.Signed
	}
	return &e
}

// TestRequestsThatServersWantSigned runs servers that require signatures, of each level, also with
// logins that agree on no key.
func TestRequestsThatServersWantSigned(t *testing.T) {
	for name, version := range versions() {
		for _, c := range []struct {
			auth, level string
			servers     int
			signed      bool
		}{
			{"gsi", "compatible", 0, true}, {"gsi", "standard", 0, true}, {"gsi", "intense", 0, true}, {"gsi", "pedantic", 0, true},
			{"gsi", "intense", 2, true}, {"krb5", "pedantic", 0, false}, {"krb5", "pedantic force", 0, true},
			{"unix", "standard force", 0, true}, {"unix", "pedantic force", 2, true}, {"none", "standard", 0, false},
		} {
			t.Run(fmt.Sprintf("%s/%s/%s/%d", name, c.auth, c.level, c.servers), func(t *testing.T) {
				t.Parallel()
				xr := labtest.Start(t, lab.XRootDConfig{Version: version, Auth: c.auth, Servers: c.servers, Extra: "sec.level all " + c.level + "\n"})
				for _, shared := range []bool{false, true} {
					target := storagetest.TargetOf(t, xr.URL, credentials(t, settings(t, xr)))
					target.Shared = shared
					if e := brings(t, target); e.signed > 0 != c.signed {
						t.Errorf("shared %v: %d requests were signed", shared, e.signed)
					}
				}
			})
		}
	}
}

// TestSignedSuite runs the suite with signatures on all kinds of requests.
func TestSignedSuite(t *testing.T) {
	for name, version := range versions() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			xr := labtest.Start(t, lab.XRootDConfig{Version: version, Auth: "unix", Extra: "sec.level all pedantic force\n"})
			target := storagetest.TargetOf(t, xr.URL, credentials(t, settings(t, xr)))
			storagetest.Run(t, Driver(), target, storagetest.Options{Few: true, Lacks: lacks()})
			target.Shared = true
			storagetest.Run(t, Driver(), target, storagetest.Options{Few: true, Shared: true, Lacks: lacks()})
		})
	}
}
