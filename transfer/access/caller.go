package access

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"weir/internal/wire"
	"weir/transfer"
	"weir/transfer/catalog"
	"weir/transfer/fts"
)

// defaultVO is the virtual organization of users if no other is configured.
const defaultVO = "weir"

// The roles, which are scopes of the coordinator's tokens.
const (
	MayRead    = "weir.read"    // see everything but secrets
	MaySubmit  = "weir.submit"  // submit requests, cancel and retry one's own
	MayApprove = "weir.approve" // approve, reject, cancel and retry requests
	MayAdmin   = "weir.admin"   // everything, also sites, datasets and tokens
	AgentOf    = "weir.agent:"  // followed by a site: be its agent
)

// A Caller is an authenticated user or agent.
type Caller struct {
	Name  string
	Roles []string
	Token string // its id; "" of a certificate
	Since time.Time
	Until time.Time

	External   bool     // the token is of an external issuer
	DN         string   // as FTS names the user; "" is name
	VOs        []string // virtual organizations; nil: the configured organization
	Scopes     []string // of the token of an external issuer, or attributes of VOMS
	Credential string   // id of the credentials, as FTS makes it; "": of the name

	Certificate *Presented // nil: a token
}

type callerKey struct{}

// WithCaller returns a context with a caller.
func WithCaller(ctx context.Context, w Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, w)
}

// CallerOf returns the caller of a context, or the zero Caller if the context has no caller.
func CallerOf(ctx context.Context) Caller {
	who, _ := ctx.Value(callerKey{}).(Caller)
	return who
}

// Has reports whether the caller has a role, or a role that includes it.
func (w Caller) Has(role string) bool {
	if slices.Contains(w.Roles, role) || slices.Contains(w.Roles, MayAdmin) {
		return true
	}
	return role == MayRead && (slices.Contains(w.Roles, MaySubmit) || slices.Contains(w.Roles, MayApprove))
}

// Need returns an error if the caller does not have a role.
func (w Caller) Need(role string) error {
	if w.Has(role) {
		return nil
	}
	return wire.Refuse(http.StatusForbidden, "this requires the role %s; %s has %s", transfer.RoleNames(role), w.Name,
		cmp.Or(transfer.RoleNames(w.Roles...), "no role"))
}

// NeedAgent returns an error if the caller is not the agent of a site.
func (w Caller) NeedAgent(site string) error {
	if err := catalog.CheckSite(site); err != nil {
		return wire.Refuse(http.StatusBadRequest, "%s", err.Error())
	}
	return w.Need(AgentOf + site)
}

// TokenHolder returns the holder of a token.
func (c *Control) TokenHolder(ctx context.Context, raw string) (Caller, error) {
	claims, err := c.readToken(ctx, raw)
	if err != nil {
		return Caller{}, err
	}
	if i := c.issuers[claims.Issuer]; i != nil {
		return c.externalHolder(i, claims)
	}
	if c.revoked.has(claims.ID) {
		return Caller{}, ErrRevoked(claims.ID)
	}
	roles := slices.DeleteFunc(claims.Roles(), func(s string) bool { return CheckRole(s) != nil })
	return Caller{Name: claims.Subject, Roles: roles, Token: claims.ID, Since: claims.Issued, Until: claims.Expires}, nil
}

// User returns the caller's name for FTS's clients.
func (w Caller) User() string { return cmp.Or(w.DN, w.Name) }

// DelegationID returns the id of a caller's credentials.
func (w Caller) DelegationID() string { return cmp.Or(w.Credential, fts.DelegationID(w.Name)) }

// VOsOf returns the virtual organizations of a caller, at least one.
func (c *Control) VOsOf(w Caller) []string {
	if len(w.VOs) > 0 {
		return w.VOs
	}
	return []string{cmp.Or(c.conf.VO, defaultVO)}
}

// CheckRole returns an error if a text is not a role.
func CheckRole(role string) error {
	if slices.Contains([]string{MayRead, MaySubmit, MayApprove, MayAdmin}, role) {
		return nil
	}
	if site, ok := strings.CutPrefix(role, AgentOf); ok && catalog.CheckSite(site) == nil {
		return nil
	}
	return fmt.Errorf("unknown role %q: use %s", transfer.RoleNames(role),
		transfer.RoleNames(MayRead, MaySubmit, MayApprove, MayAdmin, AgentOf+"SITE"))
}
