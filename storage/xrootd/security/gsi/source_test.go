package gsi

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

	"weir/storage"
	"weir/storage/xrootd/security"
)

// What cannot work says so before the network is touched, and how to mend it.
func TestNoCredentials(t *testing.T) {
	ca := newCA(t, "Source")
	user := ca.user(t)
	proxy := user.proxy(t, time.Now().Add(time.Hour))
	stale := user.proxy(t, time.Now().Add(-time.Minute))
	early := user.proxy(t, time.Now().Add(3*time.Hour))
	ec := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	ecKey := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: must(x509.MarshalECPrivateKey(ec))})
	ecKey8 := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: must(x509.MarshalPKCS8PrivateKey(ec))})
	locked := pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte{1}})
	locked1 := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Headers: map[string]string{"Proc-Type": "4,ENCRYPTED", "DEK-Info": "x"}, Bytes: []byte{1}})
	one := func(parts ...[]byte) storage.Auth {
		return storage.Auth{ProxyFile: writeFile(t, 0o600, "x509up", parts...)}
	}
	two := func(mode os.FileMode, key []byte) storage.Auth {
		return storage.Auth{CertFile: writeFile(t, 0o644, "cert.pem", user.certPEM()), KeyFile: writeFile(t, mode, "key.pem", key)}
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
		{"expired", one(stale.certPEM(), stale.keyPEM(), user.certPEM()), "expired at " + stale.cert.NotAfter.UTC().Format(time.RFC3339)},
		{"too early", one(early.certPEM(), early.keyPEM(), user.certPEM()), "not valid before"},
		{"no key", one(proxy.certPEM(), user.certPEM()), "no private key"},
		{"another key", one(proxy.certPEM(), ca.keyPEM(), user.certPEM()), "does not belong"},
		{"only the proxy", one(proxy.certPEM(), proxy.keyPEM()), "CN=Ada Tester,O=people, which signed the proxy, is not there"},
		{"elliptic curve", one(proxy.certPEM(), ecKey, user.certPEM()), "RSA only"},
		{"elliptic curve in PKCS #8", one(proxy.certPEM(), ecKey8, user.certPEM()), "RSA only"},
		{"broken key", one(proxy.certPEM(), []byte("-----BEGIN RSA PRIVATE KEY-----\nMAAA\n-----END RSA PRIVATE KEY-----\n")), "private key"},
		{"encrypted key", two(0o600, locked), "encrypted: make a proxy"},
		{"encrypted key, old style", two(0o600, locked1), "encrypted: make a proxy"},
		{"key that others read", two(0o644, user.keyPEM()), "chmod 600"},
		{"key that others write", two(0o620, user.keyPEM()), "chmod 600"},
		{"key of another", two(0o600, ca.keyPEM()), "does not belong"},
		{"weak key", one(weakPair(t, ca)), "512 bits"},
	} {
		_, err := New(storage.Credentials{From: c.from})
		if !errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: got %v, want a refusal that says %q", c.name, err, c.reason)
		}
	}
}

// The certificates may stand in any order and with authorities among them.
func TestOrder(t *testing.T) {
	ca := newCA(t, "Order")
	user := ca.user(t)
	first := user.proxy(t, time.Now().Add(time.Hour))
	second := first.proxy(t, time.Now().Add(30*time.Minute))
	file := writeFile(t, 0o600, "x509up", ca.certPEM(), user.certPEM(), second.keyPEM(), first.certPEM(), second.certPEM())
	m := newMethod(t, storage.Credentials{From: storage.Auth{ProxyFile: file, CADir: caDir(t, ca)}})
	want := string(second.certPEM()) + string(first.certPEM()) + string(user.certPEM())
	if got := string(m.source.id.chain); got != want {
		t.Errorf("chain is\n%s\nwant\n%s", got, want)
	}
	if !m.source.id.until.Equal(second.cert.NotAfter) {
		t.Errorf("the proxy lasts until %v, want %v", m.source.id.until, second.cert.NotAfter)
	}
	hashes := must(nameHashes(ca.cert.RawSubject))
	if want := hashes[0] + ".0|" + hashes[1] + ".0"; m.source.id.issuer != want {
		t.Errorf("issuer %s, want %s", m.source.id.issuer, want)
	}
}

