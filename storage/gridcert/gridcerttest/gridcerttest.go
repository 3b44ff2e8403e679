// Package gridcerttest makes authorities, users, proxies and servers for tests of code that uses
// certificates.
package gridcerttest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/dn"
	"weir/internal/require"
	"weir/storage"
)

// A Pair is a certificate with its key.
type Pair struct {
	Cert *x509.Certificate
	Key  *rsa.PrivateKey
}

// Sign makes a Pair signed by p, or by itself if p is zero.
func (p Pair) Sign(t testing.TB, template *x509.Certificate) Pair {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 1024) // short, for speed alone
	require.NoError(t, err)
	if template.SerialNumber == nil {
		template.SerialNumber = big.NewInt(time.Now().UnixNano())
	}
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	parent, signer := p.Cert, p.Key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return Pair{cert, key}
}

// CertPEM returns the certificate in PEM.
func (p Pair) CertPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Cert.Raw})
}

// KeyPEM returns the key in PEM.
func (p Pair) KeyPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(p.Key)})
}

// NewCA makes an authority.
func NewCA(t testing.TB, name string) Pair {
	t.Helper()
	return Pair{}.Sign(t, &x509.Certificate{
		Subject: pkix.Name{Organization: []string{"Weir  Test"}, CommonName: name},
		IsCA:    true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	})
}

// Host makes a server's certificate.
func (p Pair) Host(t testing.TB, name string, alternatives ...string) Pair {
	t.Helper()
	return p.Sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: name}, DNSNames: alternatives})
}

// User makes a user's certificate.
func (p Pair) User(t testing.TB) Pair {
	t.Helper()
	return p.Sign(t, &x509.Certificate{Subject: pkix.Name{Organization: []string{"people"}, CommonName: "Ada Tester"},
		KeyUsage: x509.KeyUsageDigitalSignature})
}

// Proxy makes a proxy of a user that expires at a time.
func (p Pair) Proxy(t testing.TB, expires time.Time) Pair {
	t.Helper()
	subject, err := dn.WithCommonName(p.Cert.RawSubject, "123")
	require.NoError(t, err)
	type policy struct{ Language asn1.ObjectIdentifier }
	info, err := asn1.Marshal(struct{ Policy policy }{policy{asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 21, 1}}})
	require.NoError(t, err)
	return p.Sign(t, &x509.Certificate{
		RawSubject: subject, SerialNumber: big.NewInt(123), NotBefore: expires.Add(-time.Hour), NotAfter: expires,
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 14}, Critical: true, Value: info}},
	})
}

// SignProxy signs a proxy of a certificate for a key, with all rights of its user and for an hour, unless change makes it another.
func SignProxy(t testing.TB, by *x509.Certificate, signer crypto.Signer, key crypto.PublicKey,
	change func(*x509.Certificate)) *x509.Certificate {
	t.Helper()
	subject, err := dn.WithCommonName(by.RawSubject, "4711")
	require.NoError(t, err)
	template := &x509.Certificate{
		RawSubject: subject, SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-time.Minute),
		NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtraExtensions: []pkix.Extension{ProxyInfo(t, -1, asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 21, 1})},
	}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by, key, signer)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return cert
}

// ProxyInfo returns the extension of proxies with a policy, which allows the given number of
// proxies below it; -1: any number.
func ProxyInfo(t testing.TB, pathLength int, policy asn1.ObjectIdentifier) pkix.Extension {
	t.Helper()
	type language struct{ Language asn1.ObjectIdentifier }
	info, err := asn1.Marshal(struct {
		PathLength int `asn1:"optional,default:-1"`
		Policy     language
	}{pathLength, language{policy}})
	require.NoError(t, err)
	return pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 14}, Critical: true, Value: info}
}

// WriteFile writes a file with a mode, in a folder of the test unless the name is absolute, and returns its path.
func WriteFile(t testing.TB, mode os.FileMode, name string, parts ...[]byte) string {
	t.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join(t.TempDir(), name)
	}
	require.NoError(t, os.WriteFile(name, slices.Concat(parts...), mode))
	require.NoError(t, os.Chmod(name, mode))
	return name
}

// ProxyFile writes a proxy as tools do: certificate, key, user's certificate.
func ProxyFile(t testing.TB, proxy, user Pair) string {
	t.Helper()
	return WriteFile(t, 0o600, "x509up", proxy.CertPEM(), proxy.KeyPEM(), user.CertPEM())
}

// CADir writes an authority by the hash of its name.
func CADir(t testing.TB, ca Pair) string {
	t.Helper()
	hashes, err := dn.Hashes(ca.Cert.RawSubject)
	require.NoError(t, err)
	return filepath.Dir(WriteFile(t, 0o644, hashes[0]+".0", ca.CertPEM()))
}

// Revoke makes a list of revoked certificates, in PEM, which has expired. Its file is CADir's with r0 instead of 0.
func (p Pair) Revoke(t testing.TB, revoked ...Pair) []byte {
	t.Helper()
	list := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now().Add(-2 * time.Hour), NextUpdate: time.Now().Add(-time.Hour)}
	for _, r := range revoked {
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries,
			x509.RevocationListEntry{SerialNumber: r.Cert.SerialNumber, RevocationTime: time.Now()})
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, p.Cert, p.Key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der})
}

// WriteList writes a list of revoked certificates into a folder of CADir.
func WriteList(t testing.TB, dir string, list []byte) {
	t.Helper()
	entries, err := filepath.Glob(filepath.Join(dir, "????????.0"))
	if err != nil || len(entries) == 0 {
		t.Fatalf("no authority in %s: %v", dir, err)
	}
	WriteFile(t, 0o644, strings.TrimSuffix(entries[0], ".0")+".r0", list)
}

// Member makes the credentials of a user of an authority.
func Member(t testing.TB, ca Pair) storage.Credentials {
	t.Helper()
	user := ca.User(t)
	proxy := user.Proxy(t, time.Now().Add(time.Hour))
	return storage.Credentials{From: storage.Auth{ProxyFile: ProxyFile(t, proxy, user), CADir: CADir(t, ca)}}
}

// FakeVOMS runs voms-proxy-fake, which plays a VOMS server, with home as its home. Some versions crash now and then, so it is run
// again after a signal.
func FakeVOMS(t testing.TB, home string, args ...string) {
	t.Helper()
	for try := 1; ; try++ {
		c := exec.CommandContext(t.Context(), "voms-proxy-fake", args...)
		c.Env = append(os.Environ(), "HOME="+home)
		said, err := c.CombinedOutput()
		if err == nil {
			return
		}
		if crashed := c.ProcessState != nil && c.ProcessState.ExitCode() < 0; !crashed || try == 10 {
			t.Fatalf("%v\n%s", err, said)
		}
	}
}
