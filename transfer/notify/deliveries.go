package notify

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"weir/internal/db"
	"weir/internal/pause"
	"weir/internal/wire"
	"weir/transfer"
	"weir/transfer/health"
	"weir/transfer/queue"
)

// Kept is the time for which a notification is listed.
const Kept = 14 * 24 * time.Hour

const (
	notifyAtOnce  = 4                  // attempts at once for a target
	notifyBatch   = 10 * notifyAtOnce  // that are read at once
	notifyFiles   = 20                 // files that a notification names
	notifyFirst   = 2 * time.Second    // pause after a failed attempt, which doubles up to
	notifyLongest = time.Hour          // this pause
	notifyGiveUp  = 3 * 24 * time.Hour // after which a notification is given up
	notifyListed  = 200
	eventPage     = 500
	eventPause    = 200 * time.Millisecond // in which events are collected
	notifyTest    = 20 * time.Second       // for a test, whose caller waits
)

// A Config configures Deliveries.
type Config struct {
	Targets []Target
	DB      *db.DB
	Queue   *queue.Queue
	Health  *health.Health
	Log     *slog.Logger
	Now     func() time.Time
	Events  *pause.Signal // requests have changed
}

// Deliveries create notifications about requests that end, and deliver them to the targets.
type Deliveries struct {
	db      *db.DB
	queue   *queue.Queue
	health  *health.Health
	log     *slog.Logger
	now     func() time.Time
	events  *pause.Signal
	senders []*Sender
	made    pause.Signal // there are notifications to deliver
}

// Open opens the targets. Requests that end from now on cause notifications. If targets were
// configured before, requests that have ended since then also cause notifications.
func Open(ctx context.Context, c Config) (*Deliveries, error) {
	d := &Deliveries{db: c.DB, queue: c.Queue, health: c.Health, log: c.Log, now: c.Now, events: c.Events}
	for _, t := range c.Targets {
		s, err := New(t)
		if err != nil {
			return nil, err
		}
		d.senders = append(d.senders, s)
	}
	if len(d.senders) == 0 {
		return d, d.db.Exec(ctx, "DELETE FROM notified")
	}
	return d, d.db.Exec(ctx, "INSERT INTO notified (one, event) SELECT 1, id FROM event_last WHERE one = 1 ON CONFLICT DO NOTHING")
}

// Run creates and delivers notifications until ctx ends. service is the URL of the coordinator. It
// follows the events, so that the queue does not wait for it.
func (d *Deliveries) Run(ctx context.Context, service string) {
	var running sync.WaitGroup
	defer running.Wait()
	for _, s := range d.senders {
		running.Go(func() { d.deliverAll(ctx, s) })
	}
	for len(d.senders) > 0 && ctx.Err() == nil {
		next, more := d.events.Next(), false
		d.health.UntilDone(ctx, func(ctx context.Context) (err error) {
			more, err = d.notifyEnded(ctx, service)
			return err
		})
		if !more {
			pause.Await(ctx, next)
			pause.For(ctx, eventPause)
		}
	}
}

// notifyEnded creates the notifications of the next events, and reports whether there may be more
// events.
func (d *Deliveries) notifyEnded(ctx context.Context, service string) (more bool, err error) {
	last, err := db.Select(ctx, d.db, db.Value[int64], "SELECT event FROM notified")
	if err != nil || len(last) == 0 {
		return false, err
	}
	list, err := d.queue.Read.Events(ctx, last[0], eventPage)
	if err != nil || len(list) == 0 {
		return false, err
	}
	if list[0].ID > last[0]+1 {
		d.log.Warn("old events are gone: requests that ended with them are not notified", "events", list[0].ID-last[0]-1)
	}
	var rows [][]any
	for _, e := range list {
		if e.Item != 0 || !e.Status.Ended() || e.Status == "" {
			continue
		}
		some, err := d.notificationsOf(ctx, e, service)
		if errors.Is(err, queue.ErrNotFound) { // it was removed meanwhile
			d.log.Warn("a request that ended is not notified: it was removed", "request", e.Request)
			continue
		}
		if err != nil {
			return false, err
		}
		rows = append(rows, some...)
	}
	err = d.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Many(`INSERT INTO notification (target, id, request, status, body, made, due, tries, problem, ended)
			VALUES (?, ?, ?, ?, ?, ?, ?, 0, '', 0) ON CONFLICT DO NOTHING`, db.Each(rows, func(r []any) []any { return r }))
		if err == nil {
			_, err = tx.Exec("UPDATE notified SET event = ?", list[len(list)-1].ID)
		}
		return err
	})
	if err == nil && len(rows) > 0 {
		d.made.Broadcast()
	}
	return len(list) == eventPage, err
}

