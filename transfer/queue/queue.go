// Package queue keeps requests, their files and the attempts at them in a
// database: what is to be moved, by whom just now, and what became of it.
//
// It is the state machine of package transfer. Whatever changes a file changes
// the counters of its request, and, with the last file, the request's status, in
// the same transaction. An order to move a file (a lease) has an epoch; what the
// holder of an older one reports is kept as an attempt and changes nothing.
// Nothing here runs by itself and nothing touches the network: the coordinator
// calls Work, Waiting, Take, Report and Expire again and again.
//
// All is in the database but whose turn it is and how fast bytes move, so
// that several processes may use a queue, and one that was killed is missed by
// nobody for longer than its leases.
package queue

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"sync"
	"time"

	"weir/internal/db"
)

var (
	// ErrNotFound tells that there is no such request, file, site or dataset.
	ErrNotFound = errors.New("not found")
	// ErrRefused tells that an order is wrong, or not possible as things stand;
	// its text says why.
	ErrRefused = errors.New("refused")
)

// Options are what a queue is opened with. The zero value serves.
type Options struct {
	Now      func() time.Time   // the coordinator's clock; nil is time.Now
	Rand     func() float64     // in [0, 1), for the jitter of pauses; nil is math/rand/v2's
	Lease    time.Duration      // how long a mover may be silent; 0 is a minute
	Grace    time.Duration      // how long the destination may be asked after that; 0 is two minutes
	Patience time.Duration      // how long files wait for sources that are all down, before they fail; 0 is a day
	Shares   map[string]float64 // weights of shares; one that is not named weighs 1
}

// A Queue is safe for concurrent use. Its errors are db.ErrBusy where the
// database cannot serve now: nothing has changed then, and it can be asked again.
type Queue struct {
	db      *db.DB
	o       Options
	first   int // files that an order changes at once; the others are left to Work
	paces   paces
	breaker circuitBreaker

	mu          sync.Mutex
	fairShare   map[string]*fairShare // of destinations
	worked      int64                 // the request that Work was for
	halted      map[int64]time.Time   // requests for which that failed, until when the others go first
	sourceGroup int64                 // the unreachable source group that was looked at
	places      map[int64]int64       // how far unreachable source groups were looked at
}

//go:embed schema/*.sql
var schema embed.FS

// Open makes the queue's tables in a database that has the catalog's, or brings
// them up to date. The database stays its owner's to close.
func Open(ctx context.Context, d *db.DB, o Options) (*Queue, error) {
	if o.Lease <= 0 {
		o.Lease = time.Minute
	}
	if o.Grace <= 0 {
		o.Grace = 2 * time.Minute
	}
	if o.Patience <= 0 {
		o.Patience = 24 * time.Hour
	}
	files, err := fs.Sub(schema, "schema")
	if err != nil {
		return nil, err
	}
	if err := d.Migrate(ctx, "queue", files); err != nil {
		return nil, err
	}
	q := &Queue{db: d, o: o, first: firstFiles, halted: map[int64]time.Time{}, fairShare: map[string]*fairShare{}, places: map[int64]int64{}}
	return q, q.rewind(ctx)
}

func (q *Queue) now() time.Time {
	if q.o.Now != nil {
		return q.o.Now()
	}
	return time.Now()
}
