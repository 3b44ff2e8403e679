package gridcert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/dn"
	"weir/internal/require"
	"weir/storage"
	"weir/storage/gridcert/gridcerttest"
)

// TestNoCredentials checks that unusable settings return an error before the network is used, with
// a remedy.
func TestNoCredentials(t *testing.T) {
	ca := gridcerttest.NewCA(t, "Source")
	user := ca.User(t)
	proxy := user.Proxy(t, time.Now().Add(time.Hour))
	stale := user.Proxy(t, time.Now().Add(-time.Minute))
	early := user.Proxy(t, time.Now().Add(3*time.Hour))
	ec := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	ecKey := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: must(x509.MarshalECPrivateKey(ec))})
	ecKey8 := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: must(x509.MarshalPKCS8PrivateKey(ec))})
	locked := pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte{1}})
	locked1 := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Headers: map[string]string{"Proc-Type": "4,ENCRYPTED", "DEK-Info": "x"},
		Bytes: []byte{1}})
	one := func(parts ...[]byte) storage.Auth {
		return storage.Auth{ProxyFile: gridcerttest.WriteFile(t, 0o600, "x509up", parts...)}
	}
	two := func(mode os.FileMode, key []byte) storage.Auth {
		return storage.Auth{CertFile: gridcerttest.WriteFile(t, 0o644, "cert.pem", user.CertPEM()),
			KeyFile: gridcerttest.WriteFile(t, mode, "key.pem", key)}
	}
	for _, c := range []struct {
		name   string
		from   storage.Auth
		reason string
	}{
		{"no proxy", storage.Auth{ProxyFile: "/nowhere/x509up"}, "no proxy: /nowhere/x509up does not exist"},
		{"no certificate", storage.Auth{CertFile: "/nowhere/c", KeyFile: "/nowhere/k"}, "no certificate: /nowhere/c"},
		{"a folder", storage.Auth{ProxyFile: t.TempDir()}, "is a directory"},
		{"empty", one(), "no certificate in it"},
		{"garbage", one([]byte("-----BEGIN CERTIFICATE-----\nMAAA\n-----END CERTIFICATE-----\n")), "x509"},
		{"huge", one(make([]byte, 1<<20+1)), "more than"},
		{"expired", one(stale.CertPEM(), stale.KeyPEM(), user.CertPEM()), "expired at " + stale.Cert.NotAfter.UTC().Format(time.RFC3339)},
		{"too early", one(early.CertPEM(), early.KeyPEM(), user.CertPEM()), "not valid before"},
		{"no key", one(proxy.CertPEM(), user.CertPEM()), "no private key"},
		{"another key", one(proxy.CertPEM(), ca.KeyPEM(), user.CertPEM()), "does not belong"},
		{"only the proxy", one(proxy.CertPEM(), proxy.KeyPEM()), "CN=Ada Tester,O=people, which signed the proxy, is not there"},
		{"elliptic curve", one(proxy.CertPEM(), ecKey, user.CertPEM()), "RSA only"},
		{"elliptic curve in PKCS #8", one(proxy.CertPEM(), ecKey8, user.CertPEM()), "RSA only"},
		{"broken key", one(proxy.CertPEM(), []byte("-----BEGIN RSA PRIVATE KEY-----\nMAAA\n-----END RSA PRIVATE KEY-----\n")), "private key"},
		{"encrypted key", two(0o600, locked), "encrypted: make a proxy"},
		{"encrypted key, old style", two(0o600, locked1), "encrypted: make a proxy"},
		{"key that others read", two(0o644, user.KeyPEM()), "chmod 600"},
		{"key that others write", two(0o620, user.KeyPEM()), "chmod 600"},
		{"key of another", two(0o600, ca.KeyPEM()), "does not belong"},
		{"weak key", one(weakPair(t, ca)), "512 bits"},
	} {
		_, err := NewSource(c.from).Current(time.Now())
		if !errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: got %v, want a refusal that says %q", c.name, err, c.reason)
		}
	}
}

// TestOrder checks that the certificates may be in any order and with authorities among them.
func TestOrder(t *testing.T) {
	ca := gridcerttest.NewCA(t, "Order")
	user := ca.User(t)
	first := user.Proxy(t, time.Now().Add(time.Hour))
	second := first.Proxy(t, time.Now().Add(30*time.Minute))
	file := gridcerttest.WriteFile(t, 0o600, "x509up", ca.CertPEM(), user.CertPEM(), second.KeyPEM(), first.CertPEM(), second.CertPEM())
	s := NewSource(storage.Auth{ProxyFile: file, CADir: gridcerttest.CADir(t, ca)})
	id := must(s.Current(time.Now()))
	want := string(second.CertPEM()) + string(first.CertPEM()) + string(user.CertPEM())
	if got := string(id.ChainPEM); got != want {
		t.Errorf("chain is\n%s\nwant\n%s", got, want)
	}
	if !id.Until.Equal(second.Cert.NotAfter) {
		t.Errorf("the proxy lasts until %v, want %v", id.Until, second.Cert.NotAfter)
	}
	hashes := must(dn.Hashes(ca.Cert.RawSubject))
	if want := hashes[0] + ".0|" + hashes[1] + ".0"; id.Issuer != want {
		t.Errorf("issuer %s, want %s", id.Issuer, want)
	}
}

