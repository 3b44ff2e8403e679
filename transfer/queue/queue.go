// Package queue keeps requests, their files, leases and attempts in a database.
//
// It is the state machine of package transfer. A change of a file, of the counters of its request
// and, with the last file, of the request's status are one transaction. A lease has an epoch; a
// report of the holder of an older epoch is stored as an attempt and changes nothing. The package
// has no goroutines and no network: the coordinator calls Work, Waiting, Take, Report and Expire
// again and again.
//
// Everything is in the database except the fair shares and the rates, so several processes may use
// a queue, and the leases of a killed process expire.
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
	// ErrNotFound is the error of a request, file, site or dataset that does not exist.
	ErrNotFound = errors.New("not found")
	// ErrRefused is the error of a change that is invalid, or not possible now; its text contains
	// the reason.
	ErrRefused = errors.New("refused")
)

// Options configure a Queue. The zero value has the defaults.
type Options struct {
	Now      func() time.Time        // the coordinator's clock; nil is time.Now
	Rand     func() float64          // in [0, 1), for the jitter of pauses; nil is math/rand/v2's
	Lease    time.Duration           // time without a report after which a lease expires; 0 is a minute
	Grace    time.Duration           // time to check the destination after that; 0 is two minutes
	Patience time.Duration           // time that files wait for sources that are all down, before they fail; 0 is a day
	Shares   map[string]float64      // weights of shares, by name; the default is 1
	Changes  bool                    // keep the changes of files of jobs until RemoveChanges
	Keys     func(*JobState) JobKeys // keys by which jobs are found; nil: the user who submitted them, and whether they have ended
	Ended    func(Ended)             // is called after each transaction that changed files, from several goroutines; may be nil
}

// A Queue is safe for concurrent use. Its errors are db.ErrBusy if the database is not available
// now: nothing has changed then, and the call can be repeated.
type Queue struct {
	Read *Reader

	db      *db.DB
	o       Options
	first   int // files that a change of a request changes at once; the others are left to Work
	rates   rates
	breaker circuitBreaker

	mu          sync.Mutex
	shares      map[string]float64    // weights
	fairShare   map[string]*fairShare // of destinations
	worked      int64                 // the request of the last Work
	halted      map[int64]time.Time   // requests for which Work failed, with the time until which the others go first
	sourceGroup int64                 // the unreachable source group that was handled last
	places      map[int64]int64       // the last handled file of unreachable source groups
}

//go:embed schema/*.sql
var schema embed.FS

// Open creates the queue's tables in a database that has the catalog's tables, or brings them up to
// date. The caller remains responsible for closing the database.
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
	q := &Queue{db: d, o: o, first: firstFiles, shares: o.Shares,
		halted: map[int64]time.Time{}, fairShare: map[string]*fairShare{}, places: map[int64]int64{}}
	q.Read = &Reader{db: d, now: q.now, keys: o.Keys, rates: &q.rates}
	if err := q.rewind(ctx); err != nil {
		return nil, err
	}
	return q, nil
}

// SetShares sets the weights of shares, by name; the default is 1. The caller must not change the
// map afterwards.
func (q *Queue) SetShares(weights map[string]float64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shares = weights
	for _, t := range q.fairShare {
		t.weights = weights
	}
}

func (q *Queue) now() time.Time {
	if q.o.Now != nil {
		return q.o.Now()
	}
	return time.Now()
}
