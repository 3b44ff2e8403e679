// Package coordinator implements the transfer service: it keeps the catalog and the queue of
// requests, registers agents, grants leases to them, drives third-party copies and serves users.
// The bytes of files pass through it only between endpoints that cannot copy from each other.
//
// The database holds all state that matters. A coordinator that was killed continues from it:
// agents register again and report the leases that they hold, and each outcome is applied once.
// While the database is unavailable, requests fail with status 503 and no transfer begins; running
// transfers continue.
package coordinator

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"weir/internal/db"
	"weir/internal/pause"
	"weir/internal/tpc"
	"weir/internal/trust"
	"weir/internal/wire"
	"weir/transfer"
	"weir/transfer/access"
	"weir/transfer/api"
	"weir/transfer/catalog/store"
	"weir/transfer/dispatch"
	"weir/transfer/fts"
	"weir/transfer/fts/rest"
	"weir/transfer/health"
	"weir/transfer/messages"
	"weir/transfer/metrics"
	"weir/transfer/notify"
	"weir/transfer/page"
	"weir/transfer/queue"
	"weir/transfer/remote"
	"weir/transfer/requests"
	"weir/transfer/samples"
	"weir/transfer/scans"
	"weir/transfer/schedule"
	"weir/transfer/sites"
	"weir/transfer/state"
	"weir/transfer/thirdparty"
)

// A Config configures a coordinator. State is required.
type Config struct {
	State         string              // folder for keys, the administrator's token and, without DB, the database
	DB            string              // postgres://..., or a file; "": a file in State
	Standby       bool                // Open waits while another coordinator uses the database, which must be PostgreSQL
	Listen        string              // HOST:PORT; "": any free port on loopback
	URL           string              // URL of the service and issuer of its tokens; "": the URL of Listen
	Cert          string              // file with the certificate chain; "": a self-signed certificate, identified by its pin
	Key           string              // file with the private key of Cert
	Plain         bool                // HTTP without TLS, on loopback only
	CA            string              // authorities of client certificates, see gridcert.NewAuthorities; "": only tokens are accepted
	SiteCA        string              // authorities of sites' certificates, in addition to the system's authorities, see trust.WithSystem
	Names         map[string][]string // roles by a name in a client certificate: subject, common name, DNS name, mail or URI
	Rules         schedule.Rules      // rules of limits and sources
	Shares        map[string]float64  // weights of activities
	Approve       int64               // requests of up to this many bytes need no approval; negative: no request needs approval
	Lease         time.Duration       // time after which the leases of a silent mover are lost; 0 is a minute
	VO            string              // virtual organization of users of the API of FTS3; "" is weir
	Issuers       []access.Issuer     // external issuers of users' tokens
	VOMSDir       string              // folder with files VO/HOST.lsc of VOMS servers whose attributes count; "": no attributes count
	VOMSRoles     map[string][]string // roles by attribute (FQAN)
	Streamed      int                 // concurrent copies whose bytes pass through the coordinator; 0 is 64, negative: no such copies
	UserQuota     requests.Quota      // quota of each user
	VOQuota       requests.Quota      // quota of the users of each virtual organization together: open files of jobs, and submissions
	JobArea       tpc.Area            // of the endpoints in the URLs of jobs, unless an administrator has added the site
	KnownSites    bool                // jobs may only use sites that an administrator has added
	KeepEndpoints time.Duration       // retention of other sites of jobs that no job uses any more; 0: forever
	Patience      time.Duration       // time that files wait while no site that has them is up; 0 is a day
	Keep          time.Duration       // retention of ended requests; 0: forever
	Sites         []transfer.NewSite  // sites without an agent, which are added or changed at the start
	Tokens        []access.TokenFile  // tokens that are written at the start
	Notify        []notify.Target     // receivers of notifications of requests that have ended
	Broker        *messages.Broker    // receives messages about files of jobs; nil: no broker
	Version       string
	Log           *slog.Logger     // nil: no log
	Now           func() time.Time // nil is time.Now

	seen   func(query string, args []any) // called by the database, see db.Options
	bodies wire.Bodies                    // limits of the bodies of requests in progress; zero: at most mostBodies
}

// mostBodies limits the bytes of the bodies of requests in progress. They take about twice as much
// memory.
const mostBodies = 4 * fts.MaxBody

