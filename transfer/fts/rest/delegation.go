package rest

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"weir/internal/db"
	"weir/transfer/access"
	"weir/transfer/api"
	"weir/transfer/fts"
)

// ownProxy returns the name of the proxy in a path, which must be the caller's.
func ownProxy(q *api.Call) (id access.ProxyID, err error) {
	switch {
	case q.PathValue("id") != q.DelegationID():
		return id, fts.Refuse(http.StatusForbidden, "The requested ID and the credentials ID do not match")
	case q.Certificate == nil:
		return id, fts.Refuse(http.StatusForbidden, "Certificate required")
	}
	return access.ProxyIDOf(q.Caller), q.Need(access.MaySubmit)
}

// tokenDelegation is the reported validity of the delegation of users with tokens, who do not need to
// delegate a proxy.
const tokenDelegation = 30 * 24 * time.Hour

// delegation returns the expiry of the caller's proxy, null without a proxy. Users with tokens need no proxy.
func (c *API) delegation(q *api.Call) (int, any, error) {
	id, err := ownProxy(q)
	if err != nil {
		if q.Certificate == nil && q.PathValue("id") == q.DelegationID() { // FTS's client would otherwise delegate with a token as well
			return http.StatusOK, fts.DelegationAnswer{Until: fts.TimeText(c.now().Add(tokenDelegation)), Attributes: []string{}}, nil
		}
		return 0, nil, err
	}
	p, err := c.access.ReadProxy(q.Context(), id)
	if errors.Is(err, db.ErrNone) {
		return http.StatusOK, nil, nil
	}
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, fts.DelegationAnswer{Until: fmt.Sprint(fts.Time(p.Expires)), Attributes: strings.Split(p.Attributes, "\n")}, nil
}

// delegationRequest returns a certificate request. Its key stays in the coordinator.
func (c *API) delegationRequest(q *api.Call) (int, any, error) {
	id, err := ownProxy(q)
	if err != nil {
		return 0, nil, err
	}
	text, err := c.access.CertificateRequest(q.Context(), q.Caller)
	return http.StatusOK, plainAnswer{media: "text/plain", header: http.Header{"X-Delegation-Id": {id.ID}}, body: text}, err
}

// delegate accepts a signed proxy.
func (c *API) delegate(q *api.Call) (int, any, error) {
	id, err := ownProxy(q)
	if err != nil {
		return 0, nil, err
	}
	err = c.access.Delegate(q.Context(), q.Caller, q.Body)
	switch {
	case errors.Is(err, access.ErrNoRequest):
		err = fts.Refuse(http.StatusBadRequest, "No credential cache found: ask for /delegation/%s/request first", id.ID)
	case errors.As(err, new(*access.ProxyError)):
		err = fts.Refuse(http.StatusBadRequest, "Could not process the proxy: %s", err)
	}
	if err != nil {
		return 0, nil, err
	}
	c.wakeAll()
	return http.StatusCreated, plainAnswer{media: "application/json"}, nil
}

// undelegate removes the caller's proxy.
func (c *API) undelegate(q *api.Call) (int, any, error) {
	id, err := ownProxy(q)
	if err != nil {
		return 0, nil, err
	}
	if _, err := c.access.ReadProxy(q.Context(), id); errors.Is(err, db.ErrNone) {
		return 0, nil, fts.Refuse(http.StatusNotFound, "Delegated credentials not found")
	} else if err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, c.access.RemoveProxy(q.Context(), id)
}

// certificate returns the caller's certificate.
func (c *API) certificate(q *api.Call) (int, any, error) {
	if q.Certificate == nil {
		return 0, nil, fts.Refuse(http.StatusForbidden, "Certificate required")
	}
	return http.StatusOK, plainAnswer{media: "application/x-pem-file", body: access.PEM(q.TLS.PeerCertificates)}, nil
}

// proxyForJob returns the name of the proxy that the copies of a job of the caller use, or nil if
// the caller has not delegated a proxy.
func (c *API) proxyForJob(q *api.Call) (*access.ProxyID, error) {
	if q.Certificate == nil {
		return nil, nil
	}
	id := access.ProxyIDOf(q.Caller)
	p, err := c.access.ReadProxy(q.Context(), id)
	switch {
	case errors.Is(err, db.ErrNone):
		return nil, nil
	case err != nil:
		return nil, err
	}
	if ago := c.now().Sub(p.Expires); ago > 0 {
		return nil, fts.Refuse(statusNeedDelegation, "The delegated credentials expired %d seconds ago (%s)", int(ago.Seconds()), id.ID)
	}
	return &id, nil
}

// statusNeedDelegation is FTS's status of jobs without a valid proxy.
const statusNeedDelegation = 419
