package coordinator

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"weir/internal/unit"
	"weir/internal/wire"
	"weir/transfer"
)

// Lengths of lists.
const (
	page1000   = 1000
	most       = 10000
	mostStates = 7 // that files can be in
)

// submit takes a request.
func (c *Coordinator) submit(r *http.Request, in *transfer.Submission) (transfer.Request, error) {
	who, err := need(r, maySubmit)
	if err != nil {
		return transfer.Request{}, err
	}
	ctx := r.Context()
	asked := in.Approve
	if asked && !who.has(mayApprove) {
		return transfer.Request{}, wire.Refuse(http.StatusForbidden, "to approve it at once takes the role %s: submit it without, and somebody else approves it", mayApprove)
	}
	if err := c.possible(in); err != nil {
		return transfer.Request{}, err
	}
	in.Approve = asked || c.conf.Approve < 0
	q, err := c.queue.Submit(ctx, who.name, *in)
	if err == nil && q.Status == transfer.Awaiting && q.Asked.Bytes <= c.conf.Approve {
		q, err = c.queue.Approve(ctx, q.ID, "rule", fmt.Sprintf("%s are no more than %s", unit.Bytes(float64(q.Asked.Bytes)), unit.Bytes(float64(c.conf.Approve))))
	}
	if err != nil {
		return q, c.refusal(err)
	}
	c.log.Info("a request was submitted", "request", q.ID, "by", who.name, "dataset", in.Dataset, "to", in.To, "status", string(q.Status), "rule", q.Reason)
	c.stir()
	return q, nil
}

// possible refuses what could never be done as its sites are.
func (c *Coordinator) possible(in *transfer.Submission) error {
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	to, known := c.registry.sites[in.To]
	if in.Mode == transfer.Third && known && to.Kind == agentKind && to.URL == "" {
		return wire.Refuse(http.StatusConflict, "mode third: site %s has no server that others can reach (its agent runs with --no-door): use pull, or leave the mode out", in.To)
	}
	return nil
}

// stir wakes what a change of a request concerns.
func (c *Coordinator) stir() {
	c.work.give()
	c.wake.give()
	c.eventsChanged.give()
}

// A decisionBody is what is said to a decision.
type decisionBody struct {
	Reason string `json:"reason,omitempty"`
}

// decisionHandler makes a handler of what somebody decides about a request.
func (c *Coordinator) decisionHandler(what string, decide func(ctx context.Context, id int64, by, reason string) (transfer.Request, error)) func(*http.Request, *decisionBody) (transfer.Request, error) {
	return func(r *http.Request, in *decisionBody) (transfer.Request, error) {
		id, err := number(r, "id")
		if err != nil {
			return transfer.Request{}, err
		}
		who, err := c.mayDecide(r, what, id)
		if err != nil {
			return transfer.Request{}, err
		}
		if len(in.Reason) > longestReason {
			return transfer.Request{}, wire.Refuse(http.StatusBadRequest, "the reason has more than %d bytes", longestReason)
		}
		q, err := decide(r.Context(), id, who.name, in.Reason)
		if err != nil {
			return q, c.refusal(err)
		}
		c.log.Info("a request was decided about", "request", id, "decision", what, "by", who.name)
		c.stir()
		return c.shown(q), nil
	}
}

// mayDecide refuses who may not decide about a request. Who submitted one may
// cancel and retry it.
func (c *Coordinator) mayDecide(r *http.Request, what string, id int64) (caller, error) {
	who := callerOf(r)
	if who.has(mayApprove) || what == "approve" || what == "reject" {
		return need(r, mayApprove)
	}
	if who, err := need(r, maySubmit); err != nil {
		return who, err
	}
	q, err := c.queue.Get(r.Context(), id)
	if err != nil {
		return who, c.refusal(err)
	}
	if q.By != who.name {
		return who, wire.Refuse(http.StatusForbidden, "request %d is %s's: to %s it takes the role %s", id, q.By, what, mayApprove)
	}
	return who, nil
}

// cancel stops a request, and has the copies that run broken off at once.
func (c *Coordinator) cancel(ctx context.Context, id int64, by, reason string) (transfer.Request, error) {
	q, err := c.queue.Cancel(ctx, id, by, reason)
	if err != nil {
		return q, err
	}
	var never []transfer.Outcome
	c.registry.mu.Lock()
	for _, l := range c.registry.leases {
		if l.Request == id && !l.cancelled && c.breakOff(l) {
			never = append(never, c.without(l, transfer.RequestCancelled, errCancelled.Error()))
		}
	}
	c.registry.mu.Unlock()
	if err := c.ended(ctx, "", never); err != nil {
		c.health.say("database", err) // their leases run out
	}
	return c.queue.Get(ctx, id)
}

func number(r *http.Request, name string) (int64, error) {
	n, err := strconv.ParseInt(r.PathValue(name), 10, 64)
	if err != nil || n <= 0 {
		return 0, wire.Refuse(http.StatusBadRequest, "%.50q is no number of a request", r.PathValue(name))
	}
	return n, nil
}

// asked is a whole number of the query, other if it is not there.
func asked(r *http.Request, name string, other, least, most int64) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return other, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, wire.Refuse(http.StatusBadRequest, "%s=%.50s: a whole number from %d to %d is expected", name, text, least, most)
	}
	return n, nil
}

