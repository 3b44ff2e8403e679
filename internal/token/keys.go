package token

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	fetchTime   = 10 * time.Second // for both documents of an issuer
	maxDocument = 256 << 10        // bytes of one
	maxKeys     = 64
	fresh       = time.Hour       // after which keys are fetched again
	stale       = 24 * time.Hour  // for which old keys count if the issuer does not answer
	between     = 1 * time.Minute // two questions at least: tokens with invented keys must not make many
)

// A keyring has the keys of one issuer, given or fetched.
type keyring struct {
	trust  Trust
	client *http.Client
	now    func() time.Time
	asking sync.Mutex // held during a request to the issuer: others wait for the same answer
	asked  time.Time
	failed error // the error of the last request, if it failed

	mu      sync.Mutex
	keys    *jose.JSONWebKeySet
	fetched time.Time
}

// find returns the key called id that is for alg. Without an id there must be one
// such key only.
func (k *keyring) find(ctx context.Context, id, alg string) (jose.JSONWebKey, error) {
	keys, good := k.kept(id)
	if !good {
		var err error
		if keys, err = k.refresh(ctx, id); err != nil {
			return jose.JSONWebKey{}, err
		}
	}
	var fit []jose.JSONWebKey
	for _, key := range keys.Keys {
		if (id == "" || key.KeyID == id) && usable(key, alg) {
			fit = append(fit, key)
		}
	}
	if len(fit) != 1 {
		return jose.JSONWebKey{}, invalid("the issuer %s has no key of the name and kind that it is signed with", shown(k.trust.Issuer))
	}
	return fit[0], nil
}

// kept returns the keys; good: they are not old, and one is called id.
func (k *keyring) kept(id string) (keys *jose.JSONWebKeySet, good bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.trust.Keys != nil {
		return k.keys, true
	}
	return k.keys, k.keys != nil && k.now().Sub(k.fetched) <= fresh && (id == "" || len(k.keys.Key(id)) > 0)
}

// refresh requests the issuer's keys if they are old, or if no key is called id.
func (k *keyring) refresh(ctx context.Context, id string) (*jose.JSONWebKeySet, error) {
	k.asking.Lock()
	defer k.asking.Unlock()
	keys, good := k.kept(id)
	if good {
		return keys, nil
	}
	now := k.now()
	if k.asked.IsZero() || now.Sub(k.asked) >= between || now.Before(k.asked) {
		set, err := fetch(ctx, k.client, k.trust.Issuer)
		if ctx.Err() == nil { // otherwise the caller has gone, and the error does not concern the issuer
			k.asked, k.failed = now, err
		}
		if err == nil {
			k.mu.Lock()
			k.keys, k.fetched = set, now
			k.mu.Unlock()
			return set, nil
		} else if keys == nil {
			return nil, fmt.Errorf("%w: %w", ErrKeys, err)
		}
	}
	if keys == nil || now.Sub(k.fetched) > stale {
		return nil, fmt.Errorf("%w: %w", ErrKeys, k.failed)
	}
	return keys, nil
}

// fetch requests an issuer's keys. Their address is in its configuration.
func fetch(ctx context.Context, client *http.Client, issuer string) (*jose.JSONWebKeySet, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	conf, err := discover(ctx, client, issuer)
	if err != nil {
		return nil, err
	}
	if !isHTTPS(conf.Keys) {
		return nil, fmt.Errorf("the configuration of %s has no https address in jwks_uri", issuer)
	}
	text, err := get(ctx, client, conf.Keys)
	if err != nil {
		return nil, err
	}
	return readKeys(text)
}

// discover requests an issuer's configuration: OpenID Connect Discovery 1.0, section 4, or else RFC
// 8414, section 3.
func discover(ctx context.Context, client *http.Client, issuer string) (conf configuration, err error) {
	text, err := get(ctx, client, strings.TrimSuffix(issuer, "/")+ConfigurationPath)
	if errors.Is(err, errAbsent) {
		if u, wrong := url.Parse(issuer); wrong == nil {
			u.Path = "/.well-known/oauth-authorization-server" + strings.TrimSuffix(u.Path, "/")
			text, err = get(ctx, client, u.String())
		}
	}
	if err != nil {
		return conf, err
	}
	if err := json.Unmarshal(text, &conf); err != nil {
		return conf, fmt.Errorf("the configuration of %s is not in JSON", issuer)
	}
	if strings.TrimSuffix(conf.Issuer, "/") != strings.TrimSuffix(issuer, "/") {
		return conf, fmt.Errorf("the configuration of %s is that of %s", issuer, shown(conf.Issuer))
	}
	return conf, nil
}

func isHTTPS(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "https" && u.Host != ""
}

var errAbsent = errors.New("there is no such document")

func get(ctx context.Context, client *http.Client, address string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	switch res.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return nil, fmt.Errorf("%s answers %s: %w", address, res.Status, errAbsent)
	default:
		return nil, fmt.Errorf("%s answers %s", address, res.Status)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxDocument+1))
	if err == nil && len(text) > maxDocument {
		err = fmt.Errorf("%s has more than %d bytes", address, maxDocument)
	}
	return text, err
}

// plainClient returns a client that follows no redirects: an issuer must serve its own documents.
func plainClient(c *http.Client) *http.Client {
	own := http.Client{Timeout: fetchTime}
	if c != nil {
		own = *c
	}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// readKeys reads a key set. Keys that are of no use here are left out.
func readKeys(text []byte) (*jose.JSONWebKeySet, error) {
	var raw struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, errors.New("its keys are no JSON Web Key Set")
	}
	if len(raw.Keys) > maxKeys {
		return nil, fmt.Errorf("it has %d keys: at most %d are read", len(raw.Keys), maxKeys)
	}
	set := &jose.JSONWebKeySet{}
	for _, one := range raw.Keys {
		var key jose.JSONWebKey
		if key.UnmarshalJSON(one) == nil && (usable(key, string(jose.ES256)) || usable(key, string(jose.RS256))) {
			set.Keys = append(set.Keys, key)
		}
	}
	if len(set.Keys) == 0 {
		return nil, errors.New("it has no public key for ES256 or RS256")
	}
	return set, nil
}

// usable reports whether key is a public key that signatures of alg are checked with.
func usable(key jose.JSONWebKey, alg string) bool {
	if key.Use != "" && key.Use != "sig" || key.Algorithm != "" && key.Algorithm != alg || !key.Valid() {
		return false
	}
	switch k := key.Key.(type) {
	case *ecdsa.PublicKey:
		return alg == string(jose.ES256) && k.Curve == elliptic.P256()
	case *rsa.PublicKey:
		return alg == string(jose.RS256) && k.N.BitLen() >= 2048 && k.N.BitLen() <= 8192
	}
	return false
}
