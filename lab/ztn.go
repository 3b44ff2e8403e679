package lab

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"path/filepath"
	"strings"
	"time"
)

//go:embed scitokens.cfg
var scitokensConf string

const (
	tokenIssuer   = "https://weir.test/lab"
	tokenAudience = "https://wlcg.cern.ch/jwt/v1/any"
	tokenKey      = "weir-lab"
	// tokenScope is everything below /data.
	tokenScope = "storage.read:/ storage.modify:/ storage.create:/ storage.stage:/"
)

// An issuer signs tokens.
type issuer struct{ key *rsa.PrivateKey }

// ztn makes an issuer of tokens whose key the servers know already: they need no request.
func (s *System) ztn(ctx context.Context, c XRootDConfig, v *xrootdValues) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		s.fail(err)
		return
	}
	s.issuer, s.Issuer = &issuer{key}, tokenIssuer
	s.TokenFile, err = s.TokenFor(month, "")
	s.fail(err)
	path := s.config("scitokens.cfg", scitokensConf, map[string]string{"Audience": tokenAudience, "Issuer": tokenIssuer, "User": s.User,
		"Other": c.Issuer})
	s.keyCache(ctx, c)
	v.Protocol = "ztn"
	v.Security = "xrootd.tls capable all\nsec.protocol ztn\nofs.authorize 1\nofs.authlib libXrdAccSciTokens.so config=" + path
	s.Env = append(s.Env, "BEARER_TOKEN_FILE="+s.TokenFile)
	s.env = append(s.env, "X509_CERT_DIR="+s.CADir) // of copies that the server makes
	s.set("method", "token")
	s.set("token_file", s.TokenFile)
}

// keyCache writes the issuer's public key where the servers' token library keeps the keys it has fetched.
func (s *System) keyCache(ctx context.Context, c XRootDConfig) {
	keys, err := keySet(map[string]crypto.Signer{tokenKey: s.issuer.key})
	s.fail(err)
	rows := s.keyRow(tokenIssuer, keys)
	if c.Issuer != "" {
		rows += ", " + s.keyRow(c.Issuer, c.Keys)
	}
	dir := s.newDir("cache/scitokens")
	s.env = append(s.env, "XDG_CACHE_HOME="+filepath.Dir(dir))
	s.tool(ctx, s.user, nil, s.program(c.Config, "sqlite3"), "-batch", filepath.Join(dir, "scitokens_cpp.sqllite"),
		"CREATE TABLE keycache (issuer text UNIQUE PRIMARY KEY NOT NULL, keys text NOT NULL);"+
			"INSERT INTO keycache VALUES "+rows+";")
}

// keyRow is what the library keeps of an issuer.
func (s *System) keyRow(issuer string, keys json.RawMessage) string {
	now := time.Now().Unix()
	entry, err := json.Marshal(map[string]any{
		"expires": now + int64(12*month/time.Second), "next_update": now + int64(11*month/time.Second), "jwks": keys})
	s.fail(err)
	quote := func(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
	return "(" + quote(issuer) + ", " + quote(string(entry)) + ")"
}

// keySet is the JSON Web Key Set of keys by name (RFC 7517), which are RSA or ECDSA on P-256.
func keySet(keys map[string]crypto.Signer) (json.RawMessage, error) {
	all := []map[string]string{}
	for id, key := range keys {
		one := map[string]string{"use": "sig", "kid": id, "alg": algorithm(key)}
		switch public := key.Public().(type) {
		case *rsa.PublicKey:
			one["kty"], one["n"], one["e"] = "RSA", b64(public.N.Bytes()), b64(big.NewInt(int64(public.E)).Bytes())
		case *ecdsa.PublicKey:
			point, err := public.Bytes() // 4, x, y
			if err != nil {
				return nil, err
			}
			one["kty"], one["crv"], one["x"], one["y"] = "EC", "P-256", b64(point[1:33]), b64(point[33:])
		}
		all = append(all, one)
	}
	return json.Marshal(map[string]any{"keys": all})
}

// algorithm returns the algorithm of a key's signatures (RFC 7518).
func algorithm(key crypto.Signer) string {
	if _, is := key.(*ecdsa.PrivateKey); is {
		return "ES256"
	}
	return "RS256"
}

// sign signs the SHA-256 of a text, as a JSON Web Signature has it.
func sign(key crypto.Signer, sum []byte) ([]byte, error) {
	private, is := key.(*ecdsa.PrivateKey)
	if !is {
		return key.Sign(rand.Reader, sum, crypto.SHA256)
	}
	r, s, err := ecdsa.Sign(rand.Reader, private, sum)
	if err != nil {
		return nil, err
	}
	both := make([]byte, 64)
	r.FillBytes(both[:32])
	s.FillBytes(both[32:])
	return both, nil
}

// signToken makes a JSON Web Token (RFC 7519) of claims.
func signToken(key crypto.Signer, id string, claims map[string]any) (string, error) {
	head, err := json.Marshal(map[string]string{"typ": "JWT", "alg": algorithm(key), "kid": id})
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	text := b64(head) + "." + b64(body)
	sum := sha256.Sum256([]byte(text))
	signature, err := sign(key, sum[:])
	if err != nil {
		return "", err
	}
	return text + "." + b64(signature), nil
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func unb64(text string) ([]byte, error) { return base64.RawURLEncoding.DecodeString(text) }

// Token makes a WLCG token that is good for lifetime from now; none or less makes one that has expired. scope is as
// in "storage.read:/sub", with paths below /data; "" is everything.
func (s *System) Token(lifetime time.Duration, scope string) (string, error) {
	if s.issuer == nil {
		return "", errors.New("lab: only a system with ztn has tokens")
	}
	if scope == "" {
		scope = tokenScope
	}
	now := time.Now()
	from := now.Add(min(0, lifetime) - time.Minute).Unix()
	return signToken(s.issuer.key, tokenKey, map[string]any{
		"iss": tokenIssuer, "sub": s.User, "aud": tokenAudience, "wlcg.ver": "1.0", "scope": scope,
		"iat": from, "nbf": from, "exp": now.Add(lifetime).Unix(), "jti": rand.Text(),
	})
}

// TokenFor writes what Token makes into one more file and returns it.
func (s *System) TokenFor(lifetime time.Duration, scope string) (string, error) {
	token, err := s.Token(lifetime, scope)
	if err != nil {
		return "", err
	}
	return s.newClientFile("token", []byte(token+"\n"))
}

// BrokenToken is a good token with another's signature.
func (s *System) BrokenToken() (string, error) {
	token, err := s.Token(month, "")
	if err != nil {
		return "", err
	}
	other, err := s.Token(month, "")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s.%s", token[:strings.LastIndexByte(token, '.')], other[strings.LastIndexByte(other, '.')+1:]), nil
}
