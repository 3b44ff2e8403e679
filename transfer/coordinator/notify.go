package coordinator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	"weir/transfer/notify"
	"weir/transfer/queue"
)

const (
	notifyAtOnce  = 4                   // attempts at once for a target
	notifyBatch   = 10 * notifyAtOnce   // that are read at once
	notifyFiles   = 20                  // files that a notification names
	notifyFirst   = 2 * time.Second     // pause after a failed attempt, which doubles up to
	notifyLongest = time.Hour           // this one
	notifyGiveUp  = 3 * 24 * time.Hour  // after which a notification is given up
	notifyKept    = 14 * 24 * time.Hour // for which one is listed
	notifyListed  = 200
	notifyTest    = 20 * time.Second // for a test, whose caller waits
)

// openNotify opens the targets. Requests that end from now on are notified; with targets that were
// there before, also those that have ended since.
func (c *Coordinator) openNotify(ctx context.Context) error {
	for _, t := range c.conf.Notify {
		s, err := notify.New(t)
		if err != nil {
			return err
		}
		c.senders = append(c.senders, s)
	}
	if len(c.senders) == 0 {
		return c.db.Exec(ctx, "DELETE FROM notified")
	}
	return c.db.Exec(ctx, "INSERT INTO notified (one, event) SELECT 1, id FROM event_last WHERE one = 1 ON CONFLICT DO NOTHING")
}

// notifyAll makes notifications of requests that end, until ctx ends. It follows the events, so the
// queue does not wait for it.
func (c *Coordinator) notifyAll(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for _, s := range c.senders {
		running.Go(func() { c.deliverAll(ctx, s) })
	}
	for len(c.senders) > 0 && ctx.Err() == nil {
		next, more := c.eventsChanged.next(), false
		c.untilDone(ctx, func(ctx context.Context) (err error) {
			more, err = c.notifyEnded(ctx)
			return err
		})
		if !more {
			await(ctx, next)
			pause.For(ctx, eventPause)
		}
	}
}

// notifyEnded makes notifications of the next events, and reports whether there may be more.
func (c *Coordinator) notifyEnded(ctx context.Context) (more bool, err error) {
	last, err := db.Select(ctx, c.db, db.Value[int64], "SELECT event FROM notified")
	if err != nil || len(last) == 0 {
		return false, err
	}
	list, err := c.queue.Events(ctx, last[0], eventPage)
	if err != nil || len(list) == 0 {
		return false, err
	}
	if list[0].ID > last[0]+1 {
		c.log.Warn("old events are gone: requests that ended with them are not notified", "events", list[0].ID-last[0]-1)
	}
	var rows [][]any
	for _, e := range list {
		if e.Item != 0 || !e.Status.Ended() || e.Status == "" {
			continue
		}
		some, err := c.notificationsOf(ctx, e)
		if errors.Is(err, queue.ErrNotFound) { // it was forgotten meanwhile
			c.log.Warn("a request that ended is not notified: it was removed", "request", e.Request)
			continue
		}
		if err != nil {
			return false, err
		}
		rows = append(rows, some...)
	}
	err = c.db.Write(ctx, func(tx *db.Tx) error {
		_, err := tx.Many(`INSERT INTO notification (target, id, request, status, body, made, due, tries, problem, ended)
			VALUES (?, ?, ?, ?, ?, ?, ?, 0, '', 0) ON CONFLICT DO NOTHING`, db.Each(rows, func(r []any) []any { return r }))
		if err == nil {
			_, err = tx.Exec("UPDATE notified SET event = ?", list[len(list)-1].ID)
		}
		return err
	})
	if err == nil && len(rows) > 0 {
		c.notified.broadcast()
	}
	return len(list) == eventPage, err
}

// notificationsOf returns the rows of the notifications of an event. All events of one end have the same time,
// so they have one ID.
func (c *Coordinator) notificationsOf(ctx context.Context, e transfer.Event) (rows [][]any, err error) {
	var body []byte
	now, id := c.now(), fmt.Sprintf("%d-%s", e.Request, strconv.FormatInt(e.Time.UnixNano(), 36))
	for _, s := range c.senders {
		if !s.Wants(e.Status) {
			continue
		}
		if body == nil {
			if body, err = c.notification(ctx, e, id); err != nil {
				return nil, err
			}
		}
		rows = append(rows, []any{s.Name, id, e.Request, string(e.Status), string(body), now, now})
	}
	return rows, nil
}

// notification returns the JSON of a notification.
func (c *Coordinator) notification(ctx context.Context, e transfer.Event, id string) ([]byte, error) {
	r, err := c.queue.Get(ctx, e.Request)
	if err != nil {
		return nil, err
	}
	m := notify.Message{ID: id, Type: "request." + string(e.Status), Time: e.Time, Coordinator: c.url, Text: e.Text, Request: &r}
	items, err := c.queue.First(ctx, e.Request, []transfer.State{transfer.FileFailed, transfer.FileCancelled}, notifyFiles)
	if err != nil {
		return nil, err
	}
	for _, i := range items {
		m.Files = append(m.Files, notify.File{Name: i.Name, State: i.State, Reason: i.Reason, Source: i.Source})
	}
	m.MoreFiles = max(r.Count.Failed+r.Count.Cancelled-int64(len(items)), 0)
	r.Files = nil // they may be many
	return json.Marshal(m)
}

