package gridcert

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"

	"weir/internal/require"
	"weir/storage/gridcert/gridcerttest"
)

// A full proxy of a certificate, and of a proxy, is accepted by VerifyChain as the user's, and so is a
// further proxy that is derived from it. It ends with the first certificate of its chain.
func TestDelegateFull(t *testing.T) {
	ca := gridcerttest.NewCA(t, "authority")
	user := ca.User(t)
	ends := time.Now().Add(30 * time.Minute).Truncate(time.Second)
	roots := x509.NewCertPool()
	roots.AddCert(ca.Cert)
	proxy := user.Proxy(t, ends)
	for name, cert := range map[string]*tls.Certificate{
		"certificate": {Certificate: [][]byte{user.Cert.Raw}, PrivateKey: user.Key},
		"proxy":       {Certificate: [][]byte{proxy.Cert.Raw, user.Cert.Raw}, PrivateKey: proxy.Key},
	} {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		require.NoError(t, err)
		for range 2 { // the second time, of the delegated proxy
			der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
			require.NoError(t, err)
			text, until, err := DelegateFull(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), time.Now())
			require.NoError(t, err)
			chain, err := ParseCertificates(text)
			require.NoError(t, err)
			h, err := VerifyChain(chain, roots, time.Now())
			if err != nil || !h.User.Equal(user.Cert) || len(chain) != len(cert.Certificate)+1 || !until.Equal(h.Until) {
				t.Fatalf("%s: %d certificates until %s, %v", name, len(chain), until, err)
			}
			if name == "proxy" && !until.Equal(ends) {
				t.Errorf("it ends at %s, not with the proxy at %s", until, ends)
			}
			cert = &tls.Certificate{PrivateKey: key}
			for _, c := range chain {
				cert.Certificate = append(cert.Certificate, c.Raw)
			}
		}
	}
	for _, request := range []string{"", "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"} {
		if _, _, err := DelegateFull(&tls.Certificate{Certificate: [][]byte{user.Cert.Raw}, PrivateKey: user.Key}, []byte(request),
			time.Now()); err == nil {
			t.Errorf("%q was signed", request)
		}
	}
}
