package token

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

const (
	maxToken = 16 << 10         // largest accepted token in bytes
	leeway   = 30 * time.Second // by which clocks may differ
)

// algorithms returns the signature algorithms of the profile. Tokens signed with a shared secret,
// or not signed, are never accepted.
func algorithms() []jose.SignatureAlgorithm { return []jose.SignatureAlgorithm{jose.ES256, jose.RS256} }

// A Trust is an issuer whose tokens count.
type Trust struct {
	Issuer string // its name in its tokens, character by character
	Keys   []byte // its JSON Web Key Set; nil: fetched from the issuer, which is an https URL then
	Base   string // the folder that its paths begin at; "" is the top
	Roles  bool   // it may give roles of weir (scopes that begin with "weir.")

	Audience []string // names of the service in the issuer's tokens, besides Options.Audience
	Any      bool     // its tokens may have no wlcg.ver: they are of another profile
}

// Options configure NewChecker. The zero value trusts no issuer.
type Options struct {
	Trust    []Trust
	Audience []string         // names of the service; tokens for Any are accepted as well
	Now      func() time.Time // nil is time.Now
	Client   *http.Client     // fetches keys; nil is one of its own. Redirects are never followed
}

// A Checker checks tokens. Its methods may be called by several goroutines.
type Checker struct {
	o       Options
	client  *http.Client
	mu      sync.RWMutex
	issuers map[string]*keyring
	known   known
}

// NewChecker returns a Checker. It sends no request to an issuer before Check gets a token of that
// issuer.
func NewChecker(o Options) (*Checker, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Checker{o: o, issuers: map[string]*keyring{}, client: plainClient(o.Client)}
	for _, t := range o.Trust {
		if err := c.Add(t); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Add trusts an issuer from now on. It replaces an earlier Trust of the same issuer.
func (c *Checker) Add(t Trust) error {
	k := &keyring{trust: t, client: c.client, now: c.o.Now}
	if _, _, err := components("/"+strings.Trim(t.Base, "/"), false); err != nil {
		return fmt.Errorf("issuer %s: its folder %q %w", t.Issuer, t.Base, err)
	}
	if t.Keys != nil {
		set, err := readKeys(t.Keys)
		if err != nil {
			return fmt.Errorf("issuer %s: %w", t.Issuer, err)
		}
		k.keys = set
	} else if u, err := url.Parse(t.Issuer); err != nil || u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" ||
		u.User != nil {
		return fmt.Errorf("issuer %q: name it as https://HOST/..., as its tokens have it", t.Issuer)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.issuers[t.Issuer] = k
	c.known.forget()
	return nil
}

// A reading is the claims of a token as they are read. Times are numbers of any size, which are
// checked before they are used.
type reading struct {
	Issuer    string       `json:"iss"`
	Subject   string       `json:"sub"`
	Audience  jwt.Audience `json:"aud"`
	Expires   *float64     `json:"exp"`
	NotBefore *float64     `json:"nbf"`
	Issued    *float64     `json:"iat"`
	ID        string       `json:"jti"`
	Scope     string       `json:"scope"`
	Version   string       `json:"wlcg.ver"`
	Size      *int64       `json:"weir.size"`
	Groups    []string     `json:"wlcg.groups"`
}

// Check returns the claims of a token if it is signed by a trusted issuer, meant for this service,
// and valid now. A withdrawn key is accepted for a minute more. The result is shared and must not
// be changed. Errors are ErrInvalid, or ErrKeys if the keys could not be fetched: then the same
// token may be valid in a moment.
func (c *Checker) Check(ctx context.Context, raw string) (*Claims, error) {
	if len(raw) > maxToken {
		return nil, invalid("it has %d bytes: at most %d are read", len(raw), maxToken)
	}
	if claims := c.known.get(raw, c.o.Now()); claims != nil {
		return claims, nil
	}
	var said reading
	k, err := c.open(ctx, raw, &said)
	if err != nil {
		return nil, err
	}
	claims, err := c.accept(said, k.trust)
	if err == nil {
		c.remember(raw, claims, k)
	}
	return claims, err
}

// open verifies the signature of a token, and reads its claims.
func (c *Checker) open(ctx context.Context, raw string, said any) (*keyring, error) {
	t, err := jwt.ParseSigned(raw, algorithms())
	if err != nil {
		return nil, invalid("it is no JSON Web Token that is signed with ES256 or RS256")
	}
	head := t.Headers[0]
	if _, ok := head.ExtraHeaders["crit"]; ok {
		return nil, invalid("it has a critical header that is not known here")
	}
	var claimed reading // until the signature is checked it only selects the key
	if err := t.UnsafeClaimsWithoutVerification(&claimed); err != nil {
		return nil, invalid("its claims cannot be read: something has the wrong type, or is said twice")
	}
	c.mu.RLock()
	k := c.issuers[claimed.Issuer]
	c.mu.RUnlock()
	if k == nil {
		return nil, invalid("its issuer %s is not trusted here", shown(claimed.Issuer))
	}
	key, err := k.find(ctx, head.KeyID, head.Algorithm)
	if err != nil {
		return nil, err
	}
	if err := t.Claims(key.Key, said); err != nil {
		return nil, invalid("its signature is not that of %s", shown(claimed.Issuer))
	}
	return k, nil
}

// remember caches the claims of raw, unless its issuer was replaced meanwhile.
func (c *Checker) remember(raw string, claims *Claims, by *keyring) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.issuers[claims.Issuer] == by {
		c.known.put(raw, claims, c.o.Now())
	}
}

// accept checks claims whose signature is valid.
func (c *Checker) accept(r reading, t Trust) (*Claims, error) {
	expires, err := c.times(&r)
	if err != nil {
		return nil, err
	}
	if major, _, ok := strings.Cut(r.Version, "."); (!ok || major != "1") && (r.Version != "" || !t.Any) {
		return nil, invalid("it is not of version 1 of the WLCG profile (wlcg.ver)")
	}
	if r.Subject == "" {
		return nil, invalid("it does not say whose it is (sub)")
	}
	if !slices.ContainsFunc(r.Audience, func(a string) bool {
		return a == Any || slices.Contains(c.o.Audience, a) || slices.Contains(t.Audience, a)
	}) {
		return nil, invalid("it is meant for another service (aud)")
	}
	if r.Size != nil && *r.Size < 0 {
		return nil, invalid("the claim weir.size is not a number of bytes")
	}
	scopes, words, err := readScopes(r.Scope)
	if err != nil {
		return nil, invalid("%v", err)
	}
	issued, _ := moment(r.Issued)
	return &Claims{Issuer: r.Issuer, Subject: r.Subject, ID: r.ID, Audience: r.Audience, Issued: issued, Expires: expires,
		scopes: scopes, words: words, base: t.Base, roles: t.Roles, size: r.Size, Groups: r.Groups}, nil
}

// times returns the end of a token's validity, which must include the present.
func (c *Checker) times(r *reading) (expires time.Time, err error) {
	now := c.o.Now()
	expires, ok := moment(r.Expires)
	if !ok {
		return expires, invalid("it does not say until when it is good")
	}
	if !now.Before(expires.Add(leeway)) {
		return expires, invalid("it expired at %s", expires.UTC().Format(time.RFC3339))
	}
	if begin, ok := moment(r.NotBefore); r.NotBefore != nil && (!ok || now.Add(leeway).Before(begin)) {
		return expires, invalid("it is not good yet: do the clocks agree?")
	}
	return expires, nil
}

// moment reads seconds since 1970, up to the year 9999.
func moment(n *float64) (time.Time, bool) {
	if n == nil || !(*n > 0 && *n < 253402300800) {
		return time.Time{}, false
	}
	return time.Unix(int64(*n), 0), true
}

func invalid(format string, a ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, a...))
}