// notificationsOf returns the rows of the notifications of an event. All events about one end of a
// request have the same time, and thus the same ID.
func (d *Deliveries) notificationsOf(ctx context.Context, e transfer.Event, service string) (rows [][]any, err error) {
	var body []byte
	now, id := d.now(), fmt.Sprintf("%d-%s", e.Request, strconv.FormatInt(e.Time.UnixNano(), 36))
	for _, s := range d.senders {
		if !s.Wants(e.Status) {
			continue
		}
		if body == nil {
			if body, err = d.notification(ctx, e, id, service); err != nil {
				return nil, err
			}
		}
		rows = append(rows, []any{s.Name, id, e.Request, string(e.Status), string(body), now, now})
	}
	return rows, nil
}

// notification returns the JSON of a notification.
func (d *Deliveries) notification(ctx context.Context, e transfer.Event, id, service string) ([]byte, error) {
	r, err := d.queue.Read.Get(ctx, e.Request)
	if err != nil {
		return nil, err
	}
	m := Message{ID: id, Type: "request." + string(e.Status), Time: e.Time, Coordinator: service, Text: e.Text, Request: &r}
	items, err := d.queue.Read.First(ctx, e.Request, []transfer.State{transfer.FileFailed, transfer.FileCancelled}, notifyFiles)
	if err != nil {
		return nil, err
	}
	for _, i := range items {
		m.Files = append(m.Files, File{Name: i.Name, State: i.State, Reason: i.Reason, Source: i.Source})
	}
	m.MoreFiles = max(r.Count.Failed+r.Count.Cancelled-int64(len(items)), 0)
	r.Files = nil // there may be many
	return json.Marshal(m)
}

// deliverAll delivers the notifications of a target until ctx ends.
func (d *Deliveries) deliverAll(ctx context.Context, s *Sender) {
	for ctx.Err() == nil {
		next, n := d.made.Next(), 0
		d.health.UntilDone(ctx, func(ctx context.Context) (err error) {
			n, err = d.deliverDue(ctx, s)
			return err
		})
		if n < notifyBatch {
			pause.Await(ctx, next)
		}
	}
}

// A pending is a notification that has not been delivered.
type pending struct {
	id, body string
	made     time.Time
	tries    int
}

// deliverDue tries the notifications of a target that are due, and returns their number. It
// includes notifications that are due too far in the future, because they were written before the
// clock was set back.
func (d *Deliveries) deliverDue(ctx context.Context, s *Sender) (n int, err error) {
	now := d.now()
	list, err := db.Select(ctx, d.db, func(r *db.Rows) (p pending, err error) {
		return p, r.Scan(&p.id, &p.body, db.When(&p.made), &p.tries)
	}, "SELECT id, body, made, tries FROM notification WHERE target = ? AND ended = 0 AND (due <= ? OR due > ?) ORDER BY due, id LIMIT ?",
		s.Name, now, now.Add(2*notifyLongest), notifyBatch)
	var running sync.WaitGroup
	places, errs := make(chan struct{}, notifyAtOnce), make([]error, len(list))
	for i, p := range list {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			errs[i] = d.deliver(ctx, s, p)
		})
	}
	running.Wait()
	return len(list), errors.Join(err, errors.Join(errs...))
}

