package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"weir/internal/db"
	"weir/internal/pause"
	"weir/internal/say"
	"weir/internal/token"
	"weir/transfer/fts"
)

const (
	exchangeTime = 15 * time.Second // for an issuer to renew a token
	longMargin   = 5 * time.Minute  // before the end of a token, in which it is not used if it can be renewed
	refusedPause = 10 * time.Minute // after an issuer has refused to renew a token
	triedPause   = 30 * time.Second // after an issuer could not be reached, at most
	exchangedNow = 100              // tokens that are read at once
	jobBearers   = 24 * time.Hour   // after the end of a job, in which its tokens are kept: it may be tried again
	mostBearers  = 10_000           // in memory, when they are pruned
	removedRows  = 1000             // rows that are removed at once
)

// bearers are the managed tokens of jobs, which the coordinator renews.
type bearers struct {
	clients map[string]*token.Client // by issuer
	mu      sync.Mutex
	kept    map[string]*bearer
	changed pause.Signal
}

// A bearer is a token of jobs that is renewed. It stands for all tokens that give the same rights.
type bearer struct {
	id, issuer, scope string
	audience          []string

	mu      sync.Mutex // held during a request to the issuer: all callers that need the token wait for one response
	access  string
	refresh string        // "": not received yet
	plain   bool          // the issuer gives no refresh token for it
	until   time.Time     // end of the refresh token; zero: it has no end
	idle    time.Duration // from a use of the refresh token to its end, as far as it is known
	expires time.Time
	life    time.Duration // of the token, as far as it is known
	tries   int           // that have failed in a row
	failed  error
	next    time.Time // no try before
}

// bearerSecret is the encrypted part of a bearer.
type bearerSecret struct {
	Access  string `json:"access"`
	Refresh string `json:"refresh,omitempty"`
	Until   int64  `json:"until,omitempty"` // of the refresh token, in nanoseconds since 1970
}

func bearerOwner(id string) string { return "bearer " + id }

// usable reports whether the token can be used without being renewed.
func (b *bearer) usable(now time.Time) bool {
	return now.Before(b.expires.Add(-min(b.life/10, longMargin)))
}

// due returns the time at which the token has to be exchanged, before it expires, or its refresh
// token has to be used, which requires no valid token. It returns the zero time if the refresh
// token has no end.
func (b *bearer) due() time.Time {
	switch {
	case b.refresh == "":
		return b.expires.Add(-b.life / 4)
	case b.until.IsZero():
		return time.Time{}
	}
	return b.until.Add(-b.idle / 4)
}

// inspectBearer returns the id of a token of a job that is renewed, or "" if the token is used as
// it is.
func (c *Control) inspectBearer(ctx context.Context, raw string) (id string, add *bearer, err error) {
	issuer := token.IssuerOf(raw)
	if c.bearers.clients[issuer] == nil {
		return "", nil, nil
	}
	said, err := c.checker.Inspect(ctx, raw)
	switch {
	case errors.Is(err, token.ErrKeys):
		return "", nil, fts.Refuse(http.StatusServiceUnavailable, "Failed to validate access-token: %s", err)
	case err != nil:
		return "", nil, fts.Refuse(http.StatusBadRequest, "Failed to validate access-token: %s", err)
	}
	now := c.now()
	life := said.Expires.Sub(now)
	if !said.Issued.IsZero() {
		life = max(life, min(said.Expires.Sub(said.Issued), 7*24*time.Hour))
	}
	return said.Rights, &bearer{id: said.Rights, issuer: issuer, scope: said.Scope, audience: said.Audience, access: raw,
		expires: said.Expires, life: life}, nil
}

// Keep records the tokens that Read has returned for the files of a job, before the job is submitted.
func (n *TokenReader) Keep(ctx context.Context, job string) error {
	return n.c.keepBearers(ctx, job, n.bearers)
}

