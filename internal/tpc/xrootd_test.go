package tpc

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/adler32"
	"os"
	"path/filepath"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/trust"
	"weir/lab"
	"weir/lab/labtest"
)

// trusting returns a client that trusts a system's authority.
func trusting(t *testing.T, s *lab.System) *Client {
	t.Helper()
	pool, err := trust.Authorities(s.CAFile)
	require.NoError(t, err)
	return client(t, Options{TLS: &tls.Config{RootCAs: pool}})
}

// each runs a test on the XRootD of this system and on later versions.
func each(t *testing.T, f func(t *testing.T, version string)) {
	for _, version := range labtest.XRootDs() {
		t.Run(version, func(t *testing.T) { f(t, version) })
	}
}

// Two real XRootD servers copy between each other under our client, in both directions,
// with TLS and without.
func TestXRootDCopiesToXRootD(t *testing.T) {
	each(t, func(t *testing.T, version string) {
		a := labtest.Start(t, lab.XRootDConfig{Version: version, Copies: true})
		b := labtest.Start(t, lab.XRootDConfig{Version: version, Copies: true, Authority: a})
		c := trusting(t, a)
		data := bytes.Repeat([]byte("0123456789abcde\n"), 300_000)
		sum := fmt.Sprintf("%08x", adler32.Checksum(data))
		require.NoError(t, a.WriteFile("f", data))
		for _, scheme := range []string{"http", "https"} {
			for _, push := range []bool{false, true} {
				source := Target{URL: a.URLs[scheme] + "/f"}
				dest := Target{URL: fmt.Sprintf("%s/new-%s-%v/deep/f", b.URLs[scheme], scheme, push)}
				part := Target{URL: dest.URL + ".part"}
				require.NoError(t, c.Parents(t.Context(), dest))
				if err := c.Parents(t.Context(), dest); err != nil {
					t.Errorf("folders that are there: %v", err)
				}
				o := Order{Active: part, Passive: source, Push: push}
				if push {
					o.Active, o.Passive = source, part
				}
				if err := c.Drive(t.Context(), o, nil); err != nil {
					t.Fatalf("%s, push %v: %v", scheme, push, err)
				}
				info, err := c.Checksum(t.Context(), part, Wish{Patience: time.Minute})
				if err != nil || info.Size != int64(len(data)) || info.Adler != sum {
					t.Errorf("%s, push %v: %+v, %v", scheme, push, info, err)
				}
				if err := c.Move(t.Context(), part, dest.URL); err != nil {
					t.Error(err)
				}
				if info, err = c.Checksum(t.Context(), dest, Wish{Patience: time.Minute}); err != nil || info.Adler != sum {
					t.Errorf("%+v, %v", info, err)
				}
				if _, err := c.Stat(t.Context(), part); KindOf(err) != Missing {
					t.Errorf("the temporary after MOVE: %v", err)
				}
				if err := c.Drive(t.Context(), Order{Active: dest, Passive: source}, nil); KindOf(err) != Exists {
					t.Errorf("over a file that is there: %v", err)
				}
				other := Target{URL: dest.URL + ".other"}
				if err := c.Drive(t.Context(), Order{Active: other, Passive: source}, nil); err != nil {
					t.Error(err)
				}
				if err := c.Move(t.Context(), other, dest.URL); KindOf(err) != Exists {
					t.Errorf("MOVE over a file: %v", err)
				}
				if err := c.Remove(t.Context(), dest); err != nil {
					t.Error(err)
				}
				if err := c.Remove(t.Context(), dest); err != nil {
					t.Errorf("a second time: %v", err)
				}
			}
		}
		if able, err := c.Ask(t.Context(), Target{URL: a.URLs["https"] + "/f"}); err != nil || !able.Copy {
			t.Errorf("%+v, %v", able, err)
		}
	})
}

// Behind a redirector, COPY goes on to the data server that has the file, or gets it.
func TestXRootDRedirectors(t *testing.T) {
	each(t, func(t *testing.T, version string) {
		a := labtest.Start(t, lab.XRootDConfig{Version: version, Copies: true, Servers: 2})
		b := labtest.Start(t, lab.XRootDConfig{Version: version, Copies: true, Servers: 2, Authority: a})
		c := trusting(t, a)
		data := bytes.Repeat([]byte("0123456789abcde\n"), 10_000)
		for _, s := range a.Servers[1:] {
			require.NoError(t, os.WriteFile(filepath.Join(s.Data, "f-"+s.Name), data, 0o644))
		}
		for _, s := range a.Servers[1:] {
			for _, push := range []bool{false, true} {
				o := Order{Active: Target{URL: fmt.Sprintf("%s/%s-%v", b.URLs["https"], s.Name, push)},
					Passive: Target{URL: a.URLs["https"] + "/f-" + s.Name}, Push: push}
				dest := o.Active
				if push {
					o.Active, o.Passive = o.Passive, o.Active
				}
				err := c.Drive(t.Context(), o, nil)
				for try := 1; err != nil && push && version != "" && try < 6; try++ { // see docs/xrootd.md
					t.Logf("%v", err)
					err = c.Drive(t.Context(), o, nil)
				}
				if err != nil {
					t.Errorf("%s, push %v: %v", s.Name, push, err)
					continue
				}
				if info, err := c.Checksum(t.Context(), dest, Wish{Patience: time.Minute}); err != nil || info.Size != int64(len(data)) {
					t.Errorf("%s, push %v: %+v, %v", s.Name, push, info, err)
				}
			}
		}
	})
}

// The failures that XRootD reports.
func TestXRootDFailures(t *testing.T) {
	each(t, func(t *testing.T, version string) {
		a := labtest.Start(t, lab.XRootDConfig{Version: version, Copies: true})
		c := trusting(t, a)
		for name, tt := range map[string]struct {
			source string
			kind   Kind
		}{
			"missing": {a.URLs["http"] + "/none", Missing},
			"nobody":  {"http://127.0.0.1:1/f", Failed},
		} {
			var e *Error
			dest := Target{URL: a.URLs["http"] + "/" + name}
			err := c.Drive(t.Context(), Order{Active: dest, Passive: Target{URL: tt.source}}, nil)
			if !errors.As(err, &e) || e.Kind != tt.kind || e.Begun != (version == "") { // later versions check the source first
				t.Errorf("%s: %v (%s)", name, err, KindOf(err))
			}
			// see docs/third-party.md
			if info, err := c.Stat(t.Context(), dest); version == "" && (err != nil || info.Size != 0) || version != "" && KindOf(err) != Missing {
				t.Errorf("%s: what a failed pull leaves: %+v, %v", name, info, err)
			}
		}
	})
}

// A real XRootD makes macaroons. They allow the same operations as its rules allow to clients
// without a certificate: no operation, or the operations that all clients may perform.
func TestXRootDMacaroons(t *testing.T) {
	each(t, func(t *testing.T, version string) {
		for rules, want := range map[string]Kind{"u nobody / a": Unsupported, "u * / a": ""} {
			x := labtest.Start(t, lab.XRootDConfig{Version: version, Copies: true, Macaroons: rules})
			text, err := trusting(t, x).Macaroon(t.Context(), Target{URL: x.URLs["https"] + "/", Token: "a token"}, MayRead, time.Minute)
			if KindOf(err) != want || (err == nil) != (text != "") {
				t.Errorf("%q: %q, %v", rules, text, err)
			}
		}
	})
}
