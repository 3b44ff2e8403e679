package endpoint

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/token"
	"weir/internal/tpc"
	"weir/internal/trust"
	"weir/lab"
	"weir/lab/labtest"
	"weir/serve"
	"weir/serve/servetest/requests"
)

// a grid is an endpoint and a real XRootD server that trust one authority and one issuer.
type grid struct {
	xrootd      *lab.System
	door, plain *serve.Server // with TLS and without
	dir         string        // of the endpoints
	issuer      *token.Issuer
	client      *tpc.Client
	roots       *x509.CertPool
}

func newGrid(t *testing.T, version string) *grid {
	t.Helper()
	g := &grid{dir: t.TempDir(), issuer: newIssuer(t)}
	g.xrootd = labtest.Start(t, lab.XRootDConfig{Version: version, Copies: true, Auth: "ztn", Issuer: g.issuer.URL(), Keys: g.issuer.Keys()})
	var err error
	g.roots, err = trust.Authorities(g.xrootd.CAFile)
	require.NoError(t, err)
	g.plain = start(t, g.config(t, g.dir))
	g.door = start(t, g.secure(t, g.dir))
	g.client = tpc.New(tpc.Options{TLS: &tls.Config{RootCAs: g.roots}})
	t.Cleanup(g.client.Close)
	return g
}

// config returns the configuration of an endpoint that trusts the grid's authority and issuer.
func (g *grid) config(t *testing.T, dir string) serve.Config {
	o := local()
	o.TLS = &tls.Config{RootCAs: g.roots}
	return serve.Config{Dir: dir, Authenticate: trusting(t, g.issuer), Extensions: copying(o)}
}

// secure adds TLS to config.
func (g *grid) secure(t *testing.T, dir string) serve.Config {
	c := g.config(t, dir)
	c.CertFile, c.KeyFile = g.xrootd.HostFiles()
	return c
}

func (g *grid) token(t *testing.T, scopes ...string) string {
	t.Helper()
	raw, err := g.issuer.Mint(token.Grant{Subject: "test", Audience: []string{token.Any}, Scopes: scopes, Life: time.Hour})
	require.NoError(t, err)
	return raw
}

// Files are copied between an endpoint and a real XRootD server: pulled and pushed, with either of
// them as the active party, over http and https, with tokens of one issuer for one path each.
func TestCopiesWithXRootD(t *testing.T) {
	for _, version := range labtest.XRootDs() {
		t.Run(version, func(t *testing.T) {
			g := newGrid(t, version)
			text := requests.Content(1, 5_000_000)
			want := strings.TrimPrefix(sumOf(t, text), "adler32:")
			requests.Write(t, text, g.dir, "here")
			require.NoError(t, os.WriteFile(filepath.Join(g.xrootd.Data, "there"), []byte(text), 0o644))
			for _, scheme := range []string{"http", "https"} {
				door := g.plain.URL()
				if scheme == "https" {
					door = g.door.URL()
				}
				there := g.xrootd.URLs[scheme]
				for name, o := range map[string]tpc.Order{
					"door-pulls":  {Active: tpc.Target{URL: door + "/A"}, Passive: tpc.Target{URL: there + "/there"}, Verify: true},
					"door-pushes": {Active: tpc.Target{URL: door + "/here"}, Passive: tpc.Target{URL: there + "/A"}, Push: true, Verify: true},
					"xrd-pulls":   {Active: tpc.Target{URL: there + "/A"}, Passive: tpc.Target{URL: door + "/here"}},
					"xrd-pushes":  {Active: tpc.Target{URL: there + "/there"}, Passive: tpc.Target{URL: door + "/A"}, Push: true},
					"4-streams":   {Active: tpc.Target{URL: there + "/A"}, Passive: tpc.Target{URL: door + "/here"}, Streams: 4},
				} {
					source, dest := &o.Passive, &o.Active
					if o.Push {
						source, dest = dest, source
					}
					file := "/" + name + "-" + scheme
					dest.URL = dest.URL[:len(dest.URL)-2] + file
					// XRootD needs read for HEAD
					source.Token, dest.Token = g.token(t, "storage.read:/"), g.token(t, token.Path("create", file), token.Path("read", file))
					if err := g.client.Drive(t.Context(), o, nil); err != nil {
						t.Errorf("%s over %s: %v", name, scheme, err)
						continue
					}
					info, err := g.client.Checksum(t.Context(), *dest, tpc.Wish{Patience: time.Minute})
					if err != nil || info.Adler != want || info.Size != int64(len(text)) {
						t.Errorf("%s over %s: %+v, %v", name, scheme, info, err)
					}
					moved := *dest // after a copy to a temporary name
					moved.Token = g.token(t, token.Path("create", file), token.Path("read", file), token.Path("create", file+".moved"),
						token.Path("read", file+".moved"))
					if err := g.client.Move(t.Context(), moved, dest.URL+".moved"); err != nil {
						t.Errorf("%s over %s: %v", name, scheme, err)
					}
					o.Active.Token = g.token(t, "storage.read:/elsewhere")
					if err := g.client.Drive(t.Context(), o, nil); tpc.KindOf(err) != tpc.Denied {
						t.Errorf("%s over %s with a token for another Path: %v (%s)", name, scheme, err, tpc.KindOf(err))
					}
				}
			}
		})
	}
}

// The errors that a real XRootD server reports when its source fails are classified.
func TestXRootDTellsOfBadSources(t *testing.T) {
	for _, version := range labtest.XRootDs() {
		t.Run(version, func(t *testing.T) {
			g := newGrid(t, version)
			dest := tpc.Target{URL: g.xrootd.URLs["http"] + "/x", Token: g.token(t, "storage.modify:/")}
			for name, tt := range map[string]struct {
				path, raw string
				kind      tpc.Kind
			}{
				"missing": {"/none", g.token(t, "storage.read:/"), tpc.Missing},
				"denied":  {"/none", g.token(t, "storage.read:/other"), tpc.Denied},
				"nobody":  {"/none", "nonsense", tpc.Denied},
			} {
				err := g.client.Drive(t.Context(), tpc.Order{Active: dest, Passive: at(g.plain, tt.path, tt.raw), Overwrite: true}, nil)
				if tpc.KindOf(err) != tt.kind {
					t.Errorf("%s: %v (%s)", name, err, tpc.KindOf(err))
				}
			}
			early := source(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Length", "1000000")
				if r.Method == http.MethodGet {
					_, _ = w.Write(make([]byte, 1000))
					panic(http.ErrAbortHandler)
				}
			})
			if err := g.client.Drive(t.Context(), tpc.Order{Active: dest, Passive: early, Overwrite: true}, nil); err == nil {
				t.Error("a source that ended early was taken")
			} else {
				t.Log(err)
			}
		})
	}
}