func (c *Control) keepBearers(ctx context.Context, job string, all map[string]*bearer) error {
	for _, add := range all {
		b, err := c.bearer(ctx, add.id)
		if errors.Is(err, db.ErrNone) {
			c.bearers.mu.Lock()
			if b = c.bearers.kept[add.id]; b == nil {
				b = add
				c.bearers.kept[add.id] = b
			}
			c.bearers.mu.Unlock()
		} else if err != nil {
			return err
		}
		b.mu.Lock()
		if !b.until.IsZero() && !c.now().Before(b.until) {
			b.refresh, b.until = "", time.Time{}
		}
		if b == add || add.expires.After(b.expires) || b.failed != nil { // also beside a refresh token, which may be dead
			b.access, b.expires, b.life, b.tries, b.failed, b.next = add.access, add.expires, add.life, 0, nil, time.Time{}
		}
		err = c.saveBearerLocked(ctx, b)
		b.mu.Unlock()
		if err == nil {
			err = c.db.Exec(ctx, "INSERT INTO bearer_job (bearer, job) VALUES (?, ?) ON CONFLICT (bearer, job) DO NOTHING", b.id, job)
		}
		if err != nil {
			return err
		}
	}
	c.bearers.changed.Broadcast()
	return nil
}

// saveBearerLocked writes a token to the database. b is locked.
func (c *Control) saveBearerLocked(ctx context.Context, b *bearer) error {
	secret := bearerSecret{Access: b.access, Refresh: b.refresh}
	if !b.until.IsZero() {
		secret.Until = b.until.UnixNano()
	}
	text, err := json.Marshal(secret)
	if err != nil {
		return err
	}
	audience, err := json.Marshal(b.audience)
	if err != nil {
		return err
	}
	return c.db.Exec(ctx, `INSERT INTO bearer (id, issuer, scope, audience, secret, expires, due) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET secret = excluded.secret, expires = excluded.expires, due = excluded.due`,
		b.id, b.issuer, b.scope, string(audience), c.box.Seal(string(text), bearerOwner(b.id)), b.expires, b.due())
}

