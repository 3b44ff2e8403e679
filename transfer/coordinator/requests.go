package coordinator

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"weir/internal/unit"
	"weir/internal/wire"
	"weir/transfer"
)

const mostStates = 7 // of files

// submit adds a request.
func (c *Coordinator) submit(q *call, in *transfer.Submission) (transfer.Request, error) {
	if in.Approve && !q.has(mayApprove) {
		return transfer.Request{}, wire.Refuse(http.StatusForbidden,
			"to approve it at once requires the role %s: submit it without approval, and somebody else approves it", mayApprove)
	}
	if err := cmp.Or(c.refuseBanned(q.caller, in.To), c.checkMode(in)); err != nil {
		return transfer.Request{}, err
	}
	done, err := c.admit(q, max(len(in.Files), 1))
	if err != nil {
		return transfer.Request{}, err
	}
	defer done()
	in.Approve = in.Approve || c.conf.Approve < 0
	r, err := c.queue.Submit(q.Context(), q.name, *in)
	if err == nil && r.Status == transfer.Awaiting && r.Asked.Bytes <= c.conf.Approve {
		why := fmt.Sprintf("%s are no more than %s", unit.Bytes(float64(r.Asked.Bytes)), unit.Bytes(float64(c.conf.Approve)))
		r, err = c.queue.Approve(q.Context(), r.ID, "rule", why)
	}
	if err != nil {
		return r, err
	}
	c.log.Info("request submitted", "request", r.ID, "by", q.name, "dataset", in.Dataset, "to", in.To, "status", string(r.Status),
		"rule", r.Reason)
	c.wakeAll()
	return r, nil
}

// refuseBanned refuses banned users, and requests to a site that is banned.
func (c *Coordinator) refuseBanned(w caller, to string) error {
	err := c.refuseBannedUser(w)
	if b, banned := c.registry.bannedSites()[to]; err == nil && banned && b.Status != banAccepts {
		err = errors.New(b.why())
	}
	if err == nil {
		return nil
	}
	return wire.Refuse(http.StatusForbidden, "%s", err)
}

// checkMode refuses modes that the destination does not support.
func (c *Coordinator) checkMode(in *transfer.Submission) error {
	to, known := c.registry.site(in.To)
	if in.Mode == transfer.Third && known && to.Kind == agentKind && to.URL == "" {
		return wire.Refuse(http.StatusConflict,
			"mode third: site %s has no endpoint that others can reach (its agent runs with --no-endpoint): use pull, or omit the mode", in.To)
	}
	return nil
}

// wakeAll wakes the loops that a change of a request concerns.
func (c *Coordinator) wakeAll() {
	c.registry.mu.Lock()
	clear(c.registry.backoff)
	c.registry.mu.Unlock()
	c.work.broadcast()
	c.wake.broadcast()
	c.eventsChanged.broadcast()
}

// A decisionBody is the body of a decision about a request.
type decisionBody struct {
	Reason string `json:"reason,omitempty"`
}

// decisionHandler returns a handler for decisions. decide changes the request.
func (c *Coordinator) decisionHandler(
	what string, decide func(ctx context.Context, id int64, by, reason string) (transfer.Request, error),
) func(*call, *decisionBody) (transfer.Request, error) {
	return func(q *call, in *decisionBody) (transfer.Request, error) {
		if err := c.mayDecide(q, what); err != nil {
			return transfer.Request{}, err
		}
		if len(in.Reason) > longestReason {
			return transfer.Request{}, wire.Refuse(http.StatusBadRequest, "the reason has more than %d bytes", longestReason)
		}
		r, err := decide(q.Context(), q.number, q.name, in.Reason)
		if err == nil {
			c.log.Info("request decided", "request", q.number, "decision", what, "by", q.name)
			c.wakeAll()
		}
		return r, err
	}
}

// mayDecide refuses callers who may not decide. Users may cancel and retry their own requests.
func (c *Coordinator) mayDecide(q *call, what string) error {
	if q.has(mayApprove) {
		return nil
	}
	if err := q.need(maySubmit); err != nil {
		return err
	}
	r, err := c.queue.Get(q.Context(), q.number)
	if err == nil && r.By != q.name {
		err = wire.Refuse(http.StatusForbidden, "request %d was submitted by %s: to %s it requires the role %s", q.number, r.By, what, mayApprove)
	}
	return err
}

// cancel cancels a request and aborts its transfers.
func (c *Coordinator) cancel(ctx context.Context, id int64, by, reason string) (transfer.Request, error) {
	r, err := c.queue.Cancel(ctx, id, by, reason)
	if err != nil {
		return r, err
	}
	c.abortAll(ctx, func(l *activeLease) bool { return l.Request == id })
	return c.queue.Get(ctx, id)
}

