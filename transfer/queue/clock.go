package queue

import (
	"context"
	"sync"
	"time"

	"weir/internal/db"
)

// ahead is how far in the future the past may lie: clocks differ a little.
const ahead = 30 * time.Second

// rewind takes back what an earlier process has put off, if its clock was ahead of
// what it is now: otherwise files that rest for a minute would do so until this
// clock has come as far as that one was.
func (q *Queue) rewind(ctx context.Context) error {
	now := q.now()
	return q.db.Write(ctx, func(tx *db.Tx) error {
		var last time.Time
		for _, query := range []string{"SELECT COALESCE(MAX(heard), 0) FROM lease", "SELECT COALESCE(MAX(ended), 0) FROM attempt", "SELECT COALESCE(MAX(seen), 0) FROM site"} {
			var at time.Time
			if err := tx.Row(query).Scan(db.When(&at)); err != nil {
				return err
			}
			if at.After(last) {
				last = at
			}
		}
		back := last.Sub(now)
		if back <= ahead {
			return nil
		}
		return q.shift(tx, -back, now)
	})
}

// Shift has what is put off go along with a clock that was set by so much: files do
// not rest for hours, and leases do not all run out at once.
func (q *Queue) Shift(ctx context.Context, by time.Duration) error {
	now := q.now()
	return q.db.Write(ctx, func(tx *db.Tx) error { return q.shift(tx, by, now) })
}

// shift changes what was written before the clock was set, as far as that can be
// told: nobody noticed at once. What is changed wrongly is only due too early.
func (q *Queue) shift(tx *db.Tx, by time.Duration, now time.Time) error {
	n := by.Nanoseconds()
	if by > 0 {
		_, err := tx.Exec("UPDATE lease SET until = until + ?, heard = heard + ? WHERE until <= ?", n, n, now)
		return err
	}
	if _, err := tx.Exec("UPDATE item SET due = due + ? WHERE state = 2 AND due > ?", n, now); err != nil {
		return err
	}
	if _, err := tx.Exec("UPDATE hold SET until = until + ? WHERE until > ?", n, now); err != nil {
		return err
	}
	_, err := tx.Exec("UPDATE lease SET until = until + ?, heard = heard + ? WHERE until > ?", n, n, now.Add(q.o.Lease))
	return err
}

// paceSpan is over how long a request's rate is taken.
const paceSpan = 10 * time.Second

// Paces are how many bytes requests have moved in the last seconds. They are in
// memory only.
type paces struct {
	mu  sync.Mutex
	all map[int64][]pace
}

// A pace is what was moved by a moment.
type pace struct {
	at    time.Time
	bytes int64
}

func (p *paces) add(request, bytes int64, now time.Time) {
	if bytes <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = map[int64][]pace{}
	}
	of := recent(p.all[request], now)
	if n := len(of); n > 0 && now.Sub(of[n-1].at) < paceSpan/20 {
		of[n-1].bytes += bytes
	} else {
		of = append(of, pace{now, bytes})
	}
	p.all[request] = of
}

// rate is in bytes per second.
func (p *paces) rate(request int64, now time.Time) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := recent(p.all[request], now)
	if len(of) == 0 {
		delete(p.all, request)
		return 0
	}
	p.all[request] = of
	var sum int64
	for _, one := range of {
		sum += one.bytes
	}
	return float64(sum) / paceSpan.Seconds()
}

// forget drops a request that has ended.
func (p *paces) forget(request int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, request)
}

func recent(of []pace, now time.Time) []pace {
	for len(of) > 0 && now.Sub(of[0].at) > paceSpan {
		of = of[1:]
	}
	return of
}
