package direct

import (
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/token"
	"weir/internal/tpc"
	"weir/internal/trust"
	"weir/internal/unit"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/challenge"
	"weir/loadtest/challenge/inject"
	"weir/serve"
	"weir/serve/servetest/requests"
	"weir/storage"
	"weir/transfer/endpoint"
)

// Between real servers copies are pulled and pushed, by http and by root. A server without
// third-party copies is named in the reason, and a file that is missing is blamed on its site.
func TestRealSites(t *testing.T) {
	for _, version := range labtest.XRootDs() {
		t.Run(version, func(t *testing.T) {
			x := labtest.Start(t, lab.XRootDConfig{Version: version, Copies: true, Extra: byRoot})
			y := labtest.Start(t, lab.XRootDConfig{Version: version, Copies: true, Authority: x, Extra: byRoot})
			n := labtest.Start(t, lab.NginxConfig{})
			own := t.TempDir()
			sites := []challenge.Site{
				{Name: "X", URL: x.URLs["http"], Root: x.URLs["root"]}, {Name: "Y", URL: y.URLs["http"], Root: y.URLs["root"]},
				{Name: "N", URL: strings.Replace(n.URL, "127.0.0.1", "localhost", 1)}, {Name: "S", URL: start(t, serve.Config{Dir: own}).URL()},
			}
			dirs := map[string]string{"X": x.Data, "Y": y.Data, "N": n.Data, "S": own}
			const size = 5_000_000
			for _, dir := range dirs {
				write(t, size, dir, "f")
			}
			links := []challenge.Link{
				{From: "X", To: "S", SciTag: 66}, {From: "X", To: "S", Mode: challenge.Push}, {From: "S", To: "X", SciTag: 67, Streams: 2},
				{From: "S", To: "X", Mode: challenge.Push}, {From: "X", To: "Y"}, {From: "X", To: "Y", Protocol: challenge.XRootD, SciTag: 68},
				{From: "N", To: "X"}, {From: "X", To: "N"}, {From: "N", To: "X", Mode: challenge.Push},
			}
			require.NoError(t, newRig(t, sites, links[:7]...).in.Check(t.Context()))
			r := newRig(t, sites, links...)
			if err := r.in.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "site N: N makes no such third-party copies") {
				t.Errorf("check of a site without copies: %v", err)
			}
			for _, dir := range dirs {
				if got := names(t, dir); got != "f" {
					t.Errorf("after the check %s has %s", dir, got)
				}
			}
			for i, l := range links {
				dest := fmt.Sprintf("g%d", i)
				last := r.copy(i, "f", dest, size)
				name := fmt.Sprintf("%s %s %s", l.Name(), l.Protocol, l.Mode)
				if i >= 7 {
					if last.State != inject.Failed || last.Site != "N" || !strings.Contains(last.Reason, "N makes no such third-party copies") {
						t.Errorf("%s: %+v", name, last)
					}
					continue
				}
				if last.State != inject.Done || last.Moved != size || last.Label != (l.SciTag > 0) {
					t.Errorf("%s: %+v", name, last)
					continue
				}
				same(t, filepath.Join(dirs[l.From], "f"), filepath.Join(dirs[l.To], dest))
				if last = r.copy(i, "none", dest+"-none", size); last.Class != storage.NotFound || last.Site != l.From {
					t.Errorf("%s: of a file that is not there: %+v", name, last)
				}
				if l.Mode == challenge.Push && l.From == "X" {
					continue // the site that receives cannot distinguish the copy from an upload
				}
				if last = r.copy(i, "f", dest, size); last.State != inject.Failed || last.Site != l.To {
					t.Errorf("%s: over a file that is there: %+v", name, last)
				}
			}
			for site, want := range map[string]string{"N": "f", "S": "f g0 g1", "X": "f g2 g3 g6", "Y": "f g4 g5"} {
				if got := whole(t, dirs[site]); got != want {
					t.Errorf("%s has %s, not %s", site, got, want)
				}
			}
		})
	}
}

