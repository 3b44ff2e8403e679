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
	fresh       = time.Hour       // after which keys are asked for again
	stale       = 24 * time.Hour  // for which old keys count if the issuer does not answer
	between     = 1 * time.Minute // two questions at least: tokens with invented keys must not make many
)

// A keyring has the keys of one issuer, given or fetched.
type keyring struct {
	trust  Trust
	client *http.Client
	now    func() time.Time

	mu      sync.Mutex // held while asking: others wait for the same answer
	keys    *jose.JSONWebKeySet
	fetched time.Time
	asked   time.Time
	failed  error // what the last question came to
}

// find returns the key called id that is for alg. Without an id there must be one
// such key only.
func (k *keyring) find(ctx context.Context, id, alg string) (jose.JSONWebKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.trust.Keys == nil {
		if err := k.refresh(ctx, id); err != nil {
			return jose.JSONWebKey{}, err
		}
	}
	var fit []jose.JSONWebKey
	for _, key := range k.keys.Keys {
		if (id == "" || key.KeyID == id) && usable(key, alg) {
			fit = append(fit, key)
		}
	}
	if len(fit) != 1 {
		return jose.JSONWebKey{}, invalid("the issuer %s has no key of the name and kind that it is signed with", shown(k.trust.Issuer))
	}
	return fit[0], nil
}

// refresh asks the issuer if its keys are old, or none is called id.
func (k *keyring) refresh(ctx context.Context, id string) error {
	now := k.now()
	old := k.keys == nil || now.Sub(k.fetched) > fresh
	if !old && (id == "" || len(k.keys.Key(id)) > 0) {
		return nil
	}
	if k.asked.IsZero() || now.Sub(k.asked) >= between || now.Before(k.asked) {
		set, err := fetch(ctx, k.client, k.trust.Issuer)
		if ctx.Err() == nil { // else who asked went away, and it says nothing
			k.asked, k.failed = now, err
		}
		if err == nil {
			k.keys, k.fetched = set, now
		} else if k.keys == nil {
			return fmt.Errorf("%w: %w", ErrKeys, err)
		}
	}
	if k.keys == nil || now.Sub(k.fetched) > stale {
		return fmt.Errorf("%w: %w", ErrKeys, k.failed)
	}
	return nil
}

// fetch asks an issuer for its keys, by way of its configuration (OpenID Connect
// Discovery 1.0, section 4).
func fetch(ctx context.Context, client *http.Client, issuer string) (*jose.JSONWebKeySet, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	text, err := get(ctx, client, strings.TrimSuffix(issuer, "/")+ConfigurationPath)
	if err != nil {
		return nil, err
	}
	var conf configuration
	if err := json.Unmarshal(text, &conf); err != nil {
		return nil, fmt.Errorf("the configuration of %s is not in JSON", issuer)
	}
	if strings.TrimSuffix(conf.Issuer, "/") != strings.TrimSuffix(issuer, "/") {
		return nil, fmt.Errorf("the configuration of %s is that of %s", issuer, shown(conf.Issuer))
	}
	if u, err := url.Parse(conf.Keys); err != nil || u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("the configuration of %s has no https address in jwks_uri", issuer)
	}
	if text, err = get(ctx, client, conf.Keys); err != nil {
		return nil, err
	}
	return readKeys(text)
}

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
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", address, res.Status)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxDocument+1))
	if err == nil && len(text) > maxDocument {
		err = fmt.Errorf("%s has more than %d bytes", address, maxDocument)
	}
	return text, err
}

// plainClient returns a client that follows no redirects: an issuer is who it says.
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
