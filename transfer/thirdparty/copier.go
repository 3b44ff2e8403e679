// Package thirdparty has sites without agents copy files from each other, or copies the bytes
// itself if they cannot. It removes the temporary files that copies have left, has tape systems
// stage files, and searches for the files of leases whose movers have left.
package thirdparty

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"weir/internal/db"
	"weir/transfer"
	"weir/transfer/access"
	"weir/transfer/dispatch"
	"weir/transfer/health"
	"weir/transfer/queue"
	"weir/transfer/remote"
)

// StreamedCopies is the usual number of concurrent copies whose bytes pass through the coordinator.
const StreamedCopies = 64

// A Config configures a Copier.
type Config struct {
	State     dispatch.State
	Access    *access.Control
	Endpoints *access.Endpoints
	Client    *remote.Client
	Queue     *queue.Queue
	DB        *db.DB
	Health    *health.Health
	Log       *slog.Logger
	Now       func() time.Time
	Lease     time.Duration                                           // time for which a mover may be silent
	Streamed  int                                                     // concurrent copies whose bytes pass through the coordinator
	Apply     func(ctx context.Context, all []transfer.Outcome) error // writes outcomes to the queue
	Wake      func()                                                  // called when files may be dispatched
}

// A Copier executes leases of sites without agents. It can be used concurrently.
type Copier struct {
	leases    *dispatch.Leases
	sites     *dispatch.Sites
	access    *access.Control
	endpoints *access.Endpoints
	tpc       *remote.Client
	queue     *queue.Queue
	db        *db.DB
	health    *health.Health
	log       *slog.Logger
	now       func() time.Time
	lease     time.Duration
	apply     func(ctx context.Context, all []transfer.Outcome) error
	wake      func()

	copies   sync.WaitGroup
	outcomes outcomeBatch
	streamed chan struct{} // holds a value for each streamed copy
	lost     orphans
}

// New returns a Copier. Its loops, named ...All, VerifyOrphans and the copies that it starts end with their contexts.
func New(c Config) *Copier {
	return &Copier{leases: c.State.Leases, sites: c.State.Sites, access: c.Access, endpoints: c.Endpoints, tpc: c.Client, queue: c.Queue,
		db: c.DB, health: c.Health, log: c.Log, now: c.Now, lease: c.Lease, apply: c.Apply, wake: c.Wake,
		streamed: make(chan struct{}, max(0, c.Streamed))}
}

// streams reports whether the coordinator may copy the bytes itself.
func (c *Copier) streams() bool { return cap(c.streamed) > 0 }

// Wait waits until all copies have ended.
func (c *Copier) Wait() { c.copies.Wait() }
