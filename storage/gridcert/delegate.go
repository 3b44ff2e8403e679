package gridcert

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"time"
)

// DelegateFull signs a proxy for the key of a service's request (PKCS #10, PEM), valid for 12 hours
// at most, and returns it in PEM, followed by the chain of cert, and its end. The proxy inherits all
// rights of cert, which may be a proxy itself, and the service can derive further proxies from it:
// transfer services delegate to the storage, as with the proxies of FTS's own client.
func DelegateFull(cert *tls.Certificate, request []byte, now time.Time) (chain []byte, until time.Time, err error) {
	block, _ := pem.Decode(request)
	if block == nil {
		return nil, until, Refuse("the service's request for a proxy is not PEM")
	}
	key, err := requestedKey(block.Bytes)
	if err != nil {
		return nil, until, err
	}
	signer, ok := cert.PrivateKey.(crypto.Signer)
	if !ok || len(cert.Certificate) == 0 {
		return nil, until, Refuse("the certificate has no key that signs")
	}
	var own []*x509.Certificate
	for _, der := range cert.Certificate {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, until, Refuse("%v", err)
		}
		own = append(own, c)
	}
	der, err := signProxy(own[0], signer, key, policy{proxies: anyNumber, language: inheritAll()}, now)
	if err != nil {
		return nil, until, Refuse("delegate a proxy: %v", err)
	}
	proxy, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, until, Refuse("delegate a proxy: %v", err)
	}
	var text bytes.Buffer
	until = proxy.NotAfter
	for _, c := range append([]*x509.Certificate{proxy}, own...) {
		if c.NotAfter.Before(until) {
			until = c.NotAfter
		}
		_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}) // a buffer cannot fail
	}
	return text.Bytes(), until, nil
}
