package queue

import (
	"context"
	"maps"
	"sync"
	"time"

	"weir/internal/db"
)

// ahead is the tolerated lead of an earlier process's clock: clocks differ.
const ahead = 30 * time.Second

// rewind moves back the times deferred by an earlier process, if its clock was ahead of this clock:
// otherwise a pause of a minute would last until this clock has caught up.
func (q *Queue) rewind(ctx context.Context) error {
	now := q.now()
	return q.db.Write(ctx, func(tx *db.Tx) error {
		var last time.Time
		for table, column := range map[string]string{"lease": "heard", "attempt": "ended", "site": "seen"} {
			var at time.Time
			if err := tx.Row("SELECT COALESCE(MAX(" + column + "), 0) FROM " + table).Scan(db.When(&at)); err != nil {
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

// Shift moves deferred times along with a clock that was set by so much: files do not pause for
// hours, and leases do not all expire at once.
func (q *Queue) Shift(ctx context.Context, by time.Duration) error {
	now := q.now()
	return q.db.Write(ctx, func(tx *db.Tx) error { return q.shift(tx, by, now) })
}

// shift moves times that were written before the clock was set, as far as they can be identified. A
// time that is moved wrongly is only due too early.
func (q *Queue) shift(tx *db.Tx, by time.Duration, now time.Time) error {
	n := by.Nanoseconds()
	if _, err := tx.Exec("UPDATE tape SET until = until + ?, due = CASE WHEN due > ? THEN due + ? ELSE due END WHERE due > 0", n, now,
		min(n, 0)); err != nil {
		return err
	}
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

// rateSpan is the period over which a request's rate is measured.
const rateSpan = 10 * time.Second

// rates holds the bytes that requests have moved in the last seconds. They are in memory only.
type rates struct {
	mu  sync.Mutex
	all map[int64][]moment
}

// A moment is a number of bytes, with the time when they were reported.
type moment struct {
	at    time.Time
	bytes int64
}

func (p *rates) add(request, bytes int64, now time.Time) {
	if bytes <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = map[int64][]moment{}
	}
	of := recent(p.all[request], now)
	if n := len(of); n > 0 && now.Sub(of[n-1].at) < rateSpan/20 {
		of[n-1].bytes += bytes
	} else {
		of = append(of, moment{now, bytes})
	}
	p.all[request] = of
}

// rate returns the bytes per second of a request.
func (p *rates) rate(request int64, now time.Time) float64 {
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
	return float64(sum) / rateSpan.Seconds()
}

// forget removes a request that has ended.
func (p *rates) forget(request int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, request)
}

// prune removes the rates of requests that move nothing.
func (p *rates) prune(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.all, func(_ int64, of []moment) bool { return len(recent(of, now)) == 0 })
}

func recent(of []moment, now time.Time) []moment {
	for len(of) > 0 && now.Sub(of[0].at) > rateSpan {
		of = of[1:]
	}
	return of
}
