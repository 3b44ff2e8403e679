// Package v1 implements the coordinator's own API, /api/v1: requests, datasets, sites, tokens, events
// and metrics for users, registration, work and reports for agents.
package v1

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"weir/internal/db"
	"weir/internal/pause"
	"weir/transfer"
	"weir/transfer/access"
	"weir/transfer/catalog/store"
	"weir/transfer/dispatch"
	"weir/transfer/health"
	"weir/transfer/metrics"
	"weir/transfer/notify"
	"weir/transfer/queue"
	"weir/transfer/requests"
	"weir/transfer/samples"
	"weir/transfer/scans"
	"weir/transfer/sites"
	"weir/transfer/thirdparty"
)

// A Config has the parts of a coordinator that the API calls. All are required.
type Config struct {
	Version  string // of this program, "" is unknown
	URL      string // of the service
	Begun    time.Time
	Messages bool // changes of files are sent to a broker

	State         dispatch.State
	Access        *access.Control
	Catalog       *store.Store
	Changes       *dispatch.LimitChanges
	Copier        *thirdparty.Copier
	Counters      *metrics.Counters
	DB            *db.DB
	Health        *health.Health
	Notifications *notify.Deliveries
	Queue         *queue.Queue
	Registry      *sites.Registry
	Requests      *requests.Service
	Samples       *samples.Store
	Scans         *scans.Store

	Log     *slog.Logger
	Now     func() time.Time
	Wake    func()        // dispatches files
	WakeAll func()        // wakes the loops that a change of a request concerns
	Events  *pause.Signal // there are new events, or a follower must disconnect

	// Apply writes outcomes, reported by the agent of a site or ("") by the coordinator.
	Apply func(ctx context.Context, from string, all []transfer.Outcome) error
}

// Handlers handle the requests of the API. They are safe for concurrent use.
type Handlers struct {
	Config
	listening atomic.Int64 // followers of events
}

// New returns the handlers.
func New(conf Config) *Handlers { return &Handlers{Config: conf} }
