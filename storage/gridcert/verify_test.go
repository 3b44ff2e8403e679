package gridcert

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/dn"
	"weir/internal/require"
	"weir/storage/gridcert/gridcerttest"
)

// A chainRig makes chains of proxies.
type chainRig struct {
	t        testing.TB
	ca, user gridcerttest.Pair
	roots    *x509.CertPool
}

func newChainRig(t testing.TB) *chainRig {
	r := &chainRig{t: t, ca: gridcerttest.NewCA(t, "Chains"), roots: x509.NewCertPool()}
	r.user = r.ca.User(t)
	r.roots.AddCert(r.ca.Cert)
	return r
}

// proxies returns a chain with one proxy for each change, the first proxy signed by the user.
func (r *chainRig) proxies(changes ...func(*x509.Certificate)) []*x509.Certificate {
	by := r.user
	chain := []*x509.Certificate{by.Cert}
	for _, change := range changes {
		key := r.ca.User(r.t).Key
		c := gridcerttest.SignProxy(r.t, by.Cert, by.Key, &key.PublicKey, change)
		by = gridcerttest.Pair{Cert: c, Key: key}
		chain = slices.Insert(chain, 0, c)
	}
	return chain
}

func usual(*x509.Certificate) {}

func policyOf(t *testing.T, pathLength int, language ...int) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		c.ExtraExtensions = []pkix.Extension{gridcerttest.ProxyInfo(t, pathLength, append(asn1.ObjectIdentifier{1, 3, 6, 1}, language...))}
	}
}

// TestVerifyChain checks that proxies by RFC 3820 have the rights of their user, and that a
// violation of any rule leads to a refusal.
func TestVerifyChain(t *testing.T) {
	r := newChainRig(t)
	all := []int{5, 5, 7, 21, 1}
	for _, n := range []int{0, 1, 3, mostProxies} {
		chain := r.proxies(slices.Repeat([]func(*x509.Certificate){usual}, n)...)
		h, err := VerifyChain(chain, r.roots, time.Now())
		if err != nil || !h.User.Equal(r.user.Cert) || len(h.Chain) != n+1 {
			t.Errorf("%d proxies: %+v, %v", n, h, err)
		}
	}
	soon := time.Now().Add(time.Minute).Truncate(time.Second)
	h, err := VerifyChain(r.proxies(func(c *x509.Certificate) { c.NotAfter = soon }, usual), r.roots, time.Now())
	if err != nil || !h.Until.Equal(soon) {
		t.Errorf("%+v, %v", h, err)
	}
	if _, err := VerifyChain(r.proxies(policyOf(t, 1, all...), usual), r.roots, time.Now()); err != nil {
		t.Errorf("a path of the length that is allowed: %v", err)
	}
	middle := r.ca.Sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "Middle"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign})
	far := middle.User(t)
	key := r.ca.User(t).Key
	if _, err := VerifyChain([]*x509.Certificate{gridcerttest.SignProxy(t, far.Cert, far.Key, &key.PublicKey, nil), far.Cert, middle.Cert},
		r.roots, time.Now()); err != nil {
		t.Errorf("an authority between: %v", err)
	}
	foreign := newChainRig(t)
	noSigner := r.ca.Sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "x"}, KeyUsage: x509.KeyUsageKeyEncipherment})
	signed := func(by gridcerttest.Pair, change func(*x509.Certificate)) []*x509.Certificate {
		return []*x509.Certificate{gridcerttest.SignProxy(t, by.Cert, by.Key, &key.PublicKey, change), by.Cert}
	}
	many := slices.Repeat([]*x509.Certificate{r.ca.Cert}, 30)
	for name, c := range map[string]struct {
		chain  []*x509.Certificate
		reason string
	}{
		"nothing":       {nil, "no certificate"},
		"giant":         {append(r.proxies(usual), many...), "more than 20"},
		"many proxies":  {r.proxies(slices.Repeat([]func(*x509.Certificate){usual}, mostProxies+1)...), "more than 10"},
		"no user":       {r.proxies(usual)[:1], "lacks the certificate of the user"},
		"foreign":       {foreign.proxies(usual), "unknown authority"},
		"another user":  {[]*x509.Certificate{r.proxies(usual)[0], r.ca.User(t).Cert}, "wrong private key"},
		"name":          {r.proxies(func(c *x509.Certificate) { c.RawSubject = r.ca.Cert.RawSubject }), "do not match"},
		"two names":     {r.proxies(func(c *x509.Certificate) { c.RawSubject = twice(t, c.RawSubject) }), "do not match"},
		"expired":       {r.proxies(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Second) }), "expired at"},
		"early":         {r.proxies(func(c *x509.Certificate) { c.NotBefore = time.Now().Add(30 * time.Minute) }), "not valid before"},
		"first expired": {r.proxies(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Second) }, usual), "expired at"},
		"path":          {r.proxies(policyOf(t, 0, all...), usual), "path length"},
		"longer path":   {r.proxies(policyOf(t, 1, all...), usual, usual), "path length"},
		"limited":       {r.proxies(policyOf(t, -1, 4, 1, 3536, 1, 1, 1, 9)), "limited"},
		"once limited":  {r.proxies(policyOf(t, -1, 4, 1, 3536, 1, 1, 1, 9), usual), "limited"},
		"independent":   {r.proxies(policyOf(t, -1, 5, 5, 7, 21, 2)), "all rights"},
		"authority":     {r.proxies(func(c *x509.Certificate) { c.IsCA, c.BasicConstraintsValid = true, true }), "is an authority"},
		"by authority":  {signed(r.ca, nil), "may not sign proxies"},
		"key usage":     {signed(noSigner, nil), "may not sign proxies"},
		"alternative":   {r.proxies(func(c *x509.Certificate) { c.DNSNames = []string{"x"} }), "alternative names"},
		"sha-1":         {r.proxies(func(c *x509.Certificate) { c.SignatureAlgorithm = x509.SHA1WithRSA }), "SHA-1"},
		"not critical": {r.proxies(func(c *x509.Certificate) { c.ExtraExtensions[0].Critical = false }),
			"malformed"},
		"garbage": {r.proxies(func(c *x509.Certificate) { c.ExtraExtensions[0].Value = []byte{0x30, 0x80} }), "malformed"},
		"critical": {r.proxies(func(c *x509.Certificate) {
			c.ExtraExtensions = append(c.ExtraExtensions, pkix.Extension{Id: asn1.ObjectIdentifier{1, 2, 3}, Critical: true, Value: []byte{5, 0}})
		}), "unknown critical"},
		"legacy": {r.proxies(func(c *x509.Certificate) {
			var err error
			if c.RawSubject, err = dn.WithCommonName(r.user.Cert.RawSubject, "proxy"); err != nil {
				t.Fatal(err)
			}
			c.ExtraExtensions = nil
		}), "older than RFC 3820"},
		"server": {[]*x509.Certificate{r.ca.Sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "h"}, SerialNumber: big.NewInt(5),
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}).Cert}, "usage"},
	} {
		if h, err := VerifyChain(c.chain, r.roots, time.Now()); err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: %+v, %v", name, h, err)
		}
	}
}

// twice returns a name with one more common name.
func twice(t *testing.T, raw []byte) []byte {
	t.Helper()
	out, err := dn.WithCommonName(raw, "more")
	require.NoError(t, err)
	return out
}
