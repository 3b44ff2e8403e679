package coordinator

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
	"net/http"
	"strings"
	"sync"
	"time"

	"weir/internal/db"
	"weir/storage/gridcert"
	"weir/transfer/fts"
)

const (
	requestLife  = time.Hour      // in which a certificate request can be answered; all of a user's clients share one
	proxyKept    = 24 * time.Hour // after its end, in which files wait for another proxy
	proxyPause   = time.Minute    // between looks for another proxy
	mostProxy    = 64 << 10       // bytes of a chain that is delegated
	leastKeyBits = 2048           // of proxies
	mostKeyBits  = 4096
)

// proxies are delegated proxies that are used.
type proxies struct {
	mu   sync.Mutex
	kept map[proxyID]*proxy
}

// A proxyID names a delegated proxy.
type proxyID struct {
	ID    string `json:"id"`    // of the user's credentials
	Owner string `json:"owner"` // subject of the user's certificate
}

// secretOwner is who owns the secrets of a delegation, for the secretBox.
func (p proxyID) secretOwner(what string) string { return what + " " + p.ID + " of " + p.Owner }

// A proxy is a delegated proxy.
type proxy struct {
	cert       *tls.Certificate // nil: it has expired
	expires    time.Time
	attributes string
}

// ownProxy returns the name of the proxy of a path, which is the caller's.
func (c *Coordinator) ownProxy(q *call) (id proxyID, err error) {
	switch {
	case q.PathValue("id") != credentialOf(q.caller):
		return id, fts.Refuse(http.StatusForbidden, "The requested ID and the credentials ID do not match")
	case q.certificate == nil:
		return id, fts.Refuse(http.StatusForbidden, "Certificate required")
	}
	return proxyID{q.credential, q.certificate.holder.User.Subject.String()}, q.need(maySubmit)
}

// tokenDelegation is how long users with tokens need not delegate anything.
const tokenDelegation = 30 * 24 * time.Hour

// ftsDelegation answers until when the caller's proxy is valid, null if there is none. Users with tokens have none, and need none.
func (c *Coordinator) ftsDelegation(q *call) (int, any, error) {
	id, err := c.ownProxy(q)
	if err != nil {
		if q.certificate == nil && q.PathValue("id") == credentialOf(q.caller) { // FTS's client would delegate with a token as well
			return http.StatusOK, fts.DelegationAnswer{Until: fts.TimeText(c.now().Add(tokenDelegation)), Attributes: []string{}}, nil
		}
		return 0, nil, err
	}
	p, err := c.readProxy(q.Context(), id)
	if errors.Is(err, db.ErrNone) {
		return http.StatusOK, nil, nil
	}
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, fts.DelegationAnswer{Until: fmt.Sprint(fts.Time(p.expires)), Attributes: strings.Split(p.attributes, "\n")}, nil
}

// ftsDelegationRequest answers with a certificate request, whose key stays here.
func (c *Coordinator) ftsDelegationRequest(q *call) (int, any, error) {
	id, err := c.ownProxy(q)
	if err != nil {
		return 0, nil, err
	}
	bits := leastKeyBits
	if key, ok := q.certificate.holder.Chain[0].PublicKey.(*rsa.PublicKey); ok {
		bits = min(max(key.N.BitLen(), leastKeyBits), mostKeyBits)
	}
	key, err := c.requestKey(q.Context(), id)
	if err != nil || key == nil || key.N.BitLen() != bits {
		if err != nil && !errors.Is(err, db.ErrNone) {
			return 0, nil, err
		}
		if key, err = c.newRequestKey(q.Context(), id, bits); err != nil {
			return 0, nil, err
		}
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{Organization: []string{"Dummy"}}}, key)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, plainAnswer{media: "text/plain", header: http.Header{"X-Delegation-Id": {id.ID}},
		body: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})}, nil
}