// list shows requests.
func (c *Coordinator) list(r *http.Request, _ *struct{}) ([]transfer.Request, error) {
	if _, err := need(r, mayRead); err != nil {
		return nil, err
	}
	q := r.URL.Query()
	f := transfer.Filter{Status: transfer.Status(q.Get("status")), Open: q.Get("open") == "true", To: q.Get("to"), Dataset: q.Get("dataset"), By: q.Get("by")}
	before, err := asked(r, "before", 0, 0, 1<<62)
	if err != nil {
		return nil, err
	}
	n, err := asked(r, "n", 100, 1, 1000)
	if err != nil {
		return nil, err
	}
	f.Before, f.Limit = before, int(n)
	list, err := c.queue.List(r.Context(), f)
	for i := range list {
		list[i] = c.shown(list[i])
	}
	return filled(list), c.refusal(err)
}

func (c *Coordinator) show(r *http.Request, _ *struct{}) (transfer.Request, error) {
	id, err := c.reading(r)
	if err != nil {
		return transfer.Request{}, err
	}
	q, err := c.queue.Get(r.Context(), id)
	return c.shown(q), c.refusal(err)
}

// reading is the request that somebody wants to see.
func (c *Coordinator) reading(r *http.Request) (int64, error) {
	if _, err := need(r, mayRead); err != nil {
		return 0, err
	}
	return number(r, "id")
}

// shown is a request with what only the coordinator knows.
func (c *Coordinator) shown(q transfer.Request) transfer.Request { return q }

// items shows files of a request, with how far those are that are being copied.
func (c *Coordinator) items(r *http.Request, _ *struct{}) ([]transfer.Item, error) {
	id, err := c.reading(r)
	if err != nil {
		return nil, err
	}
	after, err := asked(r, "after", 0, 0, 1<<62)
	if err != nil {
		return nil, err
	}
	n, err := asked(r, "n", page1000, 1, most)
	if err != nil {
		return nil, err
	}
	var items []transfer.Item
	states := r.URL.Query()["state"]
	switch {
	case len(states) < 2:
		items, err = c.pageOf(r.Context(), id, transfer.State(strings.Join(states, "")), after, int(n))
	case after != 0 || len(states) > mostStates:
		err = wire.Refuse(http.StatusBadRequest, "after=%d: only the files in one state have pages; of %d states at most the first files are shown", after, mostStates)
	default:
		items, err = c.queue.First(r.Context(), id, statesOf(states), int(n))
	}
	if err != nil {
		return nil, c.refusal(err)
	}
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	for i := range items {
		if l := c.registry.leases[items[i].ID]; l != nil && items[i].State == transfer.Leased {
			items[i].Stage, items[i].Moved = l.stage, l.moved
		}
	}
	return filled(items), nil
}

func statesOf(names []string) (all []transfer.State) {
	for _, n := range names {
		all = append(all, transfer.State(n))
	}
	return all
}

// pageOf reads on over pages that are empty but not the last.
func (c *Coordinator) pageOf(ctx context.Context, id int64, s transfer.State, after int64, n int) (all []transfer.Item, err error) {
	for len(all) < n {
		items, next, err := c.queue.Items(ctx, id, s, after, n-len(all))
		if err != nil {
			return nil, err
		}
		all = append(all, items...)
		if next == 0 {
			break
		}
		after = next
	}
	return all, nil
}

func (c *Coordinator) attempts(r *http.Request, _ *struct{}) ([]transfer.Attempt, error) {
	id, err := c.reading(r)
	if err != nil {
		return nil, err
	}
	item, err := asked(r, "item", 0, 0, 1<<62)
	if err != nil {
		return nil, err
	}
	n, err := asked(r, "n", page1000, 1, most)
	if err != nil {
		return nil, err
	}
	epoch, err := asked(r, "epoch", 0, 0, 1<<62)
	if err != nil {
		return nil, err
	}
	after, err := asked(r, "after", 0, 0, 1<<62)
	if err != nil {
		return nil, err
	}
	var list []transfer.Attempt
	if item != 0 {
		if _, of, err := c.queue.Item(r.Context(), item); err != nil || of != id {
			return nil, c.refusal(orRefuse(err, "file %d is not one of request %d", item, id))
		}
		list, err = c.queue.Attempts(r.Context(), item)
		list = list[:min(len(list), int(n))]
	} else {
		last := transfer.Attempt{Item: after, Late: r.URL.Query().Get("late") != "false"}
		last.Epoch = epoch
		list, err = c.queue.RequestAttempts(r.Context(), id, last, int(n))
	}
	return filled(list), c.refusal(err)
}

func orRefuse(err error, format string, a ...any) error {
	if err != nil {
		return err
	}
	return wire.Refuse(http.StatusNotFound, format, a...)
}

func (c *Coordinator) links(r *http.Request, _ *struct{}) ([]transfer.Link, error) {
	if _, err := need(r, mayRead); err != nil {
		return nil, err
	}
	c.registry.mu.Lock()
	defer c.registry.mu.Unlock()
	return filled(c.registry.net.Links()), nil
}
