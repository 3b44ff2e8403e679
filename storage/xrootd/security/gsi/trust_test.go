package gsi

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/lab"
	"weir/storage"
)

func refusedFor(t *testing.T, what string, err error, reason string) {
	t.Helper()
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), reason) {
		t.Errorf("%s: got %v, want a refusal that says %q", what, err, reason)
	}
}

// A certificate is believed as long as it and the files of its authority are.
func TestTrustDates(t *testing.T) {
	ca := newCA(t, "Dates")
	now := time.Now()
	host := ca.sign(t, &x509.Certificate{NotBefore: now.Add(-time.Minute), NotAfter: now.Add(5 * time.Minute)})
	tr := newTrust(storage.Auth{CADir: caDir(t, ca)})
	verify := func(p pair, at time.Duration) error {
		_, _, err := tr.verify(p.certPEM(), now.Add(at))
		return err
	}
	refusedFor(t, "too early", verify(host, -2*time.Minute), "not yet valid")
	if err := verify(host, 0); err != nil {
		t.Fatal(err)
	}
	if err := verify(host, 5*time.Minute-2*time.Second); err != nil {
		t.Error(err)
	}
	refusedFor(t, "expired", verify(host, 5*time.Minute+time.Second), "expired at "+host.cert.NotAfter.UTC().Format(time.RFC3339))
	long := ca.sign(t, &x509.Certificate{NotBefore: now, NotAfter: now.Add(48 * time.Hour)})
	if err := verify(long, time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(tr.dirs[0]); err != nil {
		t.Fatal(err)
	}
	if err := verify(long, 9*time.Minute); err != nil {
		t.Errorf("within ten minutes: %v", err)
	}
	refusedFor(t, "authority gone", verify(long, 12*time.Minute), "unknown certificate authority")
	refusedFor(t, "authority expired", func() error {
		tr := newTrust(storage.Auth{CADir: caDir(t, ca)})
		_, _, err := tr.verify(long.certPEM(), now.Add(2*time.Hour))
		return err
	}(), "expired")
}

// Authorities may be in one file, in several folders, or signed by others.
func TestTrustPlaces(t *testing.T) {
	root, other := newCA(t, "Root"), newCA(t, "Other")
	middle := root.sign(t, &x509.Certificate{Subject: other.cert.Subject, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	host := middle.host(t, "localhost")
	for name, from := range map[string]storage.Auth{
		"signed by another, alone":            {CADir: caDir(t, middle)},
		"in the second folder":                {CADir: t.TempDir() + "," + caDir(t, middle)},
		"in one file":                         {CAFile: writeFile(t, 0o644, "ca.pem", root.certPEM(), middle.certPEM())},
		"in a folder beside a file of others": {CAFile: writeFile(t, 0o644, "ca.pem", root.certPEM()), CADir: caDir(t, middle)},
	} {
		if _, _, err := newTrust(from).verify(host.certPEM(), time.Now()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	two := caDir(t, other) // another of the same name comes first
	entries := must(os.ReadDir(two))
	writeFile(t, 0o644, filepath.Join(two, strings.TrimSuffix(entries[0].Name(), "0")+"1"), middle.certPEM())
	if _, _, err := newTrust(storage.Auth{CADir: two}).verify(host.certPEM(), time.Now()); err != nil {
		t.Errorf("second of a name: %v", err)
	}
	for what, c := range map[string]struct {
		from   storage.Auth
		reason string
	}{
		"no such file":      {storage.Auth{CAFile: "/nowhere/ca.pem"}, "/nowhere/ca.pem"},
		"file of another":   {storage.Auth{CAFile: writeFile(t, 0o644, "ca.pem", other.certPEM())}, "unknown authority"},
		"file is empty":     {storage.Auth{CAFile: writeFile(t, 0o644, "ca.pem")}, "unknown certificate authority"},
		"folder of another": {storage.Auth{CADir: caDir(t, root)}, "neither"},
	} {
		_, _, err := newTrust(c.from).verify(host.certPEM(), time.Now())
		refusedFor(t, what, err, c.reason)
	}
}

// A revoked certificate is refused, whatever the version of the list, unless
// somebody else signed the list.
func TestRevoked(t *testing.T) {
	ca, other := newCA(t, "Revoked"), newCA(t, "Revoked")
	host, fine := ca.host(t, "a"), ca.host(t, "b")
	list := func(signer pair) []byte {
		der := must(x509.CreateRevocationList(rand.Reader, &x509.RevocationList{
			Number: big.NewInt(1), ThisUpdate: time.Now().Add(-2 * time.Hour), NextUpdate: time.Now().Add(-time.Hour),
			RevokedCertificateEntries: []x509.RevocationListEntry{{SerialNumber: host.cert.SerialNumber, RevocationTime: time.Now()}},
		}, signer.cert, signer.key))
		return pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der})
	}
	with := func(text []byte) *trust {
		dir := caDir(t, ca)
		hash, _, _ := strings.Cut(must(os.ReadDir(dir))[0].Name(), ".")
		writeFile(t, 0o644, filepath.Join(dir, hash+".r0"), text)
		return newTrust(storage.Auth{CADir: dir})
	}
	verify := func(tr *trust, p pair) error {
		_, _, err := tr.verify(p.certPEM(), time.Now())
		return err
	}
	for name, text := range map[string][]byte{"version 2": list(ca), "version 1": oldList(t, ca, host)} {
		tr := with(text)
		refusedFor(t, name, verify(tr, host), "was revoked at")
		if err := verify(tr, fine); err != nil {
			t.Errorf("%s, another certificate: %v", name, err)
		}
	}
	if err := verify(with(list(other)), host); err != nil {
		t.Errorf("a list by somebody else: %v", err)
	}
	refusedFor(t, "garbage", verify(with([]byte("x")), host), ".r0")
}

// oldList has OpenSSL make a list as it does by default.
func oldList(t *testing.T, ca, revoked pair) []byte {
	t.Helper()
	lab.Need(t, "openssl")
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	writeFile(t, 0o600, at("key"), ca.keyPEM())
	writeFile(t, 0o600, at("ca"), ca.certPEM())
	writeFile(t, 0o600, at("cert"), revoked.certPEM())
	writeFile(t, 0o600, at("index"))
	writeFile(t, 0o600, at("conf"), []byte("[ca]\ndefault_ca=d\n[d]\ndatabase="+at("index")+"\ndefault_md=sha256\ndefault_crl_days=1\n"))
	for _, args := range [][]string{{"-revoke", at("cert")}, {"-gencrl", "-out", at("list")}} {
		args = append([]string{"ca", "-config", at("conf"), "-keyfile", at("key"), "-cert", at("ca")}, args...)
		if out, err := exec.CommandContext(t.Context(), "openssl", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return must(os.ReadFile(at("list")))
}