// requestKey returns the key of the last request, nil if that is too old.
func (c *Coordinator) requestKey(ctx context.Context, id proxyID) (*rsa.PrivateKey, error) {
	var sealed []byte
	var made time.Time
	err := c.db.Read(ctx, func(tx *db.Tx) error {
		return tx.Row("SELECT request, requested FROM delegation WHERE id = ? AND owner = ?", id.ID, id.Owner).Scan(&sealed, db.When(&made))
	})
	if err != nil || len(sealed) == 0 || c.now().After(made.Add(requestLife)) {
		return nil, err
	}
	text, err := c.box.open(sealed, id.secretOwner("request"))
	if err != nil {
		return nil, nil // of another key: a new request is made
	}
	return x509.ParsePKCS1PrivateKey([]byte(text))
}

func (c *Coordinator) newRequestKey(ctx context.Context, id proxyID, bits int) (*rsa.PrivateKey, error) {
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		return nil, err
	}
	return key, c.db.Exec(ctx, `INSERT INTO delegation (id, owner, request, requested, proxy, attributes, expires)
		VALUES (?, ?, ?, ?, ?, '', 0) ON CONFLICT (id, owner) DO UPDATE SET request = excluded.request, requested = excluded.requested`,
		id.ID, id.Owner, c.box.close(string(x509.MarshalPKCS1PrivateKey(key)), id.secretOwner("request")), c.now(), []byte{})
}

// ftsDelegate takes a signed proxy.
func (c *Coordinator) ftsDelegate(q *call) (int, any, error) {
	id, err := c.ownProxy(q)
	if err != nil {
		return 0, nil, err
	}
	bad := func(format string, a ...any) (int, any, error) {
		return 0, nil, fts.Refuse(http.StatusBadRequest, "Could not process the proxy: "+format, a...)
	}
	text, err := io.ReadAll(io.LimitReader(q.Body, mostProxy+1))
	if err != nil {
		return bad("it cannot be read")
	}
	if len(text) > mostProxy {
		return bad("it has more than %d bytes", mostProxy)
	}
	key, err := c.requestKey(q.Context(), id)
	switch {
	case errors.Is(err, db.ErrNone), err == nil && key == nil:
		return 0, nil, fts.Refuse(http.StatusBadRequest, "No credential cache found: ask for /delegation/%s/request first", id.ID)
	case err != nil:
		return 0, nil, err
	}
	chain, err := gridcert.ParseCertificates(text)
	switch {
	case err != nil:
		return bad("Malformed proxy: %s", err)
	case len(chain) < 2:
		return bad("Malformed proxy: expected the proxy and the certificates that signed it")
	case !key.PublicKey.Equal(chain[0].PublicKey):
		return bad("The proxy does not match the stored associated private key")
	}
	holder, err := c.certificates.authorities.Verify(chain, c.now())
	switch {
	case err != nil:
		return bad("%s", err)
	case len(holder.Chain) == 1:
		return bad("it is not a proxy")
	case holder.User.Subject.String() != id.Owner:
		return bad("it is a proxy of %s, not of %s", holder.User.Subject, id.Owner)
	}
	if err := c.keepProxy(q.Context(), id, pemOf(chain), key, strings.Join(q.scopes, "\n"), holder.Until); err != nil {
		return 0, nil, err
	}
	c.log.Info("proxy delegated", "user", q.user(), "id", id.ID, "expires", holder.Until)
	c.wakeAll()
	return http.StatusCreated, plainAnswer{media: "application/json"}, nil
}

func (c *Coordinator) keepProxy(ctx context.Context, id proxyID, chain []byte, key *rsa.PrivateKey, attributes string,
	expires time.Time) error {
	both := string(chain) + string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	err := c.db.Exec(ctx, "UPDATE delegation SET proxy = ?, attributes = ?, expires = ? WHERE id = ? AND owner = ?",
		c.box.close(both, id.secretOwner("proxy")), attributes, expires, id.ID, id.Owner)
	c.forgetProxy(id)
	return err
}

// ftsUndelegate removes the caller's proxy.
func (c *Coordinator) ftsUndelegate(q *call) (int, any, error) {
	id, err := c.ownProxy(q)
	if err != nil {
		return 0, nil, err
	}
	if _, err := c.readProxy(q.Context(), id); errors.Is(err, db.ErrNone) {
		return 0, nil, fts.Refuse(http.StatusNotFound, "Delegated credentials not found")
	} else if err != nil {
		return 0, nil, err
	}
	err = c.db.Exec(q.Context(), "DELETE FROM delegation WHERE id = ? AND owner = ?", id.ID, id.Owner)
	c.forgetProxy(id)
	return http.StatusNoContent, nil, err
}

