package access

import (
	"bytes"
	"crypto/sha1" // FTS3 defines ids of credentials by it
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"weir/internal/dn"
	"weir/internal/wire"
	"weir/storage/gridcert"
)

const (
	mostPresented = 1000 // certificates that are known
	verifyEvery   = time.Minute
)

// clientCertificates verify the certificates and proxies that clients present in TLS. crypto/tls
// does not support proxies.
type clientCertificates struct {
	authorities *gridcert.Authorities
	voms        *gridcert.VOMS // nil: attributes count nothing

	mu    sync.Mutex
	known map[[sha256.Size]byte]*Presented
}

// A Presented is a certificate or proxy of a client that has been verified.
type Presented struct {
	holder *gridcert.Holder
	fqans  []string // attributes that VOMS servers have signed
	until  time.Time
	again  time.Time // when it is verified again: it may be revoked
}

// CheckAuthorities returns an error if the authorities of client certificates in Config.CA, if there are any, cannot be read.
func CheckAuthorities(path string) error {
	if path == "" {
		return nil
	}
	_, err := gridcert.NewAuthorities(path, time.Now(), slog.New(slog.DiscardHandler))
	return err
}

// RequestCertificates has a server request certificates of clients, if authorities of them are configured.
func (c *Control) RequestCertificates(secure *tls.Config) error {
	if c.conf.CA == "" {
		return nil
	}
	authorities, err := gridcert.NewAuthorities(c.conf.CA, c.now(), c.log)
	if err != nil {
		return fmt.Errorf("authorities of clients: %w", err)
	}
	c.certificates = &clientCertificates{authorities: authorities, known: map[[sha256.Size]byte]*Presented{}}
	if c.conf.VOMSDir != "" {
		c.certificates.voms = gridcert.NewVOMS(c.conf.VOMSDir, authorities.Pool)
	}
	secure.ClientCAs = authorities.Pool(c.now())
	secure.ClientAuth = tls.RequestClientCert // verified for each request, so that the response contains the reason
	return nil
}

// HasCertificate reports whether a client presents a certificate, and certificates of clients are
// verified.
func (c *Control) HasCertificate(r *http.Request) bool {
	return c.certificates != nil && r.TLS != nil && len(r.TLS.PeerCertificates) > 0
}

// presentedIn verifies the certificate of a request.
func (c *Control) presentedIn(r *http.Request) (*Presented, error) {
	p, err := c.verifyChain(r.TLS.PeerCertificates)
	if err != nil {
		return nil, wire.Refuse(http.StatusUnauthorized, "the client certificate is not valid: %s", err)
	}
	return p, nil
}

// verifyChain verifies a chain and its attributes.
func (c *Control) verifyChain(chain []*x509.Certificate) (*Presented, error) {
	k, now := c.certificates, c.now()
	sum := sha256.New()
	for _, one := range chain {
		sum.Write(one.Raw)
	}
	id := [sha256.Size]byte(sum.Sum(nil))
	k.mu.Lock()
	p := k.known[id]
	k.mu.Unlock()
	if p != nil && now.Before(p.until) && now.Before(p.again) {
		return p, nil
	}
	holder, err := k.authorities.Verify(chain, now)
	if err != nil {
		return nil, err
	}
	p = &Presented{holder: holder, until: holder.Until, again: now.Add(verifyEvery)}
	if k.voms != nil {
		var ends time.Time
		if p.fqans, ends, err = k.voms.Attributes(holder, now); err != nil {
			c.log.Warn("attributes of a proxy are not used", "user", dn.Text(holder.User.RawSubject), "error", err)
		}
		if !ends.IsZero() && ends.Before(p.until) {
			p.until = ends
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.known) >= mostPresented {
		clear(k.known)
	}
	k.known[id] = p
	return p, nil
}

// CertificateHolder returns the user of the certificate of a request.
func (c *Control) CertificateHolder(r *http.Request) (Caller, error) {
	p, err := c.presentedIn(r)
	if err != nil {
		return Caller{}, err
	}
	leaf := p.holder.User
	text := dn.Text(leaf.RawSubject)
	who := Caller{Name: leaf.Subject.String(), DN: text, Scopes: p.fqans, Certificate: p, Until: p.until}
	names := slices.Concat([]string{who.Name, leaf.Subject.CommonName}, leaf.DNSNames, leaf.EmailAddresses)
	for _, u := range leaf.URIs {
		names = append(names, u.String())
	}
	for _, n := range names {
		if roles, ok := c.conf.Names[n]; ok && n != "" {
			who.Name, who.Roles = n, slices.Clone(roles)
			break
		}
	}
	sum := sha1.New()
	sum.Write([]byte(text))
	for _, f := range p.fqans {
		sum.Write([]byte(f))
		for _, role := range c.conf.VOMSRoles[f] {
			if !slices.Contains(who.Roles, role) {
				who.Roles = append(who.Roles, role)
			}
		}
		vo, _, _ := strings.Cut(strings.TrimPrefix(f, "/"), "/Role=") // groups are organizations, as in FTS
		if !slices.Contains(who.VOs, vo) {
			who.VOs = append(who.VOs, vo)
		}
	}
	who.Credential = hex.EncodeToString(sum.Sum(nil))[:16]
	return who, nil
}

// PEM returns certificates in PEM.
func PEM(chain []*x509.Certificate) []byte {
	var out bytes.Buffer
	for _, one := range chain {
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: one.Raw}) // never fails
	}
	return out.Bytes()
}
