package coordinator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"weir/internal/token"
	"weir/internal/wire"
	"weir/transfer/catalog"
	"weir/transfer/page"
)

// The roles, which are scopes of the coordinator's tokens.
const (
	mayRead    = "weir.read"    // see everything but secrets
	maySubmit  = "weir.submit"  // ask for datasets, cancel and retry one's own requests
	mayApprove = "weir.approve" // let requests begin, reject, cancel and retry them
	mayAdmin   = "weir.admin"   // all of it, and sites, datasets and tokens
	agentOf    = "weir.agent:"  // with a site's name: be its agent
)

// A caller is who asks.
type caller struct {
	name  string
	roles []string
	token string // the name of what was shown, "" of a certificate
	since time.Time
	until time.Time
}

type callerKey struct{}

func callerOf(r *http.Request) caller {
	who, _ := r.Context().Value(callerKey{}).(caller)
	return who
}

// has tells whether somebody has a role, by itself or in a greater one.
func (w caller) has(role string) bool {
	if slices.Contains(w.roles, role) || slices.Contains(w.roles, mayAdmin) {
		return true
	}
	return role == mayRead && slices.ContainsFunc(w.roles, func(r string) bool { return r == maySubmit || r == mayApprove })
}

// need refuses who does not have a role.
func need(r *http.Request, role string) (caller, error) {
	who := callerOf(r)
	if who.has(role) {
		return who, nil
	}
	have := "no role"
	if len(who.roles) > 0 {
		have = strings.Join(who.roles, ", ")
	}
	return who, wire.Refuse(http.StatusForbidden, "this takes the role %s; %s has %s", role, who.name, have)
}

// check lets in who shows a token of ours, has a browser's session, or comes with
// a certificate whose name was configured.
func (c *Coordinator) check(r *http.Request) (context.Context, error) {
	raw := wire.Bearer(r)
	if raw == "" && c.page != nil {
		var err error
		if raw, err = c.page.Token(r); err != nil {
			return nil, err
		}
	}
	var who caller
	switch {
	case raw != "":
		var err error
		if who, err = c.holder(r.Context(), raw); err != nil {
			return nil, err
		}
	case r.TLS != nil && len(r.TLS.VerifiedChains) > 0:
		if err := page.Foreign(r); err != nil {
			return nil, err
		}
		who = c.certified(r)
	default:
		return nil, wire.Refuse(http.StatusUnauthorized, "a token or a certificate is needed")
	}
	return context.WithValue(r.Context(), callerKey{}, who), nil
}

// holder is who a token is of.
func (c *Coordinator) holder(ctx context.Context, raw string) (caller, error) {
	claims, err := c.checker.Check(ctx, raw)
	switch {
	case errors.Is(err, token.ErrKeys):
		return caller{}, &wire.Error{Status: http.StatusServiceUnavailable, Text: err.Error(), After: 5 * time.Second}
	case err != nil:
		return caller{}, wire.Refuse(http.StatusUnauthorized, "%s", err.Error())
	}
	if c.revoked.has(claims.ID) {
		return caller{}, errRevoked(claims.ID)
	}
	return caller{name: claims.Subject, roles: rolesOf(claims), token: claims.ID, since: claims.Issued, until: claims.Expires}, nil
}

// rolesOf are the roles in a token, in the order of their weight.
func rolesOf(claims *token.Claims) (roles []string) {
	for _, s := range claims.Roles() {
		if s == mayRead || s == maySubmit || s == mayApprove || s == mayAdmin || strings.HasPrefix(s, agentOf) {
			roles = append(roles, s)
		}
	}
	return roles
}

// certified is who a certificate is of, which the handshake has verified.
func (c *Coordinator) certified(r *http.Request) caller {
	leaf := r.TLS.VerifiedChains[0][0]
	names := append([]string{leaf.Subject.String(), leaf.Subject.CommonName}, leaf.DNSNames...)
	names = append(names, leaf.EmailAddresses...)
	for _, u := range leaf.URIs {
		names = append(names, u.String())
	}
	who := caller{name: leaf.Subject.String()}
	for _, n := range names {
		if roles, ok := c.conf.Names[n]; ok && n != "" {
			return caller{name: n, roles: roles}
		}
	}
	return who
}

// roleIsOne tells whether a text is a role that can be given.
func roleIsOne(role string) error {
	if slices.Contains([]string{mayRead, maySubmit, mayApprove, mayAdmin}, role) {
		return nil
	}
	if site, ok := strings.CutPrefix(role, agentOf); ok && catalog.CheckSite(site) == nil {
		return nil
	}
	return fmt.Errorf("%q is no role: there are %s, %s, %s, %s and %sSITE", role, mayRead, maySubmit, mayApprove, mayAdmin, agentOf)
}
