// Package access authenticates the users and agents of a coordinator by tokens and certificates, issues tokens, and keeps the
// credentials of jobs: tokens, which it renews at their issuers, and delegated proxies. Secrets are encrypted in the database.
package access

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"weir/internal/db"
	"weir/internal/token"
	"weir/transfer/health"
	"weir/transfer/queue"
)

// Files in the state folder, readable by this user only.
const (
	SecretsFile = "secrets.key" // encrypts the secrets in the database
	IssuerFile  = "issuer.key"  // signs tokens
	AdminFile   = "admin.token" // the administrator's token
	nameFile    = "issuer.name" // the issuer in tokens
)

// A Config configures a Control.
type Config struct {
	State     string              // folder for keys and the administrator's token
	URL       string              // issuer of the tokens; "": that of the first start
	CA        string              // authorities of client certificates; "": only tokens are accepted
	VOMSDir   string              // folder with files VO/HOST.lsc of VOMS servers whose attributes count; "": no attributes count
	Names     map[string][]string // roles by a name in a client certificate
	VOMSRoles map[string][]string // roles by attribute (FQAN)
	VO        string              // of users without one; "" is weir
	Issuers   []Issuer            // external issuers of users' tokens
	DB        *db.DB
	Box       *Box
	Queue     *queue.Queue
	Health    *health.Health
	Log       *slog.Logger
	Now       func() time.Time
}

// A Control authenticates callers and has the credentials of jobs. It can be used concurrently.
type Control struct {
	conf   Config
	log    *slog.Logger
	now    func() time.Time
	db     *db.DB
	box    *Box
	queue  *queue.Queue
	health *health.Health

	issuer       *token.Issuer
	checker      *token.Checker
	issuers      map[string]*Issuer // external issuers, by URL
	issuerHTTP   *http.Transport
	revoked      revoked
	certificates *clientCertificates // nil: only tokens are accepted
	bearers      bearers
	proxies      proxies
}

// New returns a Control with the revoked tokens. OpenTokens must be called before it is used.
func New(ctx context.Context, conf Config) (*Control, error) {
	c := &Control{conf: conf, log: conf.Log, now: conf.Now, db: conf.DB, box: conf.Box, queue: conf.Queue, health: conf.Health}
	return c, c.openRevoked(ctx)
}

// OpenTokens prepares the issuer and the checker of tokens, and the administrator's token. The issuer is the configured URL, or else
// the URL of the first start.
func (c *Control) OpenTokens(ctx context.Context, url string, toIssuers *tls.Config) error {
	dir, name := c.conf.State, c.conf.URL
	if name == "" {
		text, err := KeepFile(filepath.Join(dir, nameFile), func() ([]byte, error) { return []byte(url + "\n"), nil })
		if err != nil {
			return err
		}
		name = strings.TrimSpace(string(text))
	}
	var err error
	if c.issuer, err = token.Keep(filepath.Join(dir, IssuerFile), name, c.now); err != nil {
		return err
	}
	external, client, err := c.openIssuers(toIssuers)
	if err != nil {
		return err
	}
	c.checker, err = token.NewChecker(token.Options{Trust: append(external, c.issuer.Trust()), Audience: []string{name}, Now: c.now,
		Client: client})
	if err != nil {
		return err
	}
	return c.openAdmin(ctx)
}

// Issuer returns the issuer of the coordinator's tokens.
func (c *Control) Issuer() *token.Issuer { return c.issuer }

// Prune removes expired tokens of jobs and proxies that no open job needs.
func (c *Control) Prune(ctx context.Context) {
	c.health.Database(c.pruneBearers(ctx))
	c.health.Database(c.pruneProxies(ctx))
}

// Close closes the connections to issuers.
func (c *Control) Close() {
	if c.issuerHTTP != nil {
		c.issuerHTTP.CloseIdleConnections()
	}
}
