package token

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"

	"weir/internal/say"
)

// A Bearer has the claims of a token for another service.
type Bearer struct {
	Issuer   string
	Scope    string
	Audience []string
	Issued   time.Time // zero if the token does not contain it
	Expires  time.Time
	// Rights is a digest of all claims except the token's times and its id: two tokens with the
	// same Rights give the same rights.
	Rights string
}

// Inspect returns the claims of a token of a trusted issuer that is valid now, but for another
// service: its audience and its scopes are not checked. It returns the same errors as Check.
func (c *Checker) Inspect(ctx context.Context, raw string) (*Bearer, error) {
	if len(raw) > maxToken {
		return nil, invalid("it has %d bytes: at most %d are read", len(raw), maxToken)
	}
	var all map[string]json.RawMessage
	if _, err := c.open(ctx, raw, &all); err != nil {
		return nil, err
	}
	var r reading
	text, err := json.Marshal(all)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return nil, invalid("its claims cannot be read: something has the wrong type")
	}
	b := &Bearer{Issuer: r.Issuer, Scope: r.Scope, Audience: r.Audience}
	if b.Expires, err = c.times(&r); err != nil {
		return nil, err
	}
	b.Issued, _ = moment(r.Issued)
	for _, name := range []string{"exp", "iat", "nbf", "jti", "auth_time", "sid", "session_state"} {
		delete(all, name)
	}
	text, err = json.Marshal(all) // in the order of the names
	sum := sha256.Sum256(text)
	b.Rights = hex.EncodeToString(sum[:])
	return b, err
}

// IssuerOf returns the issuer that a token claims to be of, without any check; "" if it is not a
// JSON Web Token.
func IssuerOf(raw string) string {
	if len(raw) > maxToken {
		return ""
	}
	t, err := jwt.ParseSigned(raw, algorithms())
	var claimed reading
	if err != nil || t.UnsafeClaimsWithoutVerification(&claimed) != nil {
		return ""
	}
	return claimed.Issuer
}

// ExpiryOf returns the time at which a token expires, as it claims, without any check; zero if it
// is not a JSON Web Token, or does not expire.
func ExpiryOf(raw string) time.Time {
	if len(raw) > maxToken {
		return time.Time{}
	}
	_, until := Times(raw)
	return until
}

// Times returns the times from and until which a JSON Web Token claims to be valid, without any
// check. A missing time is zero, and the two times of any other text are zero.
func Times(raw string) (from, until time.Time) {
	parts := strings.Split(raw, ".")
	if len(parts) != 3 {
		return
	}
	body, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	var claims struct{ Exp, Nbf float64 }
	if err != nil || json.Unmarshal(body, &claims) != nil {
		return
	}
	return claimed(claims.Nbf), claimed(claims.Exp)
}

// claimed returns a claim as a time if it is in a plausible range.
func claimed(seconds float64) time.Time {
	if !(seconds > 0 && seconds < 1<<40) {
		return time.Time{}
	}
	return time.Unix(int64(seconds), 0)
}

// A Client is a client that is registered with an issuer. It renews tokens there. Its methods may be called by several goroutines.
type Client struct {
	Issuer, ID, Secret string
	HTTP               *http.Client // nil is one of its own. Redirects are never followed

	mu         sync.Mutex
	endpoint   string
	discovered time.Time
	way        int // in which the issuer exchanges a token for a refresh token
}

// A Renewed token is the answer of an issuer.
type Renewed struct {
	Access  string
	Refresh string // empty if there is no refresh token, or if the old token stays valid
	Expires time.Time
	Until   time.Time // end of the refresh token; zero if the issuer does not report it
	Plain   bool      // the issuer refused to exchange the token for a refresh token
}

// A ClientError is an answer of an issuer that refuses a request.
type ClientError struct {
	Status int
	Code   string // of RFC 6749, section 5.2, such as invalid_grant; may be ""
	Text   string // the issuer's message, without secrets
}

// Error implements error.
func (e *ClientError) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("the issuer refuses (%d %s): %s", e.Status, cmp.Or(e.Code, http.StatusText(e.Status)), e.Text), ": ")
}

// Final reports whether the same request would be refused again: the issuer processed it.
func (e *ClientError) Final() bool {
	return e.Status >= 400 && e.Status < 500 && e.Status != http.StatusRequestTimeout && e.Status != http.StatusTooManyRequests
}

const (
	offline     = "offline_access"
	accessType  = "urn:ietf:params:oauth:token-type:access_token"
	refreshType = "urn:ietf:params:oauth:token-type:refresh_token"
)

