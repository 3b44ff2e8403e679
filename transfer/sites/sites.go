// Package sites keeps the sites of a coordinator in its catalog and in memory: sites of agents,
// sites that an administrator adds, and the endpoints of jobs, which come and go with the jobs. It
// probes sites without an agent.
package sites

import (
	"log/slog"
	"sync"
	"time"

	"weir/internal/db"
	"weir/internal/tpc"
	"weir/transfer/access"
	"weir/transfer/catalog/store"
	"weir/transfer/dispatch"
	"weir/transfer/health"
	"weir/transfer/queue"
	"weir/transfer/remote"
)

// A Config configures a Registry.
type Config struct {
	JobArea       tpc.Area      // of the endpoints in the URLs of jobs, unless an administrator has added the site
	KnownSites    bool          // jobs may only use sites that an administrator has added
	KeepEndpoints time.Duration // time for which other sites of jobs are kept when no job uses them; 0: for ever
	State         dispatch.State
	Catalog       *store.Store
	Queue         *queue.Queue
	Endpoints     *access.Endpoints
	Client        *remote.Client
	Box           *access.Box
	DB            *db.DB
	Health        *health.Health
	Log           *slog.Logger
	Now           func() time.Time
	Wake          func() // called when files may be dispatched
}

// A Registry keeps the sites. It can be used concurrently.
type Registry struct {
	conf      Config
	agents    *dispatch.Agents
	sites     *dispatch.Sites
	catalog   *store.Store
	queue     *queue.Queue
	endpoints *access.Endpoints
	tpc       *remote.Client
	box       *access.Box
	db        *db.DB
	health    *health.Health
	log       *slog.Logger
	now       func() time.Time
	wake      func()
	naming    sync.Mutex // held while a site of jobs is added or removed
}

// New returns a Registry, which has no sites before Read.
func New(c Config) *Registry {
	return &Registry{conf: c, agents: c.State.Agents, sites: c.State.Sites, catalog: c.Catalog, queue: c.Queue, endpoints: c.Endpoints,
		tpc: c.Client, box: c.Box, db: c.DB, health: c.Health, log: c.Log, now: c.Now, wake: c.Wake}
}
