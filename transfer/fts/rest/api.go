// Package rest serves FTS3's REST API: jobs, delegation of proxies, bans, limits and other
// settings. weir/transfer/fts has the formats of the API.
package rest

import (
	"log/slog"
	"time"

	"weir/internal/db"
	"weir/transfer/access"
	"weir/transfer/api"
	"weir/transfer/dispatch"
	"weir/transfer/queue"
	"weir/transfer/requests"
	"weir/transfer/sites"
)

// A Config configures an API.
type Config struct {
	Approve  int64              // bytes of jobs that need no approval; negative: no job does
	Shares   map[string]float64 // weights of activities, unless an administrator has set other weights
	Version  string
	State    dispatch.State
	Changes  *dispatch.LimitChanges
	Registry *sites.Registry
	Requests *requests.Service
	Access   *access.Control
	Queue    *queue.Queue
	DB       *db.DB
	Refuser  *api.Refuser
	Log      *slog.Logger
	Now      func() time.Time
	Wake     func() // called when files may be dispatched
	WakeAll  func() // called when requests have changed
}

// A Configuration stores the bans, limits and other settings that administrators make. It can be
// used concurrently.
type Configuration struct {
	shares   map[string]float64
	sites    *dispatch.Sites
	requests *requests.Service
	access   *access.Control
	queue    *queue.Queue
	db       *db.DB
	log      *slog.Logger
	now      func() time.Time
	wake     func()
	wakeAll  func()
}

// NewConfiguration returns a Configuration, which has no settings before OpenBans and OpenSettings.
func NewConfiguration(c Config) *Configuration {
	return &Configuration{shares: c.Shares, sites: c.State.Sites, requests: c.Requests, access: c.Access, queue: c.Queue, db: c.DB, log: c.Log,
		now: c.Now, wake: c.Wake, wakeAll: c.WakeAll}
}

// An API serves requests. It can be used concurrently.
type API struct {
	config   *Configuration
	approve  int64
	version  string
	leases   *dispatch.Leases
	sites    *dispatch.Sites
	changes  *dispatch.LimitChanges
	registry *sites.Registry
	requests *requests.Service
	access   *access.Control
	queue    *queue.Queue
	refuser  *api.Refuser
	log      *slog.Logger
	now      func() time.Time
	wakeAll  func()
}

// New returns an API.
func New(c Config, settings *Configuration) *API {
	return &API{config: settings, approve: c.Approve, version: c.Version, leases: c.State.Leases, sites: c.State.Sites, changes: c.Changes,
		registry: c.Registry, requests: c.Requests, access: c.Access, queue: c.Queue, refuser: c.Refuser, log: c.Log, now: c.Now,
		wakeAll: c.WakeAll}
}