// Exchange exchanges a token that has not expired for one with the same scope and audience, and for
// a refresh token if the issuer gives one (RFC 8693). It first sends the request that FTS3 sends,
// which INDIGO IAM expects; if the issuer refuses it, Exchange sends the request that Keycloak
// expects, and at last a request for an access token only. With plain, Exchange sends only the last
// of these requests.
func (c *Client) Exchange(ctx context.Context, raw, scope string, audience []string, plain bool) (got Renewed, err error) {
	c.mu.Lock()
	way := c.way
	c.mu.Unlock()
	withOffline := scope
	if !slices.Contains(strings.Fields(scope), offline) {
		withOffline = strings.TrimSpace(scope + " " + offline)
	}
	ways := []url.Values{
		{"requested_token_type": {refreshType}, "scope": {withOffline}, "audience": {strings.Join(audience, " ")}},
		{"requested_token_type": {refreshType}, "scope": {scope}},
		{"requested_token_type": {accessType}, "scope": {scope}},
	}
	last := len(ways) - 1
	if plain {
		way = last
	}
	for ; way <= last; way++ {
		form := ways[way]
		form.Set("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange")
		form.Set("subject_token", raw)
		form.Set("subject_token_type", accessType)
		got, err = c.ask(ctx, form)
		var e *ClientError
		if err == nil {
			if got.Plain = way == last; !got.Plain { // that depends on the token: Keycloak gives clients no refresh tokens
				c.mu.Lock()
				c.way = way
				c.mu.Unlock()
			}
			return got, nil
		} else if !errors.As(err, &e) || !e.Final() || e.Code == "invalid_grant" {
			break
		}
	}
	return got, err
}

// Refresh returns a token for a refresh token, with the given scope and audience (RFC 6749, section 6).
func (c *Client) Refresh(ctx context.Context, refresh, scope string, audience []string) (Renewed, error) {
	return c.ask(ctx, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}, "scope": {scope},
		"audience": {strings.Join(audience, " ")}})
}

// A tokenAnswer is the response of a token endpoint (RFC 6749, section 5).
type tokenAnswer struct {
	Access  string  `json:"access_token"`
	Refresh string  `json:"refresh_token"`
	Life    float64 `json:"expires_in"`
	Until   float64 `json:"refresh_expires_in"` // of Keycloak; 0: it does not expire
	Code    string  `json:"error"`
	Text    string  `json:"error_description"`
}

// ask sends a request to the token endpoint.
func (c *Client) ask(ctx context.Context, form url.Values) (got Renewed, err error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	client := plainClient(c.HTTP)
	endpoint, err := c.find(ctx, client)
	if err != nil {
		return got, err
	}
	maps.DeleteFunc(form, func(_ string, v []string) bool { return v[0] == "" })
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return got, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	req.SetBasicAuth(url.QueryEscape(c.ID), url.QueryEscape(c.Secret)) // RFC 6749, section 2.3.1
	asked := time.Now()
	res, err := client.Do(req)
	if err != nil {
		return got, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxDocument))
	if err != nil {
		return got, err
	}
	var answer tokenAnswer
	wrong := json.Unmarshal(text, &answer)
	if res.StatusCode != http.StatusOK {
		return got, c.refused(res.StatusCode, &answer, form)
	}
	got = Renewed{Access: answer.Access, Refresh: answer.Refresh}
	if answer.Until > 0 && answer.Until < 1e9 {
		got.Until = asked.Add(time.Duration(answer.Until * float64(time.Second)))
	}
	if got.Access == got.Refresh { // an issuer that has issued only the requested token
		got.Access = ""
	}
	switch {
	case wrong != nil, got.Access == "" && got.Refresh == "":
		return got, fmt.Errorf("%s answers without a token", endpoint)
	case !isToken(got.Access) || !isToken(got.Refresh):
		return got, fmt.Errorf("%s answers with something else than a token", endpoint)
	case got.Access == "":
		return got, nil
	}
	if got.Expires = answer.expires(asked); got.Expires.IsZero() {
		return got, fmt.Errorf("%s does not say how long the token is good", endpoint)
	}
	return got, nil
}

// refused returns the error of a refused request. Issuers write tokens into their reasons.
func (c *Client) refused(status int, answer *tokenAnswer, form url.Values) error {
	why := answer.Text
	for _, secret := range []string{form.Get("subject_token"), form.Get("refresh_token"), c.Secret} {
		if secret != "" {
			why = strings.ReplaceAll(why, secret, "...")
		}
	}
	return &ClientError{Status: status, Code: fmt.Sprintf("%.200s", say.Plain(answer.Code)), Text: fmt.Sprintf("%.200s", say.Plain(why))}
}

// expires returns when the token expires: the earlier of the time in the response and the time in
// the token.
func (a *tokenAnswer) expires(asked time.Time) (at time.Time) {
	if a.Life > 0 && a.Life < 1e9 {
		at = asked.Add(time.Duration(a.Life * float64(time.Second)))
	}
	var said reading
	if t, err := jwt.ParseSigned(a.Access, algorithms()); err == nil && t.UnsafeClaimsWithoutVerification(&said) == nil {
		if end, ok := moment(said.Expires); ok && (at.IsZero() || end.Before(at)) {
			at = end
		}
	}
	return at
}

// isToken reports whether a text can be sent in a header.
func isToken(text string) bool {
	return len(text) <= maxToken && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// find returns the token endpoint, which is looked up once in an hour.
func (c *Client) find(ctx context.Context, client *http.Client) (string, error) {
	c.mu.Lock()
	known, at := c.endpoint, c.discovered
	c.mu.Unlock()
	if known != "" && time.Since(at) < fresh {
		return known, nil
	}
	conf, err := discover(ctx, client, c.Issuer)
	if err == nil && !isHTTPS(conf.Tokens) {
		err = fmt.Errorf("the configuration of %s has no https address in token_endpoint", c.Issuer)
	}
	if err != nil {
		if known != "" {
			return known, nil
		}
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endpoint, c.discovered = conf.Tokens, time.Now()
	return conf.Tokens, nil
}