// A Coordinator is an open transfer service.
type Coordinator struct {
	conf    Config
	log     *slog.Logger
	now     func() time.Time
	state   *state.State
	db      *db.DB // part of state, as are catalog and queue
	catalog *store.Store
	queue   *queue.Queue
	access  *access.Control
	page    *page.Page
	server  *wire.Server
	tpc     *remote.Client
	pin     string
	url     string
	begun   time.Time

	authorities *x509.CertPool // of sites and issuers

	agents        *dispatch.Agents
	leases        *dispatch.Leases
	sites         *dispatch.Sites
	endpoints     *access.Endpoints
	copier        *thirdparty.Copier
	registry      *sites.Registry
	wake          pause.Signal // files may be dispatched
	work          pause.Signal // requests wait for Queue.Work
	eventsChanged pause.Signal
	health        *health.Health
	alive         *health.Liveness // of the database
	uncertain     atomic.Bool      // the database may have leases that the registry lacks
	notifications *notify.Deliveries
	samples       *samples.Store
	scans         *scans.Store
	counters      *metrics.Counters
	changes       dispatch.LimitChanges
	requests      *requests.Service
	configuration *rest.Configuration
	fts           *rest.API
	routes        api.Routes
	filesChanged  pause.Signal        // messages are to be sent
	publisher     *messages.Publisher // nil without a broker
}

// Open opens a coordinator. It serves requests at once, and dispatches files while Run runs. With
// Standby it first waits while another coordinator uses the database. The caller closes the
// coordinator.
func Open(ctx context.Context, conf Config) (_ *Coordinator, err error) {
	c := &Coordinator{conf: conf, log: conf.Log, now: conf.Now}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.now == nil {
		c.now = time.Now
	}
	if c.conf.Lease <= 0 {
		c.conf.Lease = time.Minute
	}
	if c.conf.Streamed == 0 {
		c.conf.Streamed = thirdparty.StreamedCopies
	}
	c.begun = c.now()
	c.counters = metrics.NewCounters(c.now)
	c.health = health.New(c.log)
	c.routes.Refuser = &api.Refuser{Health: c.health, Log: c.log}
	c.alive = health.NewLiveness(func(ctx context.Context) error {
		_, err := c.queue.Destinations(ctx)
		return err
	})
	for _, open := range []func(context.Context) error{c.openState, c.listen} {
		if err := open(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("coordinator: %w", err), c.Close())
		}
	}
	return c, nil
}

// openState opens the state and creates the parts of the coordinator.
func (c *Coordinator) openState(ctx context.Context) (err error) {
	c.state, err = state.Open(ctx, state.Config{Dir: c.conf.State, DB: c.conf.DB, Standby: c.conf.Standby, Seen: c.conf.seen, Log: c.log},
		queue.Options{Now: c.now, Lease: c.conf.Lease, Patience: c.conf.Patience, Shares: c.conf.Shares, Ended: c.ended,
			Changes: c.conf.Broker != nil, Keys: fts.Keys})
	if err != nil {
		return err
	}
	c.db, c.catalog, c.queue = c.state.DB, c.state.Catalog, c.state.Queue
	c.access, err = access.New(ctx, access.Config{State: c.conf.State, URL: c.conf.URL, CA: c.conf.CA, VOMSDir: c.conf.VOMSDir,
		Names: c.conf.Names, VOMSRoles: c.conf.VOMSRoles, VO: c.conf.VO, Issuers: c.conf.Issuers, DB: c.db, Box: c.state.Box, Queue: c.queue,
		Health: c.health, Log: c.log, Now: c.now})
	if err != nil {
		return err
	}
	c.samples = &samples.Store{DB: c.db, Health: c.health, Now: c.now}
	c.notifications, err = notify.Open(ctx, notify.Config{Targets: c.conf.Notify, DB: c.db, Queue: c.queue, Health: c.health, Log: c.log,
		Now: c.now, Events: &c.eventsChanged})
	if err != nil {
		return err
	}
	if err = c.openMessages(ctx); err != nil {
		return err
	}
	if err = c.compose(); err != nil {
		return err
	}
	return c.readState(ctx)
}

// openMessages prepares the messages to the broker. Without a broker it deletes the changes that
// wait.
func (c *Coordinator) openMessages(ctx context.Context) (err error) {
	if c.conf.Broker == nil {
		return c.db.Exec(ctx, "DELETE FROM file_change")
	}
	c.publisher, err = messages.New(messages.Config{Broker: c.conf.Broker, Queue: c.queue, Health: c.health, Log: c.log, Now: c.now,
		Counters: c.counters, Changed: &c.filesChanged})
	return err
}

// publishAll sends messages to the broker, if there is one, until ctx ends.
func (c *Coordinator) publishAll(ctx context.Context) {
	if c.publisher != nil {
		c.publisher.Run(ctx, c.url)
	}
}

// ended is called after each transaction of the queue that changed files.
func (c *Coordinator) ended(e queue.Ended) {
	c.counters.Ended(e)
	c.filesChanged.Broadcast()
}

