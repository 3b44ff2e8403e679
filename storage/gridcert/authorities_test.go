package gridcert

import (
	"bytes"
	"crypto/x509"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/storage/gridcert/gridcerttest"
)

// TestAuthorities checks that a folder of authorities and its revocation lists are read again every
// ten minutes, and that unreadable files then change nothing.
func TestAuthorities(t *testing.T) {
	r := newChainRig(t)
	now := time.Now()
	dir := gridcerttest.CADir(t, r.ca)
	gridcerttest.WriteFile(t, 0o644, filepath.Join(dir, "README.0"), []byte("no certificate"))
	chain := r.proxies(usual, usual)
	var log bytes.Buffer
	a, err := NewAuthorities(dir, now, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, err)
	verify := func(after time.Duration) error {
		_, err := a.Verify(chain, now.Add(after))
		return err
	}
	require.NoError(t, verify(0))
	other := gridcerttest.NewCA(t, "Chains")
	gridcerttest.WriteList(t, dir, other.Revoke(t, r.user))
	if err := verify(11 * time.Minute); err != nil {
		t.Errorf("a list of another authority of this name: %v", err)
	}
	gridcerttest.WriteList(t, dir, r.ca.Revoke(t, gridcerttest.Pair{Cert: other.Cert}, r.user))
	if err := verify(12 * time.Minute); err != nil {
		t.Errorf("within ten minutes: %v", err)
	}
	if err := verify(22 * time.Minute); err == nil || !strings.Contains(err.Error(), "/CN=Ada Tester was revoked at ") {
		t.Errorf("revoked: %v", err)
	}
	gridcerttest.WriteList(t, dir, []byte("x"))
	if err := verify(33 * time.Minute); err == nil || !strings.Contains(err.Error(), "revoked") || !strings.Contains(log.String(), ".r0") {
		t.Errorf("with a list that cannot be read: %v; log: %s", err, log.String())
	}
	gridcerttest.WriteList(t, dir, r.ca.Revoke(t))
	if err := verify(35 * time.Minute); err != nil {
		t.Errorf("no longer revoked: %v", err)
	}
	require.NoError(t, os.RemoveAll(dir))
	if err := verify(46 * time.Minute); err != nil {
		t.Errorf("without the folder: %v", err)
	}
}

func TestAuthoritiesOfFile(t *testing.T) {
	r := newChainRig(t)
	a, err := NewAuthorities(gridcerttest.WriteFile(t, 0o644, "ca.pem", r.ca.CertPEM()), time.Now(), nil)
	require.NoError(t, err)
	if _, err := a.Verify(r.proxies(usual), time.Now().Add(20*time.Minute)); err != nil {
		t.Error(err)
	}
	stranger := gridcerttest.NewCA(t, "Stranger").User(t)
	if _, err := a.Verify([]*x509.Certificate{stranger.Cert}, time.Now()); err == nil {
		t.Error("a user of another authority is accepted")
	}
	for path, says := range map[string]string{t.TempDir(): "0123abcd.0", "/nowhere": "no such file",
		gridcerttest.WriteFile(t, 0o644, "x"): "no certificate"} {
		if _, err := NewAuthorities(path, time.Now(), nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
