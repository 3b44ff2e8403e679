package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/internal/require"
	"weir/transfer/client"
	"weir/transfer/trial"
)

// An issuer signs certificates of clients.
type issuer struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newIssuer(t *testing.T, name string) *issuer {
	t.Helper()
	i := &issuer{t: t, dir: t.TempDir()}
	i.cert, i.key = i.sign(name, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return i
}

// sign makes a certificate and its key, NAME.pem and NAME.key.
func (i *issuer) sign(name string, c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	i.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	by, with := i.cert, i.key
	if by == nil {
		by, with = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by, key.Public(), with)
	if err != nil {
		i.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	err = errors.Join(err, os.WriteFile(i.file(name+".pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(i.file(name+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	if err != nil {
		i.t.Fatal(err)
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		i.t.Fatal(err)
	}
	return signed, key
}

func (i *issuer) file(name string) string { return filepath.Join(i.dir, name) }

// user makes a certificate of a client and returns the flags that present it.
func (i *issuer) user(name string) []string {
	i.t.Helper()
	i.sign(name, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return []string{"--client-cert", i.file(name + ".pem"), "--client-key", i.file(name + ".key")}
}

// Users and agents that present certificates have the roles that the coordinator's flags give to
// their names, regardless of token files. Certificates of other authorities give no access.
func TestCertificatesInsteadOfTokens(t *testing.T) {
	t.Parallel()
	ours, others := newIssuer(t, "ours"), newIssuer(t, "others")
	ann, boss, nobody, stranger := ours.user("ann"), ours.user("boss"), ours.user("nobody"), others.user("ann")
	r := rooms(t, trial.Options{
		Coordinator: []string{"--client-ca", ours.file("ours.pem"), "--name", "ann=weir.submit", "--name", "boss=approve", "--name",
			"agent=weir.agent:A,weir.agent:B"},
		Agent: ours.user("agent"),
		Sites: []trial.Site{{Name: "A"}, {Name: "B"}},
	})
	r.fills("A", "/store/run1", trial.File{Name: "/store/run1/f1", Size: 1000})
	as := func(who []string, args string) []string { return append(words(args), who...) }
	r.wants(0, as(ann, "transfer submit /store/run1 --to B"), "awaiting approval")
	r.wants(1, as(ann, "transfer approve 1"), "role approve", "ann has submit")
	r.wants(1, as(nobody, "transfer list"), "role read", "has no role")
	r.wants(1, as(stranger, "transfer list"), "certificate")
	r.wants(2, as(ann[:2], "transfer list"), "--client-cert and --client-key must be given together")
	r.wants(0, as(boss, "transfer approve 1"))
	r.wants(0, as(ann, "transfer show 1 --wait"), "completed")
}

// Commands on the coordinator's machine trust its certificate although no authority of this system
// has signed it, and a renewed certificate needs no restart.
func TestCertificateOfAnAuthority(t *testing.T) {
	t.Parallel()
	ours := newIssuer(t, "ours")
	renew := func() *big.Int {
		cert, _ := ours.sign("host", &x509.Certificate{DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
		return cert.SerialNumber
	}
	first := renew()
	r := rooms(t, trial.Options{Coordinator: []string{"--cert", ours.file("host.pem"), "--key", ours.file("host.key")}})
	r.wants(exitFine, words("site list"), "up")
	shown := func() *big.Int {
		conf, err := client.Read(r.ConfigFile())
		require.NoError(t, err)
		u, err := url.Parse(conf.URLs[0])
		require.NoError(t, err)
		conn, err := tls.Dial("tcp", u.Host, &tls.Config{InsecureSkipVerify: true})
		require.NoError(t, err)
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber
	}
	if got := shown(); got.Cmp(first) != 0 {
		t.Errorf("it shows the certificate %v, want %v", got, first)
	}
	second := renew()
	require.Eventually(t, "the renewed certificate", func() bool { return shown().Cmp(second) == 0 })
	r.wants(exitFine, words("site list"), "up")
	require.NoError(t, os.Remove(ours.file("host.key")))
	require.Eventually(t, "a warning", func() bool { shown(); return strings.Contains(logsIn(r.Dir()), "the one before is used") })
	if got := shown(); got.Cmp(second) != 0 {
		t.Errorf("it shows the certificate %v, want %v", got, second)
	}
}
