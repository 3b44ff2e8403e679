// Package coordinator is the service that moves datasets between sites: it keeps
// what is where and what is to be moved, lets agents in, gives them leases, has
// third parties copy, and answers users. Bytes of files never pass it.
//
// All that matters is in the database. A coordinator that was killed goes on with
// what it finds there: agents come in again and tell what they hold, and what they
// told is taken once. While the database cannot serve, questions are answered 503
// and nothing is begun; copies that run go on.
package coordinator

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"weir/internal/db"
	"weir/internal/lock"
	"weir/internal/token"
	"weir/internal/tpc"
	"weir/internal/trust"
	"weir/internal/wire"
	"weir/transfer/catalog/store"
	"weir/transfer/page"
	"weir/transfer/queue"
	"weir/transfer/schedule"
)

// A Config is what a coordinator is started with. State is needed, all else has
// defaults.
type Config struct {
	State   string              // folder for keys, the administrator's token and, without DB, the database
	DB      string              // postgres://..., or a file; "": in State
	Listen  string              // HOST:PORT; "" is any free port of this machine's loopback
	URL     string              // by which others reach it, and the name in its tokens; "" is that of Listen
	Cert    string              // file of a certificate and those that signed it; "": one of its own, known by its pin
	Key     string              // file of its key
	Plain   bool                // http without TLS, on loopback only
	CA      string              // file of the authorities of clients' certificates; "": only tokens count
	SiteCA  string              // file of authorities of sites' certificates, besides those of the system
	Names   map[string][]string // roles by a name in a client's certificate: its subject, common name, DNS name, mail or URI
	Rules   schedule.Rules      // of limits and sources
	Shares  map[string]float64  // weights of shares
	Approve int64               // requests of up to so many bytes need no approval; below 0: none does
	Lease   time.Duration       // for which a mover may be silent; 0 is a minute
	// Patience is for how long files wait while no site that has them is up; 0 is
	// a day.
	Patience time.Duration
	Version  string
	Log      *slog.Logger     // nil: nothing is written
	Now      func() time.Time // nil is time.Now
}

// A Coordinator is one that is open.
type Coordinator struct {
	conf    Config
	log     *slog.Logger
	now     func() time.Time
	db      *db.DB
	claim   *db.Claim
	catalog *store.Store
	queue   *queue.Queue
	box     *secretBox
	issuer  *token.Issuer
	checker *token.Checker
	page    *page.Page
	server  *wire.Server
	tpc     *tpc.Client
	guards  map[tpc.Area]*tpc.Guard
	pin     string
	url     string
	locked  *os.File
	begun   time.Time

	registry      registry
	wake          signal // there may be something to give out
	work          signal // requests wait for what Queue.Work does
	eventsChanged signal // there may be new events
	health        *health
	alive         *liveness      // of the database
	third         sync.WaitGroup // copies that third parties make
	lost          orphans

	lender lender

	unsure atomic.Bool // leases may be in the database that are not in the registry

	revoked revoked

	listening atomic.Int64 // who follows events
}

// Open opens a coordinator, which answers at once, and moves something when Run
// is called. Who opens it closes it.
func Open(ctx context.Context, conf Config) (_ *Coordinator, err error) {
	c := &Coordinator{conf: conf, log: conf.Log, now: conf.Now, wake: newSignal(), work: newSignal(), eventsChanged: newSignal()}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.now == nil {
		c.now = time.Now
	}
	c.begun = c.now()
	c.lost.next, c.lost.more = map[int64]time.Time{}, newSignal()
	c.health = newHealth(c.log)
	c.alive = newLiveness(func(ctx context.Context) error { _, err := c.queue.Destinations(ctx); return err })
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("coordinator: %w", err), c.Close())
		}
	}()
	if err := c.openState(); err != nil {
		return nil, err
	}
	if err := c.openTables(ctx); err != nil {
		return nil, err
	}
	if err := c.listen(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// openState takes the folder, and what is secret in it.
func (c *Coordinator) openState() (err error) {
	dir := c.conf.State
	if dir == "" {
		return errors.New("no folder for its state is named")
	}
	if err = os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	_, err = os.Stat(filepath.Join(dir, secretBoxFile))
	_, gone := os.Stat(filepath.Join(dir, tableFile))
	if err == nil && errors.Is(gone, fs.ErrNotExist) && c.conf.DB == "" {
		c.log.Warn("there are keys of an earlier coordinator, but no database: an empty one is made", "file", filepath.Join(dir, tableFile))
	}
	if c.locked, err = os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return err
	}
	if err = lock.Alone(c.locked); errors.Is(err, lock.ErrTaken) {
		return fmt.Errorf("%s is in use by another coordinator", dir)
	}
	c.box, err = newSecretBox(filepath.Join(dir, secretBoxFile))
	return err
}