// shown returns a name from outside, quoted and shortened.
func shown(name string) string {
	if len(name) > 100 {
		name = name[:100] + "..."
	}
	return strconv.Quote(name)
}

// known caches the claims of valid tokens for a short time: a client sends one token with each of
// many requests, and checking a signature takes as long as serving a small file.
type known struct {
	mu     sync.Mutex
	tokens map[[sha256.Size]byte]remembered // by digest: the tokens themselves are nowhere kept
}

type remembered struct {
	claims *Claims
	until  time.Time
}

const (
	maxKnown   = 4096
	rememberIn = time.Minute // after which the token's key is checked again
)

func (k *known) get(raw string, now time.Time) *Claims {
	k.mu.Lock()
	defer k.mu.Unlock()
	r, ok := k.tokens[sha256.Sum256([]byte(raw))]
	if !ok || !now.Before(r.until) || r.until.Sub(now) > rememberIn { // the clock may have been set back
		return nil
	}
	return r.claims
}

func (k *known) put(raw string, c *Claims, now time.Time) {
	until := now.Add(rememberIn)
	if end := c.Expires.Add(leeway); end.Before(until) {
		until = end
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.tokens) >= maxKnown || k.tokens == nil {
		k.tokens = map[[sha256.Size]byte]remembered{}
	}
	k.tokens[sha256.Sum256([]byte(raw))] = remembered{c, until}
}

func (k *known) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tokens = nil
}