// Of a certificate and its key a proxy is made, and made anew before it ends.
func TestMadeProxy(t *testing.T) {
	ca := newCA(t, "Made")
	now := time.Now()
	user := ca.sign(t, &x509.Certificate{Subject: ca.cert.Subject, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(48 * time.Hour)})
	from := storage.Auth{CertFile: writeFile(t, 0o644, "cert.pem", user.certPEM()), KeyFile: writeFile(t, 0o600, "key.pem", user.keyPEM()), CADir: caDir(t, ca)}
	m := newMethod(t, storage.Credentials{From: from})
	m.clock = func() time.Time { return now }
	p := &peer{pair: ca.host(t, "localhost")}
	if err := p.login(m, "localhost"); err != nil {
		t.Fatal(err)
	}
	first := m.source.id
	chain := must(parseCertificates(first.chain))
	if len(chain) != 2 || !isProxy(chain[0]) || isProxy(chain[1]) || chain[0].CheckSignatureFrom(chain[1]) == nil {
		t.Errorf("a chain of %d certificates", len(chain)) // the last: a user is no authority for the library
	}
	if err := chain[1].CheckSignature(chain[0].SignatureAlgorithm, chain[0].RawTBSCertificate, chain[0].Signature); err != nil {
		t.Error(err)
	}
	if life := first.until.Sub(now); life < proxyLife-time.Minute || life > proxyLife+time.Minute {
		t.Errorf("the proxy lasts %v", life)
	}
	for _, step := range []struct {
		later time.Duration
		fresh bool
	}{{time.Minute, false}, {proxyLife - proxySpare - time.Minute, false}, {proxyLife - proxySpare + time.Minute, true}} {
		id, err := m.source.current(now.Add(step.later))
		if err != nil || (id != first) != step.fresh {
			t.Errorf("after %v: %v, new proxy: %v", step.later, err, id != first)
		}
	}
}

// A new file takes over; a broken one does not while the old proxy lasts.
func TestRenewal(t *testing.T) {
	ca := newCA(t, "Renewal")
	user := ca.user(t)
	now := time.Now()
	first, second := user.proxy(t, now.Add(30*time.Minute)), user.proxy(t, now.Add(50*time.Minute))
	file := proxyFile(t, first, user)
	m := newMethod(t, storage.Credentials{From: storage.Auth{ProxyFile: file, CADir: caDir(t, ca)}})
	lasts := func(later time.Duration) (time.Time, error) {
		id, err := m.source.current(now.Add(later))
		if err != nil {
			return time.Time{}, err
		}
		return id.until, nil
	}
	writeFile(t, 0o600, file, second.certPEM(), second.keyPEM(), user.certPEM())
	if err := os.Chtimes(file, now, now.Add(-time.Minute)); err != nil {
		t.Fatal(err)
	}
	m.source.looked = now
	if until, err := lasts(time.Second - 1); err != nil || !until.Equal(first.cert.NotAfter) {
		t.Errorf("another file, before the second is over: %v until %v", err, until)
	}
	if until, err := lasts(time.Second); err != nil || !until.Equal(second.cert.NotAfter) {
		t.Errorf("another file: %v until %v", err, until)
	}
	writeFile(t, 0o600, file, first.certPEM(), first.keyPEM(), user.certPEM())
	if until, err := lasts(2 * time.Second); err != nil || !until.Equal(first.cert.NotAfter) {
		t.Errorf("the first file again: %v until %v", err, until)
	}
	writeFile(t, 0o600, file, first.certPEM()[:100])
	if until, err := lasts(time.Minute); err != nil || !until.Equal(first.cert.NotAfter) {
		t.Errorf("a file cut off: %v until %v", err, until)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if until, err := lasts(2 * time.Minute); err != nil || !until.Equal(first.cert.NotAfter) {
		t.Errorf("no file: %v until %v", err, until)
	}
	if _, err := lasts(31 * time.Minute); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "expired at") || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("no file, and the old one expired: %v", err)
	}
	if _, err := m.Begin(t.Context(), security.Server{Host: "localhost"}); err != nil {
		t.Errorf("by the clock of today: %v", err)
	}
	writeFile(t, 0o600, file, second.certPEM(), second.keyPEM(), user.certPEM())
	if until, err := lasts(32 * time.Minute); err != nil || !until.Equal(second.cert.NotAfter) {
		t.Errorf("a new file: %v until %v", err, until)
	}
	if entries, err := os.ReadDir(filepath.Dir(file)); err != nil || len(entries) != 1 {
		t.Errorf("%d files, %v", len(entries), err)
	}
}

// weakPair is a certificate with a key of 512 bits, as older tools made them.
func weakPair(t *testing.T, ca pair) []byte {
	t.Helper()
	t.Setenv("GODEBUG", "rsa1024min=0")
	key := must(rsa.GenerateKey(rand.Reader, 512))
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: ca.cert.Subject, NotAfter: time.Now().Add(time.Hour)}
	cert := must(x509.ParseCertificate(must(x509.CreateCertificate(rand.Reader, template, ca.cert, &key.PublicKey, ca.key))))
	t.Setenv("GODEBUG", "")
	return append(pair{cert: cert}.certPEM(), pair{key: key}.keyPEM()...)
}
