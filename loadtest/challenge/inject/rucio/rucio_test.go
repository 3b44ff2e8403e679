package rucio_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	_ "embed"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"hash/adler32"
	"io/fs"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
	"weir/internal/tpc"
	"weir/internal/unit"
	"weir/lab"
	"weir/lab/labtest"
	"weir/loadtest/challenge"
	"weir/loadtest/challenge/inject"
	"weir/loadtest/challenge/inject/rucio"
	"weir/storage"
	"weir/transfer/access"
	"weir/transfer/coordinator"
	"weir/transfer/fts/rest"
	"weir/transfer/transfertest"
)

//go:embed testdata/rucio.py
var python string

const scope = "challenge"

// A rig is a real Rucio with two real servers as RSEs X and Y, whose transfer service is a coordinator.
type rig struct {
	t    *testing.T
	r    *lab.Rucio
	x, y *lab.System
	plan *challenge.Challenge
	conf inject.Config

	mu   sync.Mutex
	news map[int64][]inject.Report
}

func startRig(t *testing.T) *rig {
	t.Helper()
	labtest.FTS(t)
	cert, authority := certificate(t)
	r := &rig{t: t, news: map[int64][]inject.Report{}}
	r.x = labtest.Start(t, lab.XRootDConfig{Copies: true})
	r.y = labtest.Start(t, lab.XRootDConfig{Copies: true, Authority: r.x})
	conf := coordinator.Config{State: t.TempDir(), Listen: labtest.Address(t), Approve: -1, SiteCA: r.x.CAFile, JobArea: tpc.Loopback,
		CA: authority, Names: map[string][]string{"rucio": {access.MaySubmit}}}
	s := transfertest.Start(t, func(ctx context.Context) (transfertest.Coordinator, error) { return coordinator.Open(ctx, conf) })
	r.r = labtest.Start(t, lab.RucioConfig{Certificate: cert})
	var rses []map[string]string
	for name, at := range map[string]*lab.System{"X": r.x, "Y": r.y} {
		u, err := url.Parse(at.URLs["https"])
		require.NoError(t, err)
		folder := filepath.Join(at.Data, "store")
		require.NoError(t, os.MkdirAll(folder, 0o777))
		require.NoError(t, os.Chmod(folder, 0o777))
		rses = append(rses, map[string]string{"Name": name, "Host": u.Hostname(), "Port": u.Port(), "Prefix": u.Path + "/store",
			"Folder": folder})
	}
	r.part(t.Context(), "setup", map[string]any{"rses": rses, "fts": s.Address.URLs[0] + rest.Path, "scope": scope})
	password := filepath.Join(t.TempDir(), "password")
	settings := string(require.File(t, filepath.Join(r.r.Dir, "etc/rucio.cfg")))
	require.NoError(t, os.WriteFile(password, []byte(regexp.MustCompile(`(?m)^password = (.*)$`).FindStringSubmatch(settings)[1]), 0o600))
	r.plan = &challenge.Challenge{Name: "test", Timeout: unit.Duration(10 * time.Minute), Verify: true,
		Inject: challenge.Injection{By: challenge.Rucio, URL: r.r.URL, Account: "root", Scope: scope,
			Auth: storage.Auth{Method: storage.BasicAuth, User: "ddmlab", PasswordFile: password}},
		Sites: []challenge.Site{{Name: "A", RSE: "X", URL: r.x.URLs["https"] + "/store"},
			{Name: "B", RSE: "Y", URL: r.y.URLs["https"] + "/store"}},
		Links: []challenge.Link{{From: "A", To: "B", Protocol: challenge.WebDAV}}}
	r.conf = inject.Config{Challenge: r.plan, Dir: filepath.Join(t.TempDir(), "inject"), Report: r.report}
	return r
}

// part runs a part of testdata/rucio.py until it or ctx ends.
func (r *rig) part(ctx context.Context, part string, in any) {
	r.t.Helper()
	text, err := json.Marshal(in)
	require.NoError(r.t, err)
	file := filepath.Join(r.t.TempDir(), part)
	require.NoError(r.t, os.WriteFile(file, text, 0o600))
	if out, err := r.r.Run(ctx, "python3", "-c", python, part, file); err != nil && ctx.Err() == nil {
		r.t.Errorf("%v", err)
	} else {
		r.t.Logf("%s: %.3000s", part, out)
	}
}

// daemons runs Rucio's daemons until stop is called or the test ends.
func (r *rig) daemons() (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.t.Context()))
	var run sync.WaitGroup
	run.Go(func() { r.part(ctx, "daemons", map[string]any{}) })
	stop = sync.OnceFunc(func() { cancel(); run.Wait() })
	r.t.Cleanup(stop)
	return stop
}

// certificate makes a client certificate. It returns a file with the certificate and its key, and a
// file with its authority.
func certificate(t *testing.T) (file, authority string) {
	t.Helper()
	ca, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	key, err := rsa.GenerateKey(rand.Reader, 2048) // FTS's client supports no other type
	require.NoError(t, err)
	above := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(5 * time.Hour), KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true}
	of := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "rucio"}, NotBefore: above.NotBefore,
		NotAfter: above.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	root, err := x509.CreateCertificate(rand.Reader, above, above, ca.Public(), ca)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, of, above, key.Public(), ca)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	file, authority = filepath.Join(t.TempDir(), "rucio.pem"), filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(file, slices.Concat(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})), 0o600))
	require.NoError(t, os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root}), 0o600))
	return file, authority
}

func (r *rig) report(n inject.Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.news[n.ID] = append(r.news[n.ID], n)
}

