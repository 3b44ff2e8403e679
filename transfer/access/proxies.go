package access

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"weir/internal/db"
	"weir/internal/say"
	"weir/storage/gridcert"
)

const (
	requestLife  = time.Hour      // in which a certificate request can be completed; all of a user's clients share one
	proxyKept    = 24 * time.Hour // after its end, in which files wait for another proxy
	proxyPause   = time.Minute    // between two searches for another proxy
	mostProxy    = 64 << 10       // bytes of a chain that is delegated
	leastKeyBits = 2048           // of proxies
	mostKeyBits  = 4096
)

// proxies are the delegated proxies that are in use.
type proxies struct {
	mu   sync.Mutex
	kept map[ProxyID]*Proxy
}

// A ProxyID identifies a delegated proxy.
type ProxyID struct {
	ID    string `json:"id"`    // of the user's credentials
	Owner string `json:"owner"` // subject of the user's certificate
}

// secretOwner returns the owner of the secrets of a delegation, for the Box.
func (p ProxyID) secretOwner(what string) string { return what + " " + p.ID + " of " + p.Owner }

// A Proxy is a delegated proxy.
type Proxy struct {
	cert       *tls.Certificate
	Expires    time.Time
	Attributes string // of VOMS, one a line
}

// ProxyIDOf returns the id of a caller's proxy. The caller must have a certificate.
func ProxyIDOf(w Caller) ProxyID {
	return ProxyID{w.Credential, w.Certificate.holder.User.Subject.String()}
}

// A ProxyError is the reason for refusing a delegated proxy.
type ProxyError struct{ text string }

// Error implements error.
func (e *ProxyError) Error() string { return e.text }

func badProxy(format string, a ...any) error { return &ProxyError{fmt.Sprintf(format, a...)} }

// ErrNoRequest is the error of a proxy without a known certificate request.
var ErrNoRequest = errors.New("there is no certificate request for the proxy")

// CertificateRequest returns a certificate request in PEM for a proxy of a caller, whose key stays here.
func (c *Control) CertificateRequest(ctx context.Context, w Caller) ([]byte, error) {
	id, bits := ProxyIDOf(w), leastKeyBits
	if key, ok := w.Certificate.holder.Chain[0].PublicKey.(*rsa.PublicKey); ok {
		bits = min(max(key.N.BitLen(), leastKeyBits), mostKeyBits)
	}
	key, err := c.requestKey(ctx, id)
	if err != nil && !errors.Is(err, db.ErrNone) {
		return nil, err
	}
	if err != nil || key == nil || key.N.BitLen() != bits {
		if key, err = c.newRequestKey(ctx, id, bits); err != nil {
			return nil, err
		}
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{Organization: []string{"Dummy"}}}, key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), nil
}

// requestKey returns the key of the last request, or nil if that request is too old.
func (c *Control) requestKey(ctx context.Context, id ProxyID) (*rsa.PrivateKey, error) {
	var sealed []byte
	var made time.Time
	err := c.db.Read(ctx, func(tx *db.Tx) error {
		return tx.Row("SELECT request, requested FROM delegation WHERE id = ? AND owner = ?", id.ID, id.Owner).Scan(&sealed, db.When(&made))
	})
	if err != nil || len(sealed) == 0 || c.now().After(made.Add(requestLife)) {
		return nil, err
	}
	text, err := c.box.Open(sealed, id.secretOwner("request"))
	if err != nil {
		return nil, nil // encrypted with another key: a new request is made
	}
	return x509.ParsePKCS1PrivateKey([]byte(text))
}

// newRequestKey creates the key of a new request.
func (c *Control) newRequestKey(ctx context.Context, id ProxyID, bits int) (*rsa.PrivateKey, error) {
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		return nil, err
	}
	return key, c.db.Exec(ctx, `INSERT INTO delegation (id, owner, request, requested, proxy, attributes, expires)
		VALUES (?, ?, ?, ?, ?, '', 0) ON CONFLICT (id, owner) DO UPDATE SET request = excluded.request, requested = excluded.requested`,
		id.ID, id.Owner, c.box.Seal(string(x509.MarshalPKCS1PrivateKey(key)), id.secretOwner("request")), c.now(), []byte{})
}