// deliver tries one notification. Its error is the database's.
func (d *Deliveries) deliver(ctx context.Context, s *Sender, p pending) error {
	var m Message
	err := json.Unmarshal([]byte(p.body), &m)
	var after time.Duration
	if err == nil {
		after, err = s.Send(ctx, &m, []byte(p.body))
	}
	if ctx.Err() != nil {
		return nil // it is tried again at the next start
	}
	now, ended, problem := d.now(), time.Time{}, ""
	switch {
	case err == nil:
		ended = now
		d.log.Info("notified", "target", s.Name, "notification", p.id, "about", m.Text)
	case now.Sub(p.made) > notifyGiveUp:
		ended, problem = now, err.Error()
		d.log.Warn("a notification was given up", "target", s.Name, "notification", p.id, "tries", p.tries+1, "error", err)
	default:
		problem = err.Error()
		d.log.Warn("a notification was not delivered", "target", s.Name, "notification", p.id, "tries", p.tries+1, "error", err)
	}
	due := now.Add(max(after, notifyPause(p.tries, rand.Float64())))
	return d.db.Exec(ctx, "UPDATE notification SET tries = tries + 1, problem = ?, due = ?, ended = ? WHERE target = ? AND id = ?",
		problem, due, ended, s.Name, p.id)
}

// notifyPause returns the pause after tries failed attempts and one more: a random part, at least
// half, of a time that doubles.
func notifyPause(tries int, random float64) time.Duration {
	wait := notifyFirst
	for range min(tries, 20) {
		wait = min(2*wait, notifyLongest)
	}
	return wait/2 + time.Duration(random*float64(wait/2))
}

// List returns notifications, the latest first.
func (d *Deliveries) List(ctx context.Context) ([]transfer.Notification, error) {
	const query = "SELECT target, id, request, status, made, due, tries, problem, ended FROM notification ORDER BY made DESC LIMIT ?"
	all, err := db.Select(ctx, d.db, func(r *db.Rows) (n transfer.Notification, err error) {
		err = r.Scan(&n.Target, &n.ID, &n.Request, &n.Status, db.When(&n.Made), db.When(&n.Due), &n.Tries, &n.Problem, db.When(&n.Ended))
		n.Delivered = !n.Ended.IsZero() && n.Problem == ""
		return n, err
	}, query, notifyListed)
	slices.SortFunc(all, func(a, b transfer.Notification) int {
		return cmp.Or(b.Made.Compare(a.Made), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Target, b.Target))
	})
	return all, err
}

// Test sends a test to a target, or to all (""), and returns the results. by is the requesting user.
func (d *Deliveries) Test(ctx context.Context, target, by, service string) ([]transfer.NotifyResult, error) {
	var senders []*Sender
	for _, s := range d.senders {
		if target == "" || target == s.Name {
			senders = append(senders, s)
		}
	}
	switch {
	case len(senders) == 0 && target != "":
		return nil, wire.Refuse(http.StatusNotFound, "the coordinator has no target %.100q of notifications", target)
	case len(senders) == 0:
		return nil, wire.Refuse(http.StatusNotFound, "the coordinator has no targets of notifications: "+
			"its configuration file names them (notify)")
	}
	m := Message{ID: fmt.Sprintf("test-%d", d.now().UnixNano()), Type: "test", Time: d.now(), Coordinator: service,
		Text: "this is a test of notifications, which " + by + " asked for"}
	body, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, notifyTest)
	defer cancel()
	var running sync.WaitGroup
	all := make([]transfer.NotifyResult, len(senders))
	for i, s := range senders {
		running.Go(func() {
			begin := time.Now()
			all[i] = transfer.NotifyResult{Target: s.Name, Kind: s.Kind()}
			if _, err := s.Send(ctx, &m, body); err != nil {
				all[i].Problem = err.Error()
			}
			all[i].Seconds = time.Since(begin).Seconds()
		})
	}
	running.Wait()
	return all, nil
}
