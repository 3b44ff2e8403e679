package gridcert

import (
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/lab/labtest"
	"weir/storage"
	"weir/storage/gridcert/gridcerttest"
)

func refusedFor(t *testing.T, what string, err error, reason string) {
	t.Helper()
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), reason) {
		t.Errorf("%s: got %v, want a refusal that says %q", what, err, reason)
	}
}

// TestTrustDates checks that a certificate is trusted as long as it and the files of its authority
// are valid.
func TestTrustDates(t *testing.T) {
	ca := gridcerttest.NewCA(t, "Dates")
	now := time.Now()
	host := ca.Sign(t, &x509.Certificate{NotBefore: now.Add(-time.Minute), NotAfter: now.Add(5 * time.Minute)})
	tr := NewTrust(storage.Auth{CADir: gridcerttest.CADir(t, ca)})
	verify := func(p gridcerttest.Pair, at time.Duration) error {
		return tr.Verify(p.Cert, now.Add(at))
	}
	refusedFor(t, "too early", verify(host, -2*time.Minute), "not yet valid")
	require.NoError(t, verify(host, 0))
	if err := verify(host, 5*time.Minute-2*time.Second); err != nil {
		t.Error(err)
	}
	refusedFor(t, "expired", verify(host, 5*time.Minute+time.Second), "expired at "+host.Cert.NotAfter.UTC().Format(time.RFC3339))
	long := ca.Sign(t, &x509.Certificate{NotBefore: now, NotAfter: now.Add(48 * time.Hour)})
	require.NoError(t, verify(long, time.Minute))
	require.NoError(t, os.RemoveAll(tr.dirs[0]))
	if err := verify(long, 9*time.Minute); err != nil {
		t.Errorf("within ten minutes: %v", err)
	}
	refusedFor(t, "authority gone", verify(long, 12*time.Minute), "unknown certificate authority")
	refusedFor(t, "authority expired", func() error {
		tr := NewTrust(storage.Auth{CADir: gridcerttest.CADir(t, ca)})
		return tr.Verify(long.Cert, now.Add(2*time.Hour))
	}(), "expired")
}

// TestTrustPlaces checks authorities in one file, in several folders, or signed by others.
func TestTrustPlaces(t *testing.T) {
	root, other := gridcerttest.NewCA(t, "Root"), gridcerttest.NewCA(t, "Other")
	middle := root.Sign(t, &x509.Certificate{Subject: other.Cert.Subject, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign})
	host := middle.Host(t, "localhost")
	for name, from := range map[string]storage.Auth{
		"signed by another, alone": {CADir: gridcerttest.CADir(t, middle)},
		"in the second folder":     {CADir: t.TempDir() + "," + gridcerttest.CADir(t, middle)},
		"in one file":              {CAFile: gridcerttest.WriteFile(t, 0o644, "ca.pem", root.CertPEM(), middle.CertPEM())},
		"in a folder beside a file of others": {CAFile: gridcerttest.WriteFile(t, 0o644, "ca.pem", root.CertPEM()),
			CADir: gridcerttest.CADir(t, middle)},
	} {
		if err := NewTrust(from).Verify(host.Cert, time.Now()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	two := gridcerttest.CADir(t, other) // another authority of the same name comes first
	entries := must(os.ReadDir(two))
	gridcerttest.WriteFile(t, 0o644, filepath.Join(two, strings.TrimSuffix(entries[0].Name(), "0")+"1"), middle.CertPEM())
	if err := NewTrust(storage.Auth{CADir: two}).Verify(host.Cert, time.Now()); err != nil {
		t.Errorf("second of a name: %v", err)
	}
	for what, c := range map[string]struct {
		from   storage.Auth
		reason string
	}{
		"no such file":      {storage.Auth{CAFile: "/nowhere/ca.pem"}, "/nowhere/ca.pem"},
		"file of another":   {storage.Auth{CAFile: gridcerttest.WriteFile(t, 0o644, "ca.pem", other.CertPEM())}, "unknown authority"},
		"file is empty":     {storage.Auth{CAFile: gridcerttest.WriteFile(t, 0o644, "ca.pem")}, "unknown certificate authority"},
		"folder of another": {storage.Auth{CADir: gridcerttest.CADir(t, root)}, "neither"},
	} {
		err := NewTrust(c.from).Verify(host.Cert, time.Now())
		refusedFor(t, what, err, c.reason)
	}
}

// TestRevoked checks that a revoked certificate is refused, with any version of the list, unless
// another authority signed the list.
func TestRevoked(t *testing.T) {
	ca, other := gridcerttest.NewCA(t, "Revoked"), gridcerttest.NewCA(t, "Revoked")
	host, fine := ca.Host(t, "a"), ca.Host(t, "b")
	with := func(text []byte) *Trust {
		dir := gridcerttest.CADir(t, ca)
		gridcerttest.WriteList(t, dir, text)
		return NewTrust(storage.Auth{CADir: dir})
	}
	verify := func(tr *Trust, p gridcerttest.Pair) error {
		return tr.Verify(p.Cert, time.Now())
	}
	for name, text := range map[string][]byte{"version 2": ca.Revoke(t, host), "version 1": oldList(t, ca, host)} {
		tr := with(text)
		refusedFor(t, name, verify(tr, host), "was revoked at")
		if err := verify(tr, fine); err != nil {
			t.Errorf("%s, another certificate: %v", name, err)
		}
	}
	if err := verify(with(other.Revoke(t, host)), host); err != nil {
		t.Errorf("a list by somebody else: %v", err)
	}
	refusedFor(t, "garbage", verify(with([]byte("x")), host), ".r0")
}

// oldList makes a list with OpenSSL's defaults.
func oldList(t *testing.T, ca, revoked gridcerttest.Pair) []byte {
	t.Helper()
	labtest.Need(t, "openssl")
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	gridcerttest.WriteFile(t, 0o600, at("key"), ca.KeyPEM())
	gridcerttest.WriteFile(t, 0o600, at("ca"), ca.CertPEM())
	gridcerttest.WriteFile(t, 0o600, at("cert"), revoked.CertPEM())
	gridcerttest.WriteFile(t, 0o600, at("index"))
	gridcerttest.WriteFile(t, 0o600, at("conf"), []byte("[ca]\ndefault_ca=d\n[d]\ndatabase="+at("index")+
		"\ndefault_md=sha256\ndefault_crl_days=1\n"))
	for _, args := range [][]string{{"-revoke", at("cert")}, {"-gencrl", "-out", at("list")}} {
		args = append([]string{"ca", "-config", at("conf"), "-keyfile", at("key"), "-cert", at("ca")}, args...)
		if out, err := exec.CommandContext(t.Context(), "openssl", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return must(os.ReadFile(at("list")))
}