// abortAll aborts the chosen leases. Those that are being taken get no mover.
func (c *Coordinator) abortAll(ctx context.Context, chosen func(*activeLease) bool) {
	var never []transfer.Outcome
	c.registry.mu.Lock()
	for _, l := range c.registry.leases {
		if !l.cancelled && chosen(l) && c.abortLocked(l) {
			never = append(never, c.failedLocked(l, transfer.RequestCancelled, errCancelled.Error()))
		}
	}
	for _, p := range c.registry.plans {
		p.cancelled = p.cancelled || chosen(&p.activeLease)
	}
	c.registry.mu.Unlock()
	if err := c.applyOutcomes(ctx, "", never); err != nil {
		c.health.database(err) // the leases expire
	}
}

// list answers with requests.
func (c *Coordinator) list(q *call, _ *struct{}) ([]transfer.Request, error) {
	f := transfer.Filter{
		Status: transfer.Status(q.param("status")), Open: q.param("open") == "true", To: q.param("to"), Dataset: q.param("dataset"),
		By:     q.param("by"),
		Before: q.integer("before", 0, 0, 1<<62), Limit: int(q.integer("n", 100, 1, 1000)),
	}
	list, err := c.queue.List(q.Context(), f)
	return orEmpty(list), err
}

func (c *Coordinator) show(q *call, _ *struct{}) (transfer.Request, error) {
	return c.queue.Get(q.Context(), q.number)
}

// items answers with files of a request and the progress of their transfers.
func (c *Coordinator) items(q *call, _ *struct{}) (items []transfer.Item, err error) {
	var states []transfer.State
	for _, s := range q.URL.Query()["state"] { // it may be repeated
		states = append(states, transfer.State(s))
	}
	after, n := q.after(), q.rows()
	switch {
	case len(states) < 2:
		items, err = c.itemsAfter(q.Context(), q.number, append(states, "")[0], after, n)
	case after != 0 || len(states) > mostStates:
		err = wire.Refuse(http.StatusBadRequest,
			"after=%d: only files in one state have pages; with up to %d states the answer has the first files", after, mostStates)
	default:
		items, err = c.queue.First(q.Context(), q.number, states, n)
	}
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	for i := range items {
		if l := c.registry.leases[items[i].ID]; l != nil && items[i].State == transfer.Leased {
			items[i].Stage, items[i].Moved = l.stage, l.moved
		}
	}
	return orEmpty(items), err
}

// itemsAfter returns n files of a request; pages of the queue may be short.
func (c *Coordinator) itemsAfter(ctx context.Context, id int64, s transfer.State, after int64, n int) (all []transfer.Item, err error) {
	for len(all) < n {
		items, next, err := c.queue.Items(ctx, id, s, after, n-len(all))
		if err != nil {
			return nil, err
		}
		if all = append(all, items...); next == 0 {
			break
		}
		after = next
	}
	return all, nil
}

func (c *Coordinator) attempts(q *call, _ *struct{}) ([]transfer.Attempt, error) {
	item, n := q.integer("item", 0, 0, 1<<62), q.rows()
	if item == 0 {
		last := transfer.Attempt{Item: q.after(), Late: q.param("late") != "false"}
		last.Epoch = q.integer("epoch", 0, 0, 1<<62)
		list, err := c.queue.RequestAttempts(q.Context(), q.number, last, n)
		return orEmpty(list), err
	}
	_, of, err := c.queue.Item(q.Context(), item)
	if err != nil {
		return nil, err
	}
	if of != q.number {
		return nil, wire.Refuse(http.StatusNotFound, "file %d does not belong to request %d", item, q.number)
	}
	list, err := c.queue.Attempts(q.Context(), item)
	return orEmpty(list[:min(len(list), n)]), err
}

func (c *Coordinator) links(*call, *struct{}) ([]transfer.Link, error) {
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	return orEmpty(c.registry.net.Links()), nil
}

// manifest streams a transfer.Manifest: a request may have a million files. A connection whose answer
// cannot be completed is reset.
func (c *Coordinator) manifest(q *call, w http.ResponseWriter) error {
	r, err := c.queue.Get(q.Context(), q.number)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	out, to := bufio.NewWriterSize(w, 64<<10), http.NewResponseController(w)
	complete := func(err error) {
		if err != nil {
			panic(http.ErrAbortHandler) // clients must not take a part for the whole
		}
	}
	head, err := json.Marshal(r)
	complete(err)
	_, _ = fmt.Fprintf(out, "{\"request\":%s,\n\"items\":[\n", head) // out keeps the error
	sum, n := transfer.NewManifestHash(), 0
	for one, err := range c.queue.All(q.Context(), q.number) {
		complete(err)
		text, err := json.Marshal(one)
		complete(err)
		if n > 0 {
			_, _ = out.WriteString(",\n")
		}
		if n++; n%pageRows == 1 {
			_ = to.SetWriteDeadline(time.Now().Add(time.Minute)) // for each page
		}
		_, err = out.Write(text)
		complete(err)
		sum.Add(one)
	}
	_, _ = fmt.Fprintf(out, "\n],\"sha256\":%q}\n", sum.Digest())
	complete(out.Flush())
	return nil
}
