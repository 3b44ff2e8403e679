package access

import (
	"context"
	"crypto/sha1" // FTS3 defines ids of credentials by it
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"weir/internal/token"
	"weir/internal/wire"
)

// An Issuer is an issuer of tokens (WLCG profile) that the coordinator trusts.
type Issuer struct {
	URL          string              // as its tokens have it; its keys are fetched from there
	Audience     []string            // of its tokens for this service, besides the coordinator's URL and that of the profile for any service
	VO           string              // virtual organization of its users; "": their groups, or the host of the URL
	Roles        map[string][]string // by scope, or by group, which begins with /; nil: see FTSScope
	ClientID     string              // for renewing tokens of jobs; "": they are used as they are
	ClientSecret string
}

// FTSScope is the scope that gives the role weir.submit if an issuer has no Roles.
const FTSScope = "fts:submit-transfer"

// Check returns an error if an issuer is not valid.
func (i *Issuer) Check() error {
	u, err := url.Parse(i.URL)
	switch {
	case err != nil || u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return fmt.Errorf("issuer %.200q: write it as https://HOST/..., as its tokens have it", i.URL)
	case (i.ClientID == "") != (i.ClientSecret == ""):
		return fmt.Errorf("issuer %s: a client needs an id and a secret", i.URL)
	}
	for from, roles := range i.Roles {
		if from == "" || strings.ContainsAny(from, " \t\r\n") {
			return fmt.Errorf("issuer %s: %q is no scope and no group", i.URL, from)
		}
		for _, role := range roles {
			if err := CheckRole(role); err != nil {
				return fmt.Errorf("issuer %s: %w", i.URL, err)
			}
		}
	}
	return nil
}

// openIssuers trusts the issuers of the configuration.
func (c *Control) openIssuers(secure *tls.Config) ([]token.Trust, *http.Client, error) {
	dial := &http.Transport{TLSClientConfig: secure, Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10,
		DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext}
	c.issuerHTTP = dial
	client := &http.Client{Transport: dial, Timeout: 15 * time.Second}
	c.issuers = map[string]*Issuer{}
	c.bearers = bearers{clients: map[string]*token.Client{}, kept: map[string]*bearer{}}
	var all []token.Trust
	for n := range c.conf.Issuers {
		i := &c.conf.Issuers[n]
		if err := i.Check(); err != nil {
			return nil, nil, err
		}
		if c.issuers[i.URL] != nil || i.URL == c.issuer.URL() {
			return nil, nil, fmt.Errorf("issuer %s is named twice", i.URL)
		}
		c.issuers[i.URL] = i
		all = append(all, token.Trust{Issuer: i.URL, Audience: i.Audience, Any: true})
		if i.ClientID != "" {
			c.bearers.clients[i.URL] = &token.Client{Issuer: i.URL, ID: i.ClientID, Secret: i.ClientSecret, HTTP: client}
		}
	}
	return all, client, nil
}

// externalHolder returns the holder of a token of an external issuer, as FTS3 names users.
func (c *Control) externalHolder(i *Issuer, claims *token.Claims) (Caller, error) {
	sub := claims.Subject
	if len(sub) > 255 || !utf8.ValidString(sub) || strings.ContainsFunc(sub, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return Caller{}, wire.Refuse(http.StatusUnauthorized, "the token is not valid: its subject is no name")
	}
	u, err := url.Parse(i.URL)
	if err != nil {
		return Caller{}, err
	}
	sum := sha1.Sum([]byte(i.URL + sub))
	who := Caller{
		Name: sub + "@" + u.Host + strings.TrimSuffix(u.Path, "/"), // unique among the users of all issuers
		DN:   sub, External: true, Scopes: claims.Words(), Credential: hex.EncodeToString(sum[:])[:16],
		Token: claims.ID, Since: claims.Issued, Until: claims.Expires,
	}
	roles := i.Roles
	if roles == nil {
		roles = map[string][]string{FTSScope: {MaySubmit}}
	}
	for _, one := range slices.Concat(who.Scopes, claims.Groups) {
		for _, role := range roles[one] {
			if !slices.Contains(who.Roles, role) {
				who.Roles = append(who.Roles, role)
			}
		}
	}
	switch {
	case i.VO != "":
		who.VOs = []string{i.VO}
	case len(claims.Groups) > 0:
		for _, g := range claims.Groups {
			if g = strings.TrimPrefix(g, "/"); g != "" && len(g) <= 255 && utf8.ValidString(g) && !slices.Contains(who.VOs, g) {
				who.VOs = append(who.VOs, g)
			}
		}
	}
	if len(who.VOs) == 0 {
		who.VOs = []string{u.Hostname()}
	}
	return who, nil
}

// readToken returns the claims of a token of a user or an agent. Errors are responses.
func (c *Control) readToken(ctx context.Context, raw string) (*token.Claims, error) {
	claims, err := c.checker.Check(ctx, raw)
	switch {
	case errors.Is(err, token.ErrKeys):
		return nil, &wire.Error{Status: http.StatusServiceUnavailable, Text: err.Error(), After: 5 * time.Second}
	case err != nil:
		return nil, wire.Refuse(http.StatusUnauthorized, "%s", err.Error())
	}
	return claims, nil
}