// bearer returns a token; the error is db.ErrNone if it is not known.
func (c *Control) bearer(ctx context.Context, id string) (*bearer, error) {
	c.bearers.mu.Lock()
	b := c.bearers.kept[id]
	c.bearers.mu.Unlock()
	if b != nil {
		return b, nil
	}
	b = &bearer{id: id}
	err := c.db.Read(ctx, func(tx *db.Tx) error {
		var audience string
		var sealed []byte
		err := tx.Row("SELECT issuer, scope, audience, secret, expires FROM bearer WHERE id = ?", id).
			Scan(&b.issuer, &b.scope, &audience, &sealed, db.When(&b.expires))
		if err != nil {
			return err
		}
		text, err := c.box.Open(sealed, bearerOwner(id))
		if err != nil {
			return err
		}
		var s bearerSecret
		err = errors.Join(json.Unmarshal([]byte(audience), &b.audience), json.Unmarshal([]byte(text), &s))
		if b.access, b.refresh = s.Access, s.Refresh; s.Until != 0 {
			b.until = time.Unix(0, s.Until)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	b.life, b.idle = b.expires.Sub(c.now()), b.until.Sub(c.now()) // the rest of its lifetime
	c.bearers.mu.Lock()
	defer c.bearers.mu.Unlock()
	if other := c.bearers.kept[id]; other != nil {
		return other, nil
	}
	c.bearers.kept[id] = b
	return b, nil
}

// errTooLate is the error of a token that has expired and cannot be refreshed.
var errTooLate = errors.New("it can only be exchanged before it expires")

// A TokenError is the reason why the token of a job cannot be used.
type TokenError struct {
	err   error
	After time.Duration // time to the next try; 0: it is final
}

func (e *TokenError) Error() string { return e.err.Error() }

// fresh returns a valid token of jobs, and renews it if that is necessary. Concurrent callers wait
// for one request to the issuer, which no caller interrupts. Errors about the token are
// *TokenError.
func (c *Control) fresh(ctx context.Context, id string) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*exchangeTime)
	defer cancel()
	b, err := c.bearer(ctx, id)
	if errors.Is(err, db.ErrNone) {
		return "", &TokenError{err: errors.New("the token has expired and was removed after the end of its job: submit the file in a new job")}
	}
	if err != nil {
		return "", err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.usable(c.now()) || b.refresh == "" && c.now().Before(b.due()) {
		return b.access, nil
	}
	err = c.renewBearerLocked(ctx, b)
	if now := c.now(); err == nil || now.Before(b.expires) {
		return b.access, nil
	}
	e := &TokenError{err: fmt.Errorf("the token of %s expired at %s and was not renewed: %w", b.issuer, say.UTC(b.expires), err)}
	if !hopeless(err) {
		e.After = max(b.next.Sub(c.now()), time.Second)
	}
	return "", e
}

// hopeless reports whether an error of a renewal is final, so that a later renewal would fail as
// well.
func hopeless(err error) bool {
	var refused *token.ClientError
	return errors.Is(err, errTooLate) || errors.As(err, &refused) && refused.Final()
}

// renewBearerLocked renews a token, unless a renewal failed recently. b is locked.
func (c *Control) renewBearerLocked(ctx context.Context, b *bearer) error {
	client := c.bearers.clients[b.issuer]
	now := c.now()
	switch {
	case client == nil:
		return errors.New("its issuer has no client in the configuration any more")
	case now.Before(b.next):
		return b.failed
	case b.refresh == "" && !now.Before(b.expires):
		return errors.Join(b.failed, errTooLate)
	}
	ctx, cancel := context.WithTimeout(ctx, exchangeTime)
	defer cancel()
	var got token.Renewed
	var err error
	how := "exchange"
	if b.refresh != "" {
		how = "refresh"
		got, err = client.Refresh(ctx, b.refresh, b.scope, b.audience)
	} else {
		got, err = client.Exchange(ctx, b.access, b.scope, b.audience, b.plain)
	}
	if err != nil {
		b.tries++
		pause := min(time.Second<<min(b.tries-1, 10), triedPause, max(b.life/20, 100*time.Millisecond))
		var refused *token.ClientError
		if b.refresh != "" && errors.As(err, &refused) && refused.Code == "invalid_grant" { // it is dead: the token itself is exchanged
			b.refresh, b.until = "", time.Time{}
			c.health.Database(c.saveBearerLocked(context.WithoutCancel(ctx), b))
		} else if hopeless(err) {
			pause = refusedPause
		}
		b.failed, b.next = err, now.Add(pause)
		c.log.Warn("token of jobs not renewed", "issuer", b.issuer, "how", how, "error", err)
		return err
	}
	b.tries, b.failed, b.next = 0, nil, time.Time{}
	if got.Access != "" {
		b.access, b.expires, b.life = got.Access, got.Expires, got.Expires.Sub(now)
	}
	if got.Refresh != "" {
		b.refresh = got.Refresh
	}
	b.plain, b.until, b.idle = got.Plain, got.Until, got.Until.Sub(now)
	c.log.Debug("token of jobs renewed", "issuer", b.issuer, "how", how, "expires", b.expires)
	// The token is used even if it cannot be saved. It must not be lost when the coordinator stops:
	// the next coordinator could not renew it.
	if err := c.saveBearerLocked(context.WithoutCancel(ctx), b); err != nil {
		c.health.Database(err)
	}
	return nil
}

// ExchangeAll exchanges the tokens of open jobs that have no refresh token yet, before they end, and uses refresh tokens before these end.
func (c *Control) ExchangeAll(ctx context.Context) {
	for len(c.bearers.clients) > 0 && ctx.Err() == nil {
		next := c.bearers.changed.Next()
		var ids []string
		c.health.UntilDone(ctx, func(ctx context.Context) (err error) {
			ids, err = c.dueBearers(ctx)
			return err
		})
		var all sync.WaitGroup
		for some := range slices.Chunk(ids, 8) {
			for _, id := range some {
				all.Go(func() { c.exchange(ctx, id) })
			}
			all.Wait()
		}
		timeout := time.NewTimer(c.nextExchange(ctx))
		select {
		case <-next:
		case <-timeout.C:
		case <-ctx.Done():
		}
		timeout.Stop()
	}
}

// dueBearers returns tokens of open jobs that have to be exchanged now.
func (c *Control) dueBearers(ctx context.Context) ([]string, error) {
	now := c.now()
	return db.Select(ctx, c.db, db.Value[string], `SELECT id FROM bearer WHERE due > 0 AND due <= ? AND (expires >= ? OR due > expires)
		AND EXISTS (SELECT 1 FROM bearer_job j JOIN request r ON r.job = j.job WHERE j.bearer = bearer.id
		AND r.job <> '' AND r.ended = 0) ORDER BY due LIMIT ?`,
		now, now, exchangedNow)
}

// exchange exchanges a token, unless it was exchanged meanwhile.
func (c *Control) exchange(ctx context.Context, id string) {
	b, err := c.bearer(ctx, id)
	if err != nil {
		c.health.Database(err)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if at := b.due(); !at.IsZero() && !c.now().Before(at) {
		_ = c.renewBearerLocked(ctx, b) // it is logged, and tried again until the token has expired
	}
}

// nextExchange returns the time until the next token has to be exchanged, at most a second.
func (c *Control) nextExchange(ctx context.Context) time.Duration {
	wait := time.Second
	var due int64
	err := c.db.Read(ctx, func(tx *db.Tx) error {
		return tx.Row("SELECT COALESCE(MIN(due), 0) FROM bearer WHERE due > ?", c.now()).Scan(&due)
	})
	if err == nil && due > 0 {
		wait = min(wait, max(time.Unix(0, due).Sub(c.now()), 10*time.Millisecond))
	}
	return wait
}

// pruneBearers removes tokens that have expired and belong to no job that is open or ended
// recently.
func (c *Control) pruneBearers(ctx context.Context) error {
	now := c.now()
	if err := c.pruneBearerJobs(ctx, now.Add(-jobBearers)); err != nil {
		return err
	}
	for more := true; more; {
		gone, err := db.Select(ctx, c.db, db.Value[string], "SELECT id FROM bearer WHERE expires < ? AND NOT EXISTS "+
			"(SELECT 1 FROM bearer_job j WHERE j.bearer = bearer.id) ORDER BY expires LIMIT ?", now, removedRows)
		if more = len(gone) == removedRows; err == nil && len(gone) > 0 {
			err = c.db.Exec(ctx, "DELETE FROM bearer WHERE id {{in}} AND expires < ?", gone, now)
		}
		if err != nil {
			return err
		}
		c.bearers.mu.Lock()
		for _, id := range gone {
			delete(c.bearers.kept, id)
		}
		c.bearers.mu.Unlock()
	}
	c.bearers.shrink(now)
	return nil
}

// pruneBearerJobs removes the assignments of tokens to jobs that ended before a time, or do not
// exist.
func (c *Control) pruneBearerJobs(ctx context.Context, before time.Time) error {
	for after, more := "", true; more; {
		jobs, err := db.Select(ctx, c.db, db.Value[string], "SELECT DISTINCT job FROM bearer_job WHERE job > ? ORDER BY job LIMIT ?", after,
			removedRows)
		if err != nil || len(jobs) == 0 {
			return err
		}
		after, more = jobs[len(jobs)-1], len(jobs) == removedRows
		err = c.db.Write(ctx, func(tx *db.Tx) error {
			needed := map[string]bool{}
			_, err := db.All(tx, func(rows *db.Rows) (none struct{}, err error) {
				var job string
				var ended time.Time
				if err = rows.Scan(&job, db.When(&ended)); err == nil && (ended.IsZero() || !ended.Before(before)) {
					needed[job] = true
				}
				return none, err
			}, "SELECT job, ended FROM request WHERE job <> '' AND job {{in}}", jobs)
			if err != nil {
				return err
			}
			over := slices.DeleteFunc(slices.Clone(jobs), func(job string) bool { return needed[job] })
			_, err = tx.Exec("DELETE FROM bearer_job WHERE job {{in}}", over)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// shrink removes from memory the tokens that are not being renewed and will not be renewed soon.
// They are read again when they are needed.
func (all *bearers) shrink(now time.Time) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if len(all.kept) <= mostBearers {
		return
	}
	maps.DeleteFunc(all.kept, func(_ string, b *bearer) bool {
		if !b.mu.TryLock() {
			return false
		}
		defer b.mu.Unlock()
		return !now.Before(b.expires) || b.usable(now) && (b.refresh != "" || now.Before(b.due()))
	})
}
