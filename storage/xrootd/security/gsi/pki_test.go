package gsi

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"weir/storage"
)

// A pair is a certificate with its key.
type pair struct {
	cert *x509.Certificate
	key  *rsa.PrivateKey
}

// sign makes a pair signed by p, or by itself if p is zero.
func (p pair) sign(t testing.TB, template *x509.Certificate) pair {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 1024) // short, for speed alone
	if err != nil {
		t.Fatal(err)
	}
	if template.SerialNumber == nil {
		template.SerialNumber = big.NewInt(time.Now().UnixNano())
	}
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	parent, signer := p.cert, p.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return pair{cert, key}
}

func (p pair) certPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.cert.Raw})
}

func (p pair) keyPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(p.key)})
}

// newCA makes an authority.
func newCA(t testing.TB, name string) pair {
	t.Helper()
	return pair{}.sign(t, &x509.Certificate{
		Subject: pkix.Name{Organization: []string{"Weir  Test"}, CommonName: name},
		IsCA:    true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	})
}

// host makes a server's certificate.
func (p pair) host(t testing.TB, name string, alternatives ...string) pair {
	t.Helper()
	return p.sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: name}, DNSNames: alternatives})
}

// user makes a user's certificate.
func (p pair) user(t testing.TB) pair {
	t.Helper()
	return p.sign(t, &x509.Certificate{Subject: pkix.Name{Organization: []string{"people"}, CommonName: "Ada Tester"}, KeyUsage: x509.KeyUsageDigitalSignature})
}

// proxy makes a proxy of a user that expires at a time.
func (p pair) proxy(t testing.TB, expires time.Time) pair {
	t.Helper()
	subject, err := subjectOfProxy(p.cert.RawSubject, "123")
	if err != nil {
		t.Fatal(err)
	}
	info, err := proxyInfo()
	if err != nil {
		t.Fatal(err)
	}
	return p.sign(t, &x509.Certificate{
		RawSubject: subject, SerialNumber: big.NewInt(123), NotBefore: expires.Add(-time.Hour), NotAfter: expires,
		ExtraExtensions: []pkix.Extension{{Id: oidProxyInfo(), Critical: true, Value: info}},
	})
}

func writeFile(t testing.TB, mode os.FileMode, name string, parts ...[]byte) string {
	t.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join(t.TempDir(), name)
	}
	if err := os.WriteFile(name, slices.Concat(parts...), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil {
		t.Fatal(err)
	}
	return name
}

// proxyFile writes a proxy as tools do: certificate, key, user's certificate.
func proxyFile(t testing.TB, proxy, user pair) string {
	t.Helper()
	return writeFile(t, 0o600, "x509up", proxy.certPEM(), proxy.keyPEM(), user.certPEM())
}

// caDir writes an authority by the hash of its name.
func caDir(t testing.TB, ca pair) string {
	t.Helper()
	hashes, err := nameHashes(ca.cert.RawSubject)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(writeFile(t, 0o644, hashes[0]+".0", ca.certPEM()))
}

// member makes the credentials of a user of an authority.
func member(t testing.TB, ca pair) storage.Credentials {
	t.Helper()
	user := ca.user(t)
	proxy := user.proxy(t, time.Now().Add(time.Hour))
	return storage.Credentials{From: storage.Auth{ProxyFile: proxyFile(t, proxy, user), CADir: caDir(t, ca)}}
}

func newMethod(t testing.TB, cred storage.Credentials) *Method {
	t.Helper()
	m, err := New(cred)
	if err != nil {
		t.Fatal(err)
	}
	m.names.resolve = nil // a test that asks the DNS is wrong
	return m
}
