package rucio

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"weir/loadtest/challenge/inject"
	"weir/loadtest/challenge/inject/service"
	"weir/storage"
)

// follow ends the rules that are to be deleted, and reports the news of the others.
func (i *injector) follow() {
	i.endLeaving()
	i.mu.Lock()
	n := len(i.flights)
	i.mu.Unlock()
	paused := i.api.client.Paused() // a list that waits would delay cancellations
	if n > 0 && !paused && i.takeOver(i.background) == nil {
		i.endLeaving() // of copies whose rules were found, or that have failed
	}
	i.mu.Lock()
	leaving := len(i.pool.asked()) > 0
	i.mu.Unlock()
	if leaving {
		i.submit.Signal()
	}
}

// takeOver lists the rules of the challenge: it finds the rules of copies without a known rule, and
// reports news.
func (i *injector) takeOver(ctx context.Context) error {
	asked := time.Now()
	all, err := i.api.rules(ctx, i.plan.Inject.Scope, i.plan.Inject.Account, i.comment())
	if err != nil {
		return err
	}
	rules := map[place]*rule{}
	for n := range all {
		rules[place{all[n].Name, all[n].RSE}] = &all[n]
	}
	i.mu.Lock()
	found := map[int64]*rule{}
	lost := []int64{}
	for id, f := range i.flights {
		switch r := rules[f.at]; {
		case r != nil:
			found[id] = r
		case !f.sending && f.settled.Before(asked):
			lost = append(lost, id)
		}
	}
	i.mu.Unlock()
	for id, r := range found {
		i.update(id, r)
	}
	for _, id := range lost {
		i.lost(id)
	}
	return nil
}

// lost ends a copy without a rule.
func (i *injector) lost(id int64) {
	i.mu.Lock()
	f := i.flights[id]
	if f == nil || f.sending {
		i.mu.Unlock()
		return
	}
	delete(i.flights, id)
	i.pool.release(f.at)
	leaving := f.leaving
	i.mu.Unlock()
	if leaving {
		i.copies.Cancel(id)
		return
	}
	i.copies.Fail(id, errors.New("the rule does not exist: it was never requested, or was deleted, or its lifetime has ended"))
}

// update reports the news of a rule.
func (i *injector) update(id int64, r *rule) {
	i.mu.Lock()
	f := i.flights[id]
	if f == nil {
		i.mu.Unlock()
		return
	}
	f.rule, f.made = r.ID, f.made || r.State == "OK"
	leaving, late := f.leaving, time.Since(f.since) > time.Duration(i.plan.Timeout)
	i.mu.Unlock()
	if leaving {
		return
	}
	l, p := &i.plan.Links[f.copy.Link], i.pairs[f.copy.Link]
	switch {
	case r.State == "OK":
		i.copies.Report(inject.Report{ID: id, State: inject.Done, At: i.api.client.Local(parseDate(r.Updated)), Moved: f.copy.Source.Size,
			Verified: true})
		return
	case r.State == "STUCK" || r.State == "SUSPENDED":
		v := service.Judge(reasonOf(r.Error), service.URLOf(p.From, l.Protocol, ""), service.URLOf(p.To, l.Protocol, ""))
		i.copies.Report(inject.Report{ID: id, State: inject.Failed, At: i.api.client.Local(parseDate(r.Updated)), Moved: -1, Class: v.Class,
			Reason: service.Line(strings.ToLower(r.State) + " rule: " + r.Error), Site: v.Site(p), Expired: v.Expired})
	case late && i.copies.Open(id):
		i.copies.Report(inject.Report{ID: id, State: inject.Failed, Moved: -1, Class: storage.Timeout,
			Reason: fmt.Sprintf("the rule is %s after %s", r.State, time.Duration(i.plan.Timeout))})
	default:
		i.copies.Report(inject.Report{ID: id, State: inject.Queued, Moved: -1})
		return
	}
	i.leave(id)
}

// reasonOf returns the reason of FTS in the error of a rule, which may have Rucio's words before it.
func reasonOf(text string) string {
	for _, word := range []string{"SOURCE", "DESTINATION", "TRANSFER"} {
		if n := strings.Index(text, word+" "); n >= 0 {
			return text[n:]
		}
	}
	return text
}