// openTables opens the database and what is known from before.
func (c *Coordinator) openTables(ctx context.Context) (err error) {
	address := c.conf.DB
	if address == "" {
		address = "sqlite:" + filepath.Join(c.conf.State, tableFile)
	}
	if c.db, err = db.Open(ctx, address, db.Options{}); err != nil {
		return err
	}
	if c.claim, err = c.db.Claim(ctx, "weir coordinator", self()); errors.Is(err, db.ErrTaken) {
		return fmt.Errorf("another coordinator has this database: %w: end that one first, or give this one a database of its own", err)
	} else if err != nil {
		return err
	}
	if c.catalog, err = store.Open(ctx, c.db); err != nil {
		return err
	}
	if c.queue, err = queue.Open(ctx, c.db, queue.Options{Now: c.now, Lease: c.conf.Lease, Patience: c.conf.Patience, Shares: c.conf.Shares}); err != nil {
		return err
	}
	if err = c.db.Migrate(ctx, "coordinator", schema()); err != nil {
		return err
	}
	if err = c.openRevoked(ctx); err != nil {
		return err
	}
	return c.openRegistry(ctx)
}

// self is what this process is called by others.
func self() string {
	host, err := os.Hostname()
	if err != nil {
		host = "a machine"
	}
	return fmt.Sprintf("the weir coordinator of %.24s, process %d", host, os.Getpid())
}

// listen begins to answer.
func (c *Coordinator) listen(ctx context.Context) (err error) {
	secure, err := c.secure()
	if err != nil {
		return err
	}
	address := c.conf.Listen
	if address == "" {
		address = "127.0.0.1:0"
	}
	if c.conf.Plain {
		if err := loopback(address); err != nil {
			return err
		}
	}
	c.server, err = wire.Serve(ctx, address, wire.Config{TLS: secure, Check: c.check})
	if err != nil {
		return err
	}
	c.url = c.conf.URL
	if c.url == "" {
		if c.url, err = reached(scheme(c.conf.Plain), c.server.Addr().String()); err != nil {
			return err
		}
	}
	c.url = strings.TrimSuffix(c.url, "/")
	if err := c.openTokens(ctx); err != nil {
		return err
	}
	pool, err := trust.WithSystem(c.conf.SiteCA)
	if err != nil {
		return err
	}
	c.guards = guards()
	c.tpc = tpc.New(tpc.Options{Name: "weir", TLS: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}})
	if err := c.openPage(); err != nil {
		return err
	}
	c.routes()
	c.server.Begin()
	return nil
}

// reached is the URL of an address that is listened on, with this machine's name
// if that is all its addresses.
func reached(scheme, address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		if host, err = os.Hostname(); err != nil {
			err = fmt.Errorf("under which name do others reach this machine? Say --url https://HOST:%s: %w", port, err)
		}
	}
	return scheme + "://" + net.JoinHostPort(host, port), err
}

func scheme(plain bool) string {
	if plain {
		return "http"
	}
	return "https"
}