// ftsCertificate answers with the caller's certificate.
func (c *Coordinator) ftsCertificate(q *call) (int, any, error) {
	if q.certificate == nil {
		return 0, nil, fts.Refuse(http.StatusForbidden, "Certificate required")
	}
	return http.StatusOK, plainAnswer{media: "application/x-pem-file", body: pemOf(q.TLS.PeerCertificates)}, nil
}

// readProxy returns a delegated proxy, also one that has expired not long ago; the error is db.ErrNone if there is none.
func (c *Coordinator) readProxy(ctx context.Context, id proxyID) (*proxy, error) {
	c.proxies.mu.Lock()
	p := c.proxies.kept[id]
	c.proxies.mu.Unlock()
	if p != nil {
		return p, nil
	}
	p = &proxy{}
	var sealed []byte
	err := c.db.Read(ctx, func(tx *db.Tx) error {
		return tx.Row("SELECT proxy, attributes, expires FROM delegation WHERE id = ? AND owner = ? AND expires > 0", id.ID, id.Owner).
			Scan(&sealed, &p.attributes, db.When(&p.expires))
	})
	if err != nil {
		return nil, err
	}
	text, err := c.box.open(sealed, id.secretOwner("proxy"))
	if err != nil { // of another key: as if there were none
		c.health.set("delegated proxies", err)
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
		c.proxies.kept = map[proxyID]*proxy{}
	}
	if other := c.proxies.kept[id]; other != nil { // connections are kept by certificate
		return other, nil
	}
	c.proxies.kept[id] = p
	return p, nil
}

func (c *Coordinator) forgetProxy(id proxyID) {
	c.proxies.mu.Lock()
	defer c.proxies.mu.Unlock()
	delete(c.proxies.kept, id)
}

// pruneProxies removes proxies that have expired, and certificate requests that were not answered.
func (c *Coordinator) pruneProxies(ctx context.Context) error {
	now := c.now()
	err := c.db.Exec(ctx, "DELETE FROM delegation WHERE expires < ? AND requested < ?", now.Add(-proxyKept), now.Add(-requestLife))
	c.proxies.mu.Lock()
	defer c.proxies.mu.Unlock()
	for id, p := range c.proxies.kept {
		if now.After(p.expires.Add(proxyKept)) {
			delete(c.proxies.kept, id)
		}
	}
	return err
}

// proxyForJob returns the name of the proxy that the copies of a job of the caller use, nil if the caller has delegated none.
func (c *Coordinator) proxyForJob(q *call) (*proxyID, error) {
	if q.certificate == nil {
		return nil, nil
	}
	id := proxyID{q.credential, q.certificate.holder.User.Subject.String()}
	p, err := c.readProxy(q.Context(), id)
	switch {
	case errors.Is(err, db.ErrNone):
		return nil, nil
	case err != nil:
		return nil, err
	}
	if ago := c.now().Sub(p.expires); ago > 0 {
		return nil, fts.Refuse(statusNeedDelegation, "The delegated credentials expired %d seconds ago (%s)", int(ago.Seconds()), id.ID)
	}
	return &id, nil
}

// statusNeedDelegation is FTS's status of jobs without a valid proxy.
const statusNeedDelegation = 419

// validProxy returns the proxy of a job. Errors about it are *tokenError.
func (c *Coordinator) validProxy(ctx context.Context, id proxyID) (*tls.Certificate, error) {
	p, err := c.readProxy(ctx, id)
	switch {
	case errors.Is(err, db.ErrNone):
		return nil, &tokenError{err: fmt.Errorf("no delegation found for %q", id.Owner)}
	case err != nil:
		return nil, err
	case !c.now().Before(p.expires):
		return nil, &tokenError{after: proxyPause, err: fmt.Errorf("the delegated proxy of %s expired at %s: delegate another one "+
			"(fts-rest-delegate)", id.Owner, clockTime(p.expires))}
	}
	return p.cert, nil
}
