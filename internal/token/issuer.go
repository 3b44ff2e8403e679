package token

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// An Issuer makes tokens. Its methods may be called by several goroutines.
type Issuer struct {
	url    string
	now    func() time.Time
	signer jose.Signer
	public jose.JSONWebKey
}

// Keep returns an issuer that signs with the key in file: ECDSA on P-256, in PEM, readable by this
// user alone. A missing key is made. Without that file all tokens of the issuer are void. url is
// the name of the issuer in its tokens; https, so that others can fetch its keys from there. now
// nil is time.Now.
func Keep(file, url string, now func() time.Time) (*Issuer, error) {
	key, err := keepKey(file)
	if err != nil {
		return nil, fmt.Errorf("the key of the issuer %s: %w", file, err)
	}
	i := &Issuer{url: strings.TrimSuffix(url, "/"), now: now}
	if i.now == nil {
		i.now = time.Now
	}
	i.public = jose.JSONWebKey{Key: key.Public(), Algorithm: string(jose.ES256), Use: "sig"}
	sum, err := i.public.Thumbprint(crypto.SHA256)
	if err != nil {
		return nil, err
	}
	i.public.KeyID = base64.RawURLEncoding.EncodeToString(sum)[:16]
	private := i.public
	private.Key = key
	i.signer, err = jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: private}, new(jose.SignerOptions).WithType("JWT"))
	if err != nil {
		return nil, err
	}
	return i, nil
}

func keepKey(file string) (*ecdsa.PrivateKey, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return makeKey(file)
	}
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("other users can read it (mode %04o): remove it to create a new one, or set its mode to 0600 if "+
			"it is still secret", info.Mode().Perm())
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("it is not in PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("it is no key of ECDSA on P-256")
	}
	return key, nil
}

func makeKey(file string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".key-*") // mode 0600
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(f.Name()) }() // it has its name by then
	err = pem.Encode(f, &pem.Block{Type: "PRIVATE KEY", Bytes: der})
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Link(f.Name(), file) // never replaces a key that another process made meanwhile
	}
	if errors.Is(err, fs.ErrExist) {
		return keepKey(file)
	}
	return key, err
}

// URL returns the name of the issuer in its tokens.
func (i *Issuer) URL() string { return i.url }

// A Grant describes a token to issue.
type Grant struct {
	Subject  string        // who gets it
	Audience []string      // who is to accept it: URLs of services, names of sites, or Any
	Scopes   []string      // such as the results of Path, or weir.read
	Life     time.Duration // from now on
	Early    time.Duration // before now in which it is good as well: for clocks that are put right
	ID       string        // a unique name; "": one is made
	Size     *int64        // most bytes that may be stored with it, see Claims.Most; nil: no such claim
}

// A payload is the claims of a token as they are written.
type payload struct {
	jwt.Claims
	Scope   string `json:"scope"`
	Version string `json:"wlcg.ver"`
	Size    *int64 `json:"weir.size,omitempty"`
}

// NewID returns a name for a token that no other one has: 26 letters and digits.
func NewID() string { return strings.ToLower(rand.Text()) }

// Mint makes a token. It fails if the Grant could not be checked afterwards: no
// audience, no time to live, scopes that are wrong.
func (i *Issuer) Mint(g Grant) (string, error) {
	text := strings.Join(g.Scopes, " ")
	_, _, err := readScopes(text)
	switch {
	case err != nil:
		return "", fmt.Errorf("the token cannot be made: %w", err)
	case g.Size != nil && *g.Size < 0:
		return "", fmt.Errorf("the token cannot be made: %d bytes are none that could be stored", *g.Size)
	case g.Subject == "" || len(g.Audience) == 0 || g.Life <= 0:
		return "", errors.New("the token cannot be made: it needs a subject, an audience and a time to live")
	}
	if g.ID == "" {
		g.ID = NewID()
	}
	now := i.now()
	p := payload{Scope: text, Version: "1.0", Size: g.Size, Claims: jwt.Claims{
		Issuer: i.url, Subject: g.Subject, Audience: g.Audience, ID: g.ID,
		IssuedAt: jwt.NewNumericDate(now), NotBefore: jwt.NewNumericDate(now.Add(-g.Early)), Expiry: jwt.NewNumericDate(now.Add(g.Life)),
	}}
	t, err := jwt.Signed(i.signer).Claims(p).Serialize()
	if err != nil {
		return "", err
	}
	return t, nil
}

// Keys returns the issuer's public key as a JSON Web Key Set (RFC 7517).
func (i *Issuer) Keys() []byte {
	b, _ := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{i.public}}) // cannot fail
	return b
}

// Trust returns the configuration with which a Checker checks this issuer's tokens without any
// request. They may have roles.
func (i *Issuer) Trust() Trust { return Trust{Issuer: i.url, Keys: i.Keys(), Roles: true} }

// Paths of the documents, below the issuer's URL, from which others learn its keys.
const (
	ConfigurationPath = "/.well-known/openid-configuration" // OpenID Connect Discovery 1.0, section 4
	KeysPath          = "/.well-known/jwks.json"
)

// ServeHTTP serves GET requests for the two documents, with any prefix before their paths. They are
// public.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body []byte
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "only GET is known here", http.StatusMethodNotAllowed)
		return
	case strings.HasSuffix(r.URL.Path, ConfigurationPath):
		body, _ = json.Marshal(configuration{Issuer: i.url, Keys: i.url + KeysPath}) // cannot fail
	case strings.HasSuffix(r.URL.Path, KeysPath):
		body = i.Keys()
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "public, max-age=600")
	_, _ = w.Write(body) // a client that has disconnected repeats the request
}

type configuration struct {
	Issuer string `json:"issuer"`
	Keys   string `json:"jwks_uri"`
	Tokens string `json:"token_endpoint,omitempty"`
}