// secure is how the coordinator proves itself; nil is not at all.
func (c *Coordinator) secure() (*tls.Config, error) {
	if c.conf.Plain {
		return nil, nil
	}
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.conf.Cert != "" {
		pair, err := tls.LoadX509KeyPair(c.conf.Cert, c.conf.Key)
		if err != nil {
			return nil, err
		}
		secure.Certificates = []tls.Certificate{pair}
	} else {
		id, err := wire.Keep(c.conf.State)
		if err != nil {
			return nil, err
		}
		secure.Certificates, c.pin = []tls.Certificate{id.Cert}, id.Pin
	}
	if c.conf.CA != "" {
		pool, err := trust.Authorities(c.conf.CA)
		if err != nil {
			return nil, err
		}
		secure.ClientAuth, secure.ClientCAs = tls.VerifyClientCertIfGiven, pool
	}
	return secure, nil
}

// openTokens makes ready to sign and to check tokens, and leaves one for the
// administrator.
func (c *Coordinator) openTokens(ctx context.Context) error {
	dir := c.conf.State
	name, err := keepName(dir, c.conf.URL, c.url)
	if err != nil {
		return err
	}
	if c.issuer, err = token.Keep(filepath.Join(dir, issuerFile), name, c.now); err != nil {
		return err
	}
	c.checker, err = token.NewChecker(token.Options{Trust: []token.Trust{c.issuer.Trust()}, Audience: []string{name}, Now: c.now})
	if err != nil {
		return err
	}
	return c.openAdmin(ctx)
}

func (c *Coordinator) openPage() (err error) {
	key, err := keepFile(filepath.Join(c.conf.State, pageFile), newKey)
	if err != nil {
		return err
	}
	known := func(r *http.Request) (page.Who, bool) {
		if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
			return page.Who{}, false
		}
		who := c.certified(r)
		return page.Who{Name: who.name, Roles: who.roles}, len(who.roles) > 0
	}
	c.page, err = page.New(page.Config{Key: key, Now: c.now, Loopback: onThisMachine(c.url), Known: known, Check: func(ctx context.Context, raw string) (page.Who, error) {
		who, err := c.holder(ctx, raw)
		return page.Who{Name: who.name, Roles: who.roles, Until: who.until}, err
	}})
	return err
}

// URL returns where the coordinator answers.
func (c *Coordinator) URL() string { return c.url }

// Pin returns the SHA-256 of its certificate, "" if authorities vouch for it.
func (c *Coordinator) Pin() string { return c.pin }

// Admin returns the token of the administrator, a secret.
func (c *Coordinator) Admin() (string, error) {
	text, err := os.ReadFile(filepath.Join(c.conf.State, adminFile))
	return strings.TrimSpace(string(text)), err
}

// Link returns the address of the page, with a code that opens it once with the
// rights of the given token.
func (c *Coordinator) Link(raw string) string { return c.url + "/#code=" + c.page.Code(raw) }

// Close ends the coordinator: questions that are being answered have five seconds.
// Copies that third parties make are broken off when Run ends.
func (c *Coordinator) Close() error {
	var errs []error
	if c.server != nil {
		c.registry.close()
		c.eventsChanged.give() // who follows events goes: the server waits for answers that go on
		errs = append(errs, c.server.Close())
	}
	if c.tpc != nil {
		c.tpc.Close()
	}
	if c.claim != nil {
		errs = append(errs, c.claim.Close())
	}
	if c.db != nil {
		errs = append(errs, c.db.Close())
	}
	if c.locked != nil {
		errs = append(errs, c.locked.Close())
	}
	return errors.Join(errs...)
}

// public is what everybody may ask.
func (c *Coordinator) public() {
	c.server.Public("GET "+token.ConfigurationPath, c.issuer)
	c.server.Public("GET "+token.KeysPath, c.issuer)
	c.server.Public("GET /healthz", http.HandlerFunc(c.healthy))
	for _, p := range page.Patterns() {
		c.server.Public(p, c.page)
	}
}