// listen starts to serve requests.
func (c *Coordinator) listen(ctx context.Context) (err error) {
	secure, err := c.tlsConfig()
	if err != nil {
		return err
	}
	address, scheme := c.conf.Listen, "https"
	if address == "" {
		address = "127.0.0.1:0"
	}
	if c.conf.Plain {
		scheme = "http"
		if err := CheckLoopback(address); err != nil {
			return err
		}
	}
	if c.server, err = wire.Serve(ctx, address, wire.Config{TLS: secure, Check: c.authenticate,
		Bodies: cmp.Or(c.conf.bodies, wire.Bodies{Most: mostBodies, User: mostBodies / 4}),
		User: func(ctx context.Context) string {
			return access.CallerOf(ctx).Name
		},
	}); err != nil {
		return err
	}
	c.url = c.conf.URL
	if c.url == "" {
		if c.url, err = urlOf(scheme, c.server.Addr().String()); err != nil {
			return err
		}
	}
	c.url = strings.TrimSuffix(c.url, "/")
	if err := c.access.OpenTokens(ctx, c.url, trusting(c.authorities)); err != nil {
		return err
	}
	if err := c.openPage(); err != nil {
		return err
	}
	if err := c.predefine(ctx); err != nil {
		return err
	}
	c.addRoutes()
	c.server.Begin()
	return nil
}

// urlOf returns the URL of a listener, with this machine's name if it listens on all addresses.
func urlOf(scheme, address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		if host, err = os.Hostname(); err != nil {
			err = fmt.Errorf("cannot determine this machine's name: use --url https://HOST:%s: %w", port, err)
		}
	}
	return scheme + "://" + net.JoinHostPort(host, port), err
}

// CheckLoopback refuses addresses that are not on loopback, which Config.Plain needs.
func CheckLoopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("%s: without TLS the address must be on loopback, such as 127.0.0.1:9443", address)
}

// tlsConfig returns the server's TLS configuration, nil for plain HTTP.
func (c *Coordinator) tlsConfig() (*tls.Config, error) {
	if c.conf.Plain {
		return nil, nil
	}
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.conf.Cert != "" {
		renewed, err := trust.NewRenewed(c.conf.Cert, c.conf.Key, c.log)
		if err != nil {
			return nil, err
		}
		secure.GetCertificate = renewed.Certificate
	} else {
		id, err := wire.Keep(c.conf.State)
		if err != nil {
			return nil, err
		}
		secure.Certificates, c.pin = []tls.Certificate{id.Cert}, id.Pin
	}
	return secure, c.access.RequestCertificates(secure)
}

// pageFile is the file in the state folder with the key that encrypts the sessions of browsers.
const pageFile = "sessions.key"

func (c *Coordinator) openPage() error {
	key, err := access.KeepFile(filepath.Join(c.conf.State, pageFile), access.NewKey)
	if err != nil {
		return err
	}
	who := func(w access.Caller) page.Who { return page.Who{Name: w.Name, Roles: w.Roles, Until: w.Until} }
	c.page, err = page.New(page.Config{
		Key: key, Now: c.now, Loopback: sites.IsLoopback(c.url),
		Known: func(r *http.Request) (page.Who, bool) {
			if !c.access.HasCertificate(r) {
				return page.Who{}, false
			}
			w, err := c.access.CertificateHolder(r)
			return who(w), err == nil && len(w.Roles) > 0
		},
		Check: func(ctx context.Context, raw string) (page.Who, error) {
			w, err := c.access.TokenHolder(ctx, raw)
			return who(w), err
		},
	})
	return err
}

// URL returns the address of the service.
func (c *Coordinator) URL() string { return c.url }

// Pin returns the SHA-256 of the self-signed certificate, or "" if an authority has signed the
// certificate.
func (c *Coordinator) Pin() string { return c.pin }

// Admin returns the token of the administrator, a secret.
func (c *Coordinator) Admin() (string, error) {
	text, err := os.ReadFile(filepath.Join(c.conf.State, access.AdminFile))
	return strings.TrimSpace(string(text)), err
}

// Link returns the address of the page with a code. The code signs a browser in once, with the
// rights of the given token.
func (c *Coordinator) Link(raw string) string { return c.url + "/#code=" + c.page.Code(raw) }

// Close ends the coordinator. Requests in progress have five seconds to finish. Third-party copies
// are aborted when Run ends.
func (c *Coordinator) Close() error {
	var errs []error
	if c.server != nil {
		c.agents.Close()
		c.eventsChanged.Broadcast() // followers of events leave: the server waits for open responses
		errs = append(errs, c.server.Close())
	}
	if c.tpc != nil {
		c.tpc.Close()
	}
	if c.access != nil {
		c.access.Close()
	}
	if c.state != nil {
		errs = append(errs, c.state.Close())
	}
	return errors.Join(errs...)
}

// TuneMemory makes Go collect garbage less often in this process, unless GOGC or GOMEMLIMIT is set.
// With the defaults a coordinator, whose live heap is a few megabytes, spends a sixth of its CPU time
// on garbage collection while a million files are leased.
func TuneMemory() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(300)
		debug.SetMemoryLimit(256 << 20)
	}
}