// leave has the rule of a copy deleted.
func (i *injector) leave(id int64) {
	i.mu.Lock()
	if f := i.flights[id]; f != nil {
		f.leaving = true
	}
	i.mu.Unlock()
}

// endLeaving ends the rules that are to be deleted. After an error the next round does it.
func (i *injector) endLeaving() {
	i.mu.Lock()
	rules := map[int64]flight{}
	for id, f := range i.flights {
		if f.leaving && f.rule != "" {
			rules[id] = *f
		}
	}
	i.mu.Unlock()
	slots := make(chan struct{}, deletions)
	var all sync.WaitGroup
	for id, f := range rules {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			if i.api.endRule(i.background, f.rule, !f.made) == nil {
				i.ended(id)
			}
		})
	}
	all.Wait()
}

// ended ends a copy whose rule was ended.
func (i *injector) ended(id int64) {
	i.mu.Lock()
	if f := i.flights[id]; f != nil {
		delete(i.flights, id)
		i.pool.release(f.at)
	}
	i.mu.Unlock()
	i.copies.Cancel(id) // if it had not ended
}

// Cancel cancels copies: those without a rule at once, others by the end of their rules, which
// cancels their transfers.
func (i *injector) Cancel(ctx context.Context, ids []int64) error {
	chosen := map[int64]bool{}
	var now []int64
	i.mu.Lock()
	for _, id := range ids {
		if f := i.flights[id]; f != nil {
			f.leaving = f.leaving || i.copies.Open(id)
		} else if i.copies.Open(id) {
			chosen[id], now = true, append(now, id)
		}
	}
	for link, ready := range i.ready {
		var rest []inject.Copy
		for _, c := range ready {
			if chosen[c.ID] {
				i.pool.release(i.placeOf(&c))
			} else {
				rest = append(rest, c)
			}
		}
		i.ready[link] = rest
	}
	i.pool.dropAll(chosen)
	i.mu.Unlock()
	for _, id := range now {
		i.copies.Cancel(id)
	}
	i.poll.Signal()
	return ctx.Err()
}

// Remove has copies removed that were made, by the end of their rules.
func (i *injector) Remove(ctx context.Context, ids []int64) error {
	i.mu.Lock()
	for _, id := range ids {
		f := i.flights[id]
		if s, known := i.past[id]; f == nil && known && !i.taken(place{s.Name, s.RSE}) { // made by an earlier process
			f = &flight{copy: inject.Copy{ID: id}, at: place{s.Name, s.RSE}}
			i.flights[id] = f
			i.pool.adopt(f.at)
		}
		if f != nil {
			f.leaving = true
		}
	}
	i.mu.Unlock()
	i.poll.Signal()
	return ctx.Err()
}

// taken reports whether a copy in flight has a place. The caller holds the lock.
func (i *injector) taken(k place) bool {
	for _, f := range i.flights {
		if f.at == k {
			return true
		}
	}
	return false
}

// Resume takes over copies of an earlier process: their rules are found by their comment.
func (i *injector) Resume(ctx context.Context, copies []inject.Copy) error {
	var unsent []int64
	i.mu.Lock()
	for _, c := range copies {
		if !i.copies.Add(c.ID) {
			continue
		}
		if _, known := i.past[c.ID]; !known {
			unsent = append(unsent, c.ID)
			continue
		}
		f := &flight{copy: c, at: i.placeOf(&c), since: time.Now(), settled: time.Now()}
		i.flights[c.ID] = f
		i.pool.adopt(f.at)
	}
	i.mu.Unlock()
	for _, id := range unsent {
		i.copies.Fail(id, errors.New("no rule was requested for the copy before weir was killed"))
	}
	i.poll.Signal()
	return ctx.Err()
}

// Clean ends all rules of the challenge, with those of the source files.
func (i *injector) Clean(ctx context.Context) error {
	all, err := i.api.rules(ctx, i.plan.Inject.Scope, i.plan.Inject.Account, i.comment())
	if err != nil {
		return err
	}
	var failed error
	for _, r := range all {
		if err := i.api.endRule(ctx, r.ID, r.State != "OK"); err != nil {
			failed = errors.Join(failed, err)
			if ctx.Err() != nil {
				break
			}
		}
	}
	return failed
}
