package gridcert

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"time"

	"weir/internal/dn"
)

// Limits of chains that others present.
const (
	mostPresented = 20
	mostProxies   = 10
	clockSkew     = 5 * time.Minute // by which the clock of a proxy's signer may be ahead
)

// A Holder is the owner of a verified certificate, or of verified proxies of a certificate.
type Holder struct {
	User  *x509.Certificate   // the end entity, whose rights proxies have
	Chain []*x509.Certificate // from the certificate whose key the holder has to User
	Until time.Time           // when the first of Chain expires
}

// VerifyChain verifies a client's certificates: proxies by RFC 3820, each signed by the next, the
// certificate of the user, and authorities between that and one of roots. Limited and independent
// proxies, and proxies older than RFC 3820, are refused.
func VerifyChain(chain []*x509.Certificate, roots *x509.CertPool, now time.Time) (*Holder, error) {
	switch {
	case len(chain) == 0:
		return nil, errors.New("there is no certificate")
	case len(chain) > mostPresented:
		return nil, fmt.Errorf("the chain has %d certificates, more than %d", len(chain), mostPresented)
	}
	for _, c := range chain {
		if key, ok := c.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() > mostKeyBits {
			return nil, fmt.Errorf("a key in the chain has %d bits, more than %d", key.N.BitLen(), mostKeyBits)
		}
	}
	n := 0
	for n < len(chain) && IsProxy(chain[n]) {
		n++
	}
	switch {
	case n > mostProxies:
		return nil, fmt.Errorf("the chain has %d proxies, more than %d", n, mostProxies)
	case n == len(chain):
		return nil, errors.New("the chain lacks the certificate of the user that signed the proxy")
	}
	h := &Holder{User: chain[n], Chain: chain[:n+1], Until: chain[n].NotAfter}
	between := x509.NewCertPool()
	for _, c := range chain[n+1:] {
		between.AddCert(c)
	}
	if _, err := h.User.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		return nil, fmt.Errorf("the certificate of %s: %w", dn.Text(h.User.RawSubject), err)
	}
	if n > 0 && h.User.IsCA {
		return nil, fmt.Errorf("%s is an authority, which may not sign proxies", dn.Text(h.User.RawSubject))
	}
	for i := range n {
		if err := verifyProxy(chain[i], chain[i+1], i, now); err != nil {
			return nil, err
		}
		if chain[i].NotAfter.Before(h.Until) {
			h.Until = chain[i].NotAfter
		}
	}
	return h, nil
}

// verifyProxy verifies a proxy below which there are others.
func verifyProxy(c, signer *x509.Certificate, below int, now time.Time) error {
	info, err := proxyInfoOf(c)
	switch {
	case err != nil:
		return err
	case !bytes.Equal(c.RawIssuer, signer.RawSubject) || !dn.AddsCommonName(c.RawSubject, signer.RawSubject):
		return fmt.Errorf("the subject and the issuer of the proxy do not match: %s, %s", dn.Text(c.RawSubject), dn.Text(signer.RawSubject))
	case c.SignatureAlgorithm == x509.SHA1WithRSA || c.SignatureAlgorithm == x509.ECDSAWithSHA1:
		return errors.New("the proxy is signed with SHA-1, which is not secure")
	case signer.CheckSignature(c.SignatureAlgorithm, c.RawTBSCertificate, c.Signature) != nil:
		return errors.New("failed to verify the proxy, maybe signed with the wrong private key?")
	case signer.KeyUsage != 0 && signer.KeyUsage&x509.KeyUsageDigitalSignature == 0:
		return fmt.Errorf("the key of %s may not sign proxies", dn.Text(signer.RawSubject))
	case c.IsCA:
		return errors.New("the proxy is an authority")
	case now.Add(clockSkew).Before(c.NotBefore):
		return fmt.Errorf("the proxy is not valid before %s", c.NotBefore.UTC().Format(time.RFC3339))
	case now.After(c.NotAfter):
		return fmt.Errorf("the proxy expired at %s", c.NotAfter.UTC().Format(time.RFC3339))
	case info.PathLength >= 0 && below > info.PathLength:
		return fmt.Errorf("the path length of a proxy is exceeded: it allows %d below it", info.PathLength)
	case info.Policy.Language.Equal(limited()):
		return errors.New("the proxy is limited: use one with all rights of the user")
	case !info.Policy.Language.Equal(inheritAll()):
		return fmt.Errorf("the proxy does not have all rights of the user: its policy is %s", info.Policy.Language)
	}
	for _, id := range c.UnhandledCriticalExtensions {
		if !id.Equal(oidProxyInfo()) {
			return fmt.Errorf("the proxy has an unknown critical extension, %s", id)
		}
	}
	for _, e := range c.Extensions {
		if e.Id.Equal(asn1.ObjectIdentifier{2, 5, 29, 17}) || e.Id.Equal(asn1.ObjectIdentifier{2, 5, 29, 18}) {
			return errors.New("the proxy has alternative names, which proxies cannot have")
		}
	}
	return nil
}

// A proxyInfo is the extension that makes a certificate a proxy.
type proxyInfo struct {
	PathLength int `asn1:"optional,default:-1"`
	Policy     struct {
		Language asn1.ObjectIdentifier
		Policy   []byte `asn1:"optional"`
	}
}

func proxyInfoOf(c *x509.Certificate) (info proxyInfo, err error) {
	for _, e := range c.Extensions {
		if !e.Id.Equal(oidProxyInfo()) {
			continue
		}
		rest, err := asn1.Unmarshal(e.Value, &info)
		if err != nil || len(rest) > 0 || !e.Critical {
			return info, errors.New("the extension proxyCertInfo of the proxy is malformed")
		}
		return info, nil
	}
	return info, errors.New("the proxy is older than RFC 3820: make one with voms-proxy-init -rfc")
}