// Delegate stores a signed proxy of a caller, in PEM with its chain. Errors about it are
// *ProxyError, or ErrNoRequest.
func (c *Control) Delegate(ctx context.Context, w Caller, body io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(body, mostProxy+1))
	if err != nil {
		return badProxy("it cannot be read")
	}
	if len(text) > mostProxy {
		return badProxy("it has more than %d bytes", mostProxy)
	}
	id := ProxyIDOf(w)
	key, err := c.requestKey(ctx, id)
	switch {
	case errors.Is(err, db.ErrNone), err == nil && key == nil:
		return ErrNoRequest
	case err != nil:
		return err
	}
	chain, err := gridcert.ParseCertificates(text)
	switch {
	case err != nil:
		return badProxy("Malformed proxy: %s", err)
	case len(chain) < 2:
		return badProxy("Malformed proxy: expected the proxy and the certificates that signed it")
	case !key.PublicKey.Equal(chain[0].PublicKey):
		return badProxy("The proxy does not match the stored associated private key")
	}
	holder, err := c.certificates.authorities.Verify(chain, c.now())
	switch {
	case err != nil:
		return badProxy("%s", err)
	case len(holder.Chain) == 1:
		return badProxy("it is not a proxy")
	case holder.User.Subject.String() != id.Owner:
		return badProxy("it is a proxy of %s, not of %s", holder.User.Subject, id.Owner)
	}
	if err := c.keepProxy(ctx, id, PEM(chain), key, strings.Join(w.Scopes, "\n"), holder.Until); err != nil {
		return err
	}
	c.log.Info("proxy delegated", "user", w.User(), "id", id.ID, "expires", holder.Until)
	return nil
}

func (c *Control) keepProxy(ctx context.Context, id ProxyID, chain []byte, key *rsa.PrivateKey, attributes string,
	expires time.Time) error {
	both := string(chain) + string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	err := c.db.Exec(ctx, "UPDATE delegation SET proxy = ?, attributes = ?, expires = ? WHERE id = ? AND owner = ?",
		c.box.Seal(both, id.secretOwner("proxy")), attributes, expires, id.ID, id.Owner)
	c.forgetProxy(id)
	return err
}

// RemoveProxy removes a delegated proxy.
func (c *Control) RemoveProxy(ctx context.Context, id ProxyID) error {
	err := c.db.Exec(ctx, "DELETE FROM delegation WHERE id = ? AND owner = ?", id.ID, id.Owner)
	c.forgetProxy(id)
	return err
}

// ReadProxy returns a delegated proxy, even if it has expired recently; the error is db.ErrNone if
// it does not exist.
func (c *Control) ReadProxy(ctx context.Context, id ProxyID) (*Proxy, error) {
	c.proxies.mu.Lock()
	p := c.proxies.kept[id]
	c.proxies.mu.Unlock()
	if p != nil {
		return p, nil
	}
	p = &Proxy{}
	var sealed []byte
	err := c.db.Read(ctx, func(tx *db.Tx) error {
		return tx.Row("SELECT proxy, attributes, expires FROM delegation WHERE id = ? AND owner = ? AND expires > 0", id.ID, id.Owner).
			Scan(&sealed, &p.Attributes, db.When(&p.Expires))
	})
	if err != nil {
		return nil, err
	}
	text, err := c.box.Open(sealed, id.secretOwner("proxy"))
	if err != nil { // encrypted with another key: the proxy is treated as missing
		c.health.Set("delegated proxies", err)
		return nil, db.ErrNone
	}
	cert, err := tls.X509KeyPair([]byte(text), []byte(text))
	if err != nil {
		return nil, fmt.Errorf("the delegated proxy %s: %w", id.ID, err)
	}
	p.cert = &cert
	c.proxies.mu.Lock()
	defer c.proxies.mu.Unlock()
	if c.proxies.kept == nil || len(c.proxies.kept) > mostPresented {
		c.proxies.kept = map[ProxyID]*Proxy{}
	}
	if other := c.proxies.kept[id]; other != nil { // connections are kept by certificate
		return other, nil
	}
	c.proxies.kept[id] = p
	return p, nil
}

func (c *Control) forgetProxy(id ProxyID) {
	c.proxies.mu.Lock()
	defer c.proxies.mu.Unlock()
	delete(c.proxies.kept, id)
}

// pruneProxies removes proxies that have expired, and certificate requests that were not completed.
func (c *Control) pruneProxies(ctx context.Context) error {
	now := c.now()
	err := c.db.Exec(ctx, "DELETE FROM delegation WHERE expires < ? AND requested < ?", now.Add(-proxyKept), now.Add(-requestLife))
	c.proxies.mu.Lock()
	defer c.proxies.mu.Unlock()
	for id, p := range c.proxies.kept {
		if now.After(p.Expires.Add(proxyKept)) {
			delete(c.proxies.kept, id)
		}
	}
	return err
}

// validProxy returns the proxy of a job. Errors about it are *TokenError.
func (c *Control) validProxy(ctx context.Context, id ProxyID) (*tls.Certificate, error) {
	p, err := c.ReadProxy(ctx, id)
	switch {
	case errors.Is(err, db.ErrNone):
		return nil, &TokenError{err: fmt.Errorf("no delegation found for %q", id.Owner)}
	case err != nil:
		return nil, err
	case !c.now().Before(p.Expires):
		return nil, &TokenError{After: proxyPause, err: fmt.Errorf("the delegated proxy of %s expired at %s: delegate another one "+
			"(fts-rest-delegate)", id.Owner, say.UTC(p.Expires))}
	}
	return p.cert, nil
}