// TestMadeProxy checks that a proxy is made from a certificate and its key, and renewed before it
// expires.
func TestMadeProxy(t *testing.T) {
	ca := gridcerttest.NewCA(t, "Made")
	now := time.Now()
	user := ca.Sign(t, &x509.Certificate{Subject: ca.Cert.Subject, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(48 * time.Hour)})
	from := storage.Auth{CertFile: gridcerttest.WriteFile(t, 0o644, "cert.pem", user.CertPEM()),
		KeyFile: gridcerttest.WriteFile(t, 0o600, "key.pem", user.KeyPEM()), CADir: gridcerttest.CADir(t, ca)}
	s := NewSource(from)
	first := must(s.Current(now))
	chain := first.Chain
	if len(chain) != 2 || !IsProxy(chain[0]) || IsProxy(chain[1]) || chain[0].CheckSignatureFrom(chain[1]) == nil {
		t.Errorf("a chain of %d certificates", len(chain)) // the last: a user is no authority for the library
	}
	if err := chain[1].CheckSignature(chain[0].SignatureAlgorithm, chain[0].RawTBSCertificate, chain[0].Signature); err != nil {
		t.Error(err)
	}
	if life := first.Until.Sub(now); life < proxyLife-time.Minute || life > proxyLife+time.Minute {
		t.Errorf("the proxy lasts %v", life)
	}
	for _, step := range []struct {
		later time.Duration
		fresh bool
	}{{time.Minute, false}, {proxyLife - proxySpare - time.Minute, false}, {proxyLife - proxySpare + time.Minute, true}} {
		id, err := s.Current(now.Add(step.later))
		if err != nil || (id != first) != step.fresh {
			t.Errorf("after %v: %v, new proxy: %v", step.later, err, id != first)
		}
	}
}

// TestRenewal checks that a new file replaces the old proxy, and that an invalid file does not
// while the old proxy is valid.
func TestRenewal(t *testing.T) {
	ca := gridcerttest.NewCA(t, "Renewal")
	user := ca.User(t)
	now := time.Now()
	first, second := user.Proxy(t, now.Add(30*time.Minute)), user.Proxy(t, now.Add(50*time.Minute))
	file := gridcerttest.ProxyFile(t, first, user)
	s := NewSource(storage.Auth{ProxyFile: file, CADir: gridcerttest.CADir(t, ca)})
	must(s.Current(now))
	lasts := func(later time.Duration) (time.Time, error) {
		id, err := s.Current(now.Add(later))
		if err != nil {
			return time.Time{}, err
		}
		return id.Until, nil
	}
	gridcerttest.WriteFile(t, 0o600, file, second.CertPEM(), second.KeyPEM(), user.CertPEM())
	require.NoError(t, os.Chtimes(file, now, now.Add(-time.Minute)))
	s.looked = now
	if until, err := lasts(time.Second - 1); err != nil || !until.Equal(first.Cert.NotAfter) {
		t.Errorf("another file, before the second is over: %v until %v", err, until)
	}
	if until, err := lasts(time.Second); err != nil || !until.Equal(second.Cert.NotAfter) {
		t.Errorf("another file: %v until %v", err, until)
	}
	gridcerttest.WriteFile(t, 0o600, file, first.CertPEM(), first.KeyPEM(), user.CertPEM())
	if until, err := lasts(2 * time.Second); err != nil || !until.Equal(first.Cert.NotAfter) {
		t.Errorf("the first file again: %v until %v", err, until)
	}
	gridcerttest.WriteFile(t, 0o600, file, first.CertPEM()[:100])
	if until, err := lasts(time.Minute); err != nil || !until.Equal(first.Cert.NotAfter) {
		t.Errorf("a file cut off: %v until %v", err, until)
	}
	require.NoError(t, os.Remove(file))
	if until, err := lasts(2 * time.Minute); err != nil || !until.Equal(first.Cert.NotAfter) {
		t.Errorf("no file: %v until %v", err, until)
	}
	if _, err := lasts(31 * time.Minute); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "expired at") ||
		!strings.Contains(err.Error(), "does not exist") {
		t.Errorf("no file, and the old one expired: %v", err)
	}
	gridcerttest.WriteFile(t, 0o600, file, second.CertPEM(), second.KeyPEM(), user.CertPEM())
	if until, err := lasts(32 * time.Minute); err != nil || !until.Equal(second.Cert.NotAfter) {
		t.Errorf("a new file: %v until %v", err, until)
	}
	if entries, err := os.ReadDir(filepath.Dir(file)); err != nil || len(entries) != 1 {
		t.Errorf("%d files, %v", len(entries), err)
	}
}

// weakPair returns a certificate with a key of 512 bits, as made by older tools.
func weakPair(t *testing.T, ca gridcerttest.Pair) []byte {
	t.Helper()
	t.Setenv("GODEBUG", "rsa1024min=0")
	key := must(rsa.GenerateKey(rand.Reader, 512))
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: ca.Cert.Subject, NotAfter: time.Now().Add(time.Hour)}
	cert := must(x509.ParseCertificate(must(x509.CreateCertificate(rand.Reader, template, ca.Cert, &key.PublicKey, ca.Key))))
	t.Setenv("GODEBUG", "")
	return append(gridcerttest.Pair{Cert: cert}.CertPEM(), gridcerttest.Pair{Key: key}.KeyPEM()...)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