// With TLS and tokens copies need the token of each site. Tokens that have ended are reported as
// such, and renewed tokens are used at once.
func TestRealTokens(t *testing.T) {
	for _, version := range labtest.XRootDs() {
		t.Run(version, func(t *testing.T) {
			issuer, err := token.Keep(filepath.Join(t.TempDir(), "issuer.pem"), "https://issuer.example", nil)
			require.NoError(t, err)
			x := labtest.Start(t, lab.XRootDConfig{Version: version, Copies: true, Auth: "ztn", Issuer: issuer.URL(), Keys: issuer.Keys(),
				Extra: byRoot})
			roots, err := trust.Authorities(x.CAFile)
			require.NoError(t, err)
			checker, err := token.NewChecker(token.Options{Trust: []token.Trust{issuer.Trust()}, Audience: []string{"door"}})
			require.NoError(t, err)
			own := t.TempDir()
			conf := serve.Config{Dir: own, Authenticate: endpoint.Bearer(checker), Extensions: []serve.Extension{endpoint.NewCopier(
				endpoint.CopyOptions{Guard: tpc.Guard{Hosts: []string{"*"}, Private: true}, TLS: &tls.Config{RootCAs: roots}})}}
			conf.CertFile, conf.KeyFile = x.HostFiles()
			s, err := serve.New(conf)
			require.NoError(t, err)
			requests.Serve(t, s)
			mint := func(life time.Duration) string {
				raw, err := issuer.Mint(token.Grant{Subject: "test", Audience: []string{token.Any}, Life: life,
					Scopes: []string{"storage.read:/", "storage.create:/", "storage.modify:/"}})
				require.NoError(t, err)
				return raw
			}
			auth := secret(t, mint(time.Hour))
			auth.CAFile = x.CAFile
			const size = 1_000_000
			write(t, size, x.Data, "f")
			write(t, size, own, "f")
			sites := []challenge.Site{{Name: "X", URL: x.URLs["https"], Auth: auth}, {Name: "S", URL: s.URL(), Auth: auth}}
			links := []challenge.Link{{From: "X", To: "S"}, {From: "X", To: "S", Mode: challenge.Push}, {From: "S", To: "X"},
				{From: "S", To: "X", Mode: challenge.Push}}
			r := newRig(t, sites, links...)
			require.NoError(t, r.in.Check(t.Context()))
			for i, l := range links {
				if last := r.copy(i, "f", fmt.Sprintf("g%d", i), size); last.State != inject.Done {
					t.Errorf("%s %s: %+v", l.Name(), l.Mode, last)
				}
			}
			past := time.Now().Add(-2 * time.Hour)
			old, err := token.Keep(filepath.Join(t.TempDir(), "issuer.pem"), issuer.URL(), func() time.Time { return past })
			require.NoError(t, err)
			raw, err := old.Mint(token.Grant{Subject: "test", Audience: []string{token.Any}, Life: time.Hour, Scopes: []string{"storage.read:/"}})
			require.NoError(t, err)
			ended := secret(t, raw)
			ended.CAFile = x.CAFile
			late := newRig(t, []challenge.Site{{Name: "X", URL: x.URLs["https"], Auth: ended}, {Name: "S", URL: s.URL(), Auth: auth}}, links...)
			for i, l := range links {
				if last := late.copy(i, "f", fmt.Sprintf("h%d", i), size); last.State != inject.Failed || !last.Expired || last.Site != "X" {
					t.Errorf("%s %s with a token that has ended: %+v", l.Name(), l.Mode, last)
				}
			}
			byRoot := newRig(t, []challenge.Site{{Name: "X", URL: x.URLs["roots"], Auth: ended}, {Name: "Y", URL: x.URLs["roots"], Auth: auth}},
				challenge.Link{From: "X", To: "Y", Protocol: challenge.XRootD}, challenge.Link{From: "Y", To: "X", Protocol: challenge.XRootD})
			for i := range 2 {
				if last := byRoot.copy(i, "f", "root", size); last.State != inject.Failed || !last.Expired || last.Site != "X" {
					t.Errorf("by root with a token that has ended: %+v", last)
				}
			}
		})
	}
}

