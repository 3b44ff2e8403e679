package lab

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"weir/internal/trust"
)

//go:embed keycloak.json
var keycloakRealm []byte

// KeycloakConfig configures a Keycloak; its zero value is a valid configuration.
type KeycloakConfig struct {
	Config
	Life time.Duration // of access tokens, whole seconds; 0 is 5 minutes
	Idle time.Duration // of a session, and so of refresh tokens, whole seconds; 0 is 30 minutes
}

// The keys of Settings of Keycloak.
const (
	KeycloakClient = "client_id"     // that renews tokens of jobs
	KeycloakSecret = "client_secret" //nolint:gosec // the name of a key
	userSecret     = "rucio_secret"
	userPassword   = "password"
)

// Start starts Keycloak as an issuer of tokens with the realm of keycloak.json, in memory. URL is the issuer. Settings have its clients
// and its user with generated secrets: weir renews tokens of jobs, and the others have tokens (Token).
func (c KeycloakConfig) Start(ctx context.Context) (*Keycloak, error) {
	c.Ready = cmp.Or(c.Ready, 10*time.Minute)
	s, err := c.launch(ctx, "keycloak", "keycloak", func(s *System, jar string) { c.build(s, jar) }, "home/data/import", "tmp")
	if err != nil {
		return nil, err
	}
	return &Keycloak{s}, nil
}

// A Keycloak is an issuer of tokens.
type Keycloak struct{ *System }

// Needs returns the programs that it needs.
func (KeycloakConfig) Needs() []string { return []string{"keycloak", "java"} }

func (c KeycloakConfig) build(s *System, jar string) {
	p := s.newPort(false)
	cert, key := s.certificate(false, nil)
	s.URL = "https://" + p.local() + "/realms/weir"
	s.URLs["https"] = s.URL
	s.set(KeycloakClient, "weir")
	s.set("user", userName)
	for _, name := range []string{KeycloakSecret, userSecret, userPassword} {
		s.set(name, rand.Text())
	}
	seconds := func(d, otherwise time.Duration) string { return fmt.Sprint(int(cmp.Or(d, otherwise).Seconds())) }
	s.env = append(s.env, "ACCESS_TOKEN_LIFESPAN="+seconds(c.Life, 5*time.Minute), "SESSION_IDLE="+seconds(c.Idle, 30*time.Minute),
		"WEIR_SECRET="+s.Settings[KeycloakSecret], "RUCIO_SECRET="+s.Settings[userSecret], "ADA_PASSWORD="+s.Settings[userPassword])
	home := filepath.Join(s.Dir, "home")
	for _, name := range []string{"conf", "lib", "providers", "themes"} { // it writes to home/data only
		s.fail(os.Symlink(filepath.Join(filepath.Dir(filepath.Dir(jar)), name), filepath.Join(home, name)))
	}
	s.file("home/data/import/weir.json", keycloakRealm)
	var argv []string
	for _, name := range []string{"util", "util.concurrent", "security"} {
		argv = append(argv, "--add-opens=java.base/java."+name+"=ALL-UNNAMED")
	}
	argv = append(argv, "-Dkc.home.dir="+home, "-Djava.util.logging.manager=org.jboss.logmanager.LogManager", "-cp", jar,
		"io.quarkus.bootstrap.runner.QuarkusEntryPoint", "start", "--optimized", "--import-realm", "--cache=local", "--http-host=127.0.0.1",
		"--https-port="+p.String(), "--hostname=https://"+p.local(), "--https-certificate-file="+cert, "--https-certificate-key-file="+key)
	client, err := trusting(s)
	s.fail(err)
	s.part("keycloak", askHTTPBy(client, s.URL+"/.well-known/openid-configuration", "token_endpoint"), c.java(s, argv...)...)
}

// trusting returns a client that trusts the authority of the system alone.
func trusting(s *System) (*http.Client, error) {
	if s.err != nil {
		return nil, s.err
	}
	pool, err := trust.Authorities(s.CAFile)
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool}}}, err
}

// Token returns a new access token with a scope for the user ada, or for one of the clients: rucio, whose tokens have a
// session, and robot.
func (k *Keycloak) Token(ctx context.Context, who, scope string) (string, error) {
	form, client := url.Values{"grant_type": {"client_credentials"}, "scope": {scope}}, who
	if who == userName {
		client = "rucio"
		form = url.Values{"grant_type": {"password"}, "scope": {scope}, "username": {who}, "password": {k.Settings[userPassword]}}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, k.URL+"/protocol/openid-connect/token", strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth(client, k.Settings[userSecret])
	text, err := k.answer(req)
	if err != nil {
		return "", err
	}
	var answer struct {
		Access string `json:"access_token"`
	}
	return answer.Access, json.Unmarshal(text, &answer)
}

// Keys returns the JSON Web Key Set.
func (k *Keycloak) Keys(ctx context.Context) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, k.URL+"/protocol/openid-connect/certs", nil)
	if err != nil {
		return nil, err
	}
	return k.answer(req)
}

func (k *Keycloak) answer(req *http.Request) ([]byte, error) {
	client, err := trusting(k.System)
	if err != nil {
		return nil, err
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s: %s", req.Method, req.URL, res.Status, text)
	}
	return text, err
}
