package lab

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

//go:embed scitokens.cfg
var scitokensConf string

const (
	tokenIssuer = "https://weir.test/lab"
	tokenKey    = "weir-lab"
	// tokenScope is everything below /data.
	tokenScope = "storage.read:/ storage.modify:/ storage.create:/ storage.stage:/"
)

// An issuer signs tokens.
type issuer struct{ key *rsa.PrivateKey }

// ztn makes an issuer of tokens whose key the servers have already: they need no request.
func (c XRootDConfig) ztn(ctx context.Context, s *System, v *xrootdValues) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		s.fail(err)
		return
	}
	s.issuer, s.Issuer = &issuer{key}, tokenIssuer
	s.TokenFile, err = s.TokenFor(month, "")
	s.fail(err)
	path := s.config("scitokens.cfg", scitokensConf, map[string]string{"Audience": TokenAudience, "Issuer": tokenIssuer, "User": s.User,
		"Other": c.Issuer})
	c.keyCache(ctx, s)
	v.Protocol = "ztn"
	v.Security = "xrootd.tls capable all\nsec.protocol ztn\nofs.authorize 1\nofs.authlib libXrdAccSciTokens.so config=" + path
	s.Env = append(s.Env, "BEARER_TOKEN_FILE="+s.TokenFile)
	s.env = append(s.env, "X509_CERT_DIR="+s.CADir) // of copies that the server makes
	s.set("method", "token")
	s.set("token_file", s.TokenFile)
}

// keyCache writes the issuer's public key where the servers' token library keeps the keys it has fetched.
func (c XRootDConfig) keyCache(ctx context.Context, s *System) {
	keys, err := KeySet(map[string]crypto.Signer{tokenKey: s.issuer.key})
	s.fail(err)
	rows := keyRow(s, tokenIssuer, keys)
	if c.Issuer != "" {
		rows += ", " + keyRow(s, c.Issuer, c.Keys)
	}
	dir := s.newDir("cache/scitokens")
	s.env = append(s.env, "XDG_CACHE_HOME="+filepath.Dir(dir))
	s.tool(ctx, s.user, nil, s.program(c.Config, "sqlite3"), "-batch", filepath.Join(dir, "scitokens_cpp.sqllite"),
		"CREATE TABLE keycache (issuer text UNIQUE PRIMARY KEY NOT NULL, keys text NOT NULL);"+
			"INSERT INTO keycache VALUES "+rows+";")
}

// keyRow returns the row that the library stores for an issuer.
func keyRow(s *System, issuer string, keys json.RawMessage) string {
	now := time.Now().Unix()
	entry, err := json.Marshal(map[string]any{
		"expires": now + int64(12*month/time.Second), "next_update": now + int64(11*month/time.Second), "jwks": keys})
	s.fail(err)
	quote := func(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
	return "(" + quote(issuer) + ", " + quote(string(entry)) + ")"
}

// Token makes a WLCG token that is good for lifetime from now; for a lifetime of zero or less the
// token has expired. scope is as in "storage.read:/sub", with paths below /data; "" is everything.
func (s *System) Token(lifetime time.Duration, scope string) (string, error) {
	if s.issuer == nil {
		return "", errors.New("lab: only a system with ztn has tokens")
	}
	if scope == "" {
		scope = tokenScope
	}
	now := time.Now()
	from := now.Add(min(0, lifetime) - time.Minute).Unix()
	return SignToken(s.issuer.key, tokenKey, map[string]any{
		"iss": tokenIssuer, "sub": s.User, "aud": TokenAudience, "wlcg.ver": "1.0", "scope": scope,
		"iat": from, "nbf": from, "exp": now.Add(lifetime).Unix(), "jti": rand.Text(),
	})
}

// TokenFor writes the result of Token into one more file and returns the file's name.
func (s *System) TokenFor(lifetime time.Duration, scope string) (string, error) {
	token, err := s.Token(lifetime, scope)
	if err != nil {
		return "", err
	}
	return s.newClientFile("token", []byte(token+"\n"))
}

// BrokenToken returns a valid token with another token's signature.
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