// A copy between real servers is cancelled within 10 s, and no more of its bytes move. A real source
// that is killed in the middle of a copy is a failure. The servers may leave a part of each file.
func TestRealSourceIsKilled(t *testing.T) {
	tier.Full(t, "copies of real servers that are cancelled or lose their source")
	for _, protocol := range []challenge.Protocol{challenge.WebDAV, challenge.XRootD} {
		t.Run(string(protocol), func(t *testing.T) {
			t.Parallel()
			x := labtest.Start(t, lab.XRootDConfig{Copies: true, Extra: byRoot + throttle})
			y := labtest.Start(t, lab.XRootDConfig{Copies: true, Extra: byRoot})
			const size = 300_000_000
			write(t, size, x.Data, "f")
			r := newRig(t, []challenge.Site{{Name: "X", URL: x.URLs["http"], Root: x.URLs["root"]},
				{Name: "Y", URL: y.URLs["http"], Root: y.URLs["root"]}}, challenge.Link{From: "X", To: "Y", Protocol: protocol})
			cancelled := r.start(0, "f", "cancelled", size)
			require.Eventually(t, "it begins", func() bool { return len(r.reports(cancelled)) > 1 })
			r.c.Timeout = unit.Duration(30 * time.Second) // xrdcp waits for a source that is down
			id := r.start(0, "f", "killed", size)
			for _, i := range []int64{cancelled, id} {
				require.Eventually(t, "bytes move", func() bool {
					all := r.reports(i)
					return all[len(all)-1].State == inject.Running || all[len(all)-1].State.Ended()
				})
			}
			begun := time.Now()
			require.NoError(t, r.in.Cancel(t.Context(), []int64{cancelled}))
			if last := r.final(cancelled); last.State != inject.Cancelled || time.Since(begun) > 10*time.Second {
				t.Errorf("%+v after %v", last, time.Since(begun))
			}
			rests(t, filepath.Join(y.Data, "cancelled"))
			x.Kill()
			if last := r.final(id); last.State != inject.Failed || last.Site == "Y" || last.Moved == size || last.Class != storage.Reset &&
				last.Class != storage.Timeout {
				t.Errorf("%+v", last)
			}
			if left := names(t, y.Data); !slices.Contains([]string{"", "cancelled", "killed", "cancelled killed"}, left) {
				t.Errorf("left: %s", left)
			}
		})
	}
}

// rests waits until a file has not grown for a second, or does not exist.
func rests(t testing.TB, path string) {
	t.Helper()
	size, since := int64(-1), time.Now()
	require.Eventually(t, "the file does not grow", func() bool {
		info, err := os.Stat(path)
		if err != nil {
			return true
		}
		if info.Size() != size {
			size, since = info.Size(), time.Now()
		}
		return time.Since(since) > time.Second
	})
	if size == 300_000_000 {
		t.Errorf("%s was copied to its end", path)
	}
}

// byRoot makes XRootD fetch files from others by root, and throttle makes it send at most 5 MB/s.
const (
	byRoot   = "ofs.tpc ttl 60 120 pgm /usr/bin/xrdcp --server\n"
	throttle = "xrootd.fslib ++ throttle\nthrottle.throttle data 5m\n"
)

// whole returns the names in a folder without those of copies that failed: XRootD leaves empty files.
func whole(t testing.TB, dir string) string {
	t.Helper()
	return strings.Join(slices.DeleteFunc(strings.Fields(names(t, dir)), func(n string) bool { return strings.HasSuffix(n, "-none") }), " ")
}