// ended waits until copies have ended and returns their last reports.
func (r *rig) ended(limit time.Duration, ids ...int64) map[int64]inject.Report {
	r.t.Helper()
	last := map[int64]inject.Report{}
	r.until(limit, "all copies end", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, id := range ids {
			if all := r.news[id]; len(all) > 0 && all[len(all)-1].State.Ended() {
				last[id] = all[len(all)-1]
			}
		}
		return len(last) == len(ids)
	})
	return last
}

// until waits for a condition: the cycles of Rucio's daemons take seconds each.
func (r *rig) until(limit time.Duration, what string, ok func() bool) {
	r.t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("%s: not within %s: %+v", what, limit, r.news)
		}
	}
}

// files makes files at X, at the paths that Rucio gives them.
func (r *rig) files(first, n int) (all []inject.File) {
	r.t.Helper()
	for k := first; k < first+n; k++ {
		name := fmt.Sprintf("weir-test-A-%d", k)
		data := bytes.Repeat([]byte(name+"\n"), 3000)
		path := filepath.Join(r.x.Data, "store", rucio.Path(scope, name))
		for dir := filepath.Dir(path); len(dir) > len(r.x.Data); dir = filepath.Dir(dir) {
			require.NoError(r.t, os.MkdirAll(dir, 0o777))
			require.NoError(r.t, os.Chmod(dir, 0o777))
		}
		require.NoError(r.t, os.WriteFile(path, data, 0o644))
		require.NoError(r.t, os.Chmod(path, 0o666)) // XRootD stores its checksum in an attribute
		all = append(all, inject.File{Path: rucio.Path(scope, name), Size: int64(len(data)),
			Sum: fmt.Sprintf("adler32:%08x", adler32.Checksum(data))})
	}
	return all
}

// left returns the number of files at a server.
func (r *rig) left(at *lab.System) (n int) {
	r.t.Helper()
	require.NoError(r.t, filepath.WalkDir(filepath.Join(at.Data, "store"), func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			n++
		}
		return nil // the reaper removes files meanwhile
	}))
	return n
}

func (r *rig) open() (inject.Remover, func()) {
	r.t.Helper()
	i, err := rucio.New(r.t.Context(), r.conf)
	require.NoError(r.t, err)
	end := sync.OnceFunc(func() { require.NoError(r.t, i.Close()) })
	r.t.Cleanup(end)
	return i.(inject.Remover), end
}

// Rucio and its daemons make 50 copies of 20 files, each file again when the reaper has removed its
// last copy; a file without source and one that is corrupt fail; copies are cancelled, and taken over
// after a kill; in the end nothing is left at either site.
func TestRucio(t *testing.T) {
	tier.Full(t, "Rucio")
	t.Parallel()
	r := startRig(t)
	i, end := r.open()
	require.NoError(t, i.Check(t.Context()))
	stop := r.daemons()
	files := r.files(0, 20)
	var all []int64
	begun := time.Now()
	for n := range int64(50) {
		f := files[int(n)%len(files)]
		require.NoError(t, i.Start(t.Context(), []inject.Copy{{ID: n + 1, Source: f, Dest: f.Path}}))
		all = append(all, n+1)
	}
	for len(all) > 0 { // copies are removed as they end, so that their files are copied again
		some := r.ended(5*time.Minute, all[:1]...)
		for id, got := range some {
			if got.State != inject.Done || got.Moved != files[0].Size && got.Moved != files[10].Size || !got.Verified {
				t.Errorf("copy %d: %+v", id, got)
			}
			require.NoError(t, i.Remove(t.Context(), []int64{id}))
			all = slices.DeleteFunc(all, func(n int64) bool { return n == id })
		}
	}
	t.Logf("50 copies after %s; %+v", time.Since(begun), i.Health())
	r.until(3*time.Minute, "the copies are removed", func() bool { return r.left(r.y) == 0 })

	stop() // the transfers below wait
	var copies []inject.Copy
	more := r.files(20, 20) // the reaper may have been killed before it forgot the files that it removed
	for n, f := range more {
		copies = append(copies, inject.Copy{ID: int64(101 + n), Source: f, Dest: f.Path})
	}
	require.NoError(t, i.Start(t.Context(), copies))
	r.until(3*time.Minute, "the rules exist", func() bool { r.mu.Lock(); defer r.mu.Unlock(); return len(r.news) == 70 })
	begun = time.Now()
	require.NoError(t, i.Cancel(t.Context(), []int64{101, 102, 103, 104, 105}))
	for id, got := range r.ended(time.Minute, 101, 102, 103, 104, 105) {
		if got.State != inject.Cancelled {
			t.Errorf("copy %d: %+v", id, got)
		}
	}
	t.Logf("5 copies cancelled after %s", time.Since(begun))
	end() // as after a kill
	r.daemons()
	again, _ := r.open()
	require.NoError(t, again.Resume(t.Context(), append(copies[5:], inject.Copy{ID: 999, Source: more[0]})))
	if got := r.ended(time.Minute, 999)[999]; got.State != inject.Failed {
		t.Errorf("%+v", got)
	}
	for id := range int64(15) {
		if got := r.ended(5*time.Minute, 106+id)[106+id]; got.State != inject.Done {
			t.Errorf("%+v", got)
		}
	}
	require.NoError(t, again.Remove(t.Context(), []int64{106}))
	require.NoError(t, again.Clean(t.Context()))
	r.until(3*time.Minute, "nothing is left", func() bool { return r.left(r.y) == 0 && r.left(r.x) == 0 })
	var ids []string
	for id, n := range r.news {
		final := 0
		for _, one := range n {
			if one.State.Ended() {
				final++
			}
		}
		if final != 1 {
			ids = append(ids, fmt.Sprint(id, n))
		}
	}
	if len(ids) > 0 {
		t.Errorf("%s", strings.Join(ids, "\n"))
	}
}