// deliverAll delivers the notifications of a target until ctx ends.
func (c *Coordinator) deliverAll(ctx context.Context, s *notify.Sender) {
	for ctx.Err() == nil {
		next, n := c.notified.next(), 0
		c.untilDone(ctx, func(ctx context.Context) (err error) {
			n, err = c.deliverDue(ctx, s)
			return err
		})
		if n < notifyBatch {
			await(ctx, next)
		}
	}
}

// A pending is a notification that is to be delivered.
type pending struct {
	id, body string
	made     time.Time
	tries    int
}

// deliverDue tries the notifications of a target that are due, and returns how many there were. Those
// that are due too late were written before the clock was set back.
func (c *Coordinator) deliverDue(ctx context.Context, s *notify.Sender) (n int, err error) {
	now := c.now()
	list, err := db.Select(ctx, c.db, func(r *db.Rows) (p pending, err error) {
		return p, r.Scan(&p.id, &p.body, db.When(&p.made), &p.tries)
	}, "SELECT id, body, made, tries FROM notification WHERE target = ? AND ended = 0 AND (due <= ? OR due > ?) ORDER BY due, id LIMIT ?",
		s.Name, now, now.Add(2*notifyLongest), notifyBatch)
	var running sync.WaitGroup
	places, errs := make(chan struct{}, notifyAtOnce), make([]error, len(list))
	for i, p := range list {
		places <- struct{}{}
		running.Go(func() {
			defer func() { <-places }()
			errs[i] = c.deliver(ctx, s, p)
		})
	}
	running.Wait()
	return len(list), errors.Join(err, errors.Join(errs...))
}

// deliver tries one notification. Its error is the database's.
func (c *Coordinator) deliver(ctx context.Context, s *notify.Sender, p pending) error {
	var m notify.Message
	err := json.Unmarshal([]byte(p.body), &m)
	var after time.Duration
	if err == nil {
		after, err = s.Send(ctx, &m, []byte(p.body))
	}
	if ctx.Err() != nil {
		return nil // it is tried again at the next start
	}
	now, ended, problem := c.now(), time.Time{}, ""
	switch {
	case err == nil:
		ended = now
		c.log.Info("notified", "target", s.Name, "notification", p.id, "about", m.Text)
	case now.Sub(p.made) > notifyGiveUp:
		ended, problem = now, err.Error()
		c.log.Warn("a notification was given up", "target", s.Name, "notification", p.id, "tries", p.tries+1, "error", err)
	default:
		problem = err.Error()
		c.log.Warn("a notification was not delivered", "target", s.Name, "notification", p.id, "tries", p.tries+1, "error", err)
	}
	due := now.Add(max(after, notifyPause(p.tries, rand.Float64())))
	return c.db.Exec(ctx, "UPDATE notification SET tries = tries + 1, problem = ?, due = ?, ended = ? WHERE target = ? AND id = ?",
		problem, due, ended, s.Name, p.id)
}

// notifyPause returns the pause after so many failed attempts and one more: a random part, at least half, of a
// time that doubles.
func notifyPause(tries int, random float64) time.Duration {
	d := notifyFirst
	for range min(tries, 20) {
		d = min(2*d, notifyLongest)
	}
	return d/2 + time.Duration(random*float64(d/2))
}

// listNotifications answers with notifications, the latest first.
func (c *Coordinator) listNotifications(q *call, _ *struct{}) ([]transfer.Notification, error) {
	const query = "SELECT target, id, request, status, made, due, tries, problem, ended FROM notification ORDER BY made DESC LIMIT ?"
	all, err := db.Select(q.Context(), c.db, func(r *db.Rows) (n transfer.Notification, err error) {
		err = r.Scan(&n.Target, &n.ID, &n.Request, &n.Status, db.When(&n.Made), db.When(&n.Due), &n.Tries, &n.Problem, db.When(&n.Ended))
		n.Delivered = !n.Ended.IsZero() && n.Problem == ""
		return n, err
	}, query, notifyListed)
	slices.SortFunc(all, func(a, b transfer.Notification) int {
		return cmp.Or(b.Made.Compare(a.Made), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Target, b.Target))
	})
	return orEmpty(all), err
}

// testNotify sends a test to a target, or to all, and answers with what came of it.
func (c *Coordinator) testNotify(q *call, in *transfer.NotifyTest) ([]transfer.NotifyResult, error) {
	var senders []*notify.Sender
	for _, s := range c.senders {
		if in.Target == "" || in.Target == s.Name {
			senders = append(senders, s)
		}
	}
	switch {
	case len(senders) == 0 && in.Target != "":
		return nil, wire.Refuse(http.StatusNotFound, "the coordinator has no target %.100q of notifications", in.Target)
	case len(senders) == 0:
		return nil, wire.Refuse(http.StatusNotFound, "the coordinator has no targets of notifications: "+
			"its configuration file names them (notify)")
	}
	m := notify.Message{ID: fmt.Sprintf("test-%d", c.now().UnixNano()), Type: "test", Time: c.now(), Coordinator: c.url,
		Text: "this is a test of notifications, which " + q.name + " asked for"}
	body, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(q.Context(), notifyTest)
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
