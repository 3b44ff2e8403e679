package rucio

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"weir/internal/pause"
	"weir/loadtest/challenge/inject"
	"weir/loadtest/challenge/inject/service"
)

const (
	bulk      = 100              // files in a request
	leastPoll = 2 * time.Second  // between two rounds
	mostPoll  = 30 * time.Second // as above
	deletions = 8                // requests at once that delete rules
	spare     = time.Hour        // by which rules outlive their copies, and source files the challenge
)

// Start requests rules for copies whose files have no replica at the destination. Others wait until
// Rucio has removed the replica.
func (i *injector) Start(ctx context.Context, copies []inject.Copy) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	i.mu.Lock()
	for _, c := range copies {
		if !i.copies.Add(c.ID) {
			continue
		}
		if i.pool.take(c, i.placeOf(&c)) {
			i.ready[c.Link] = append(i.ready[c.Link], c)
		}
	}
	i.mu.Unlock()
	i.submit.Signal()
	return nil
}

// submitReady asks for the replicas that have to be gone, and requests rules for the copies that have
// their places.
func (i *injector) submitReady() {
	i.mu.Lock()
	asked := i.pool.asked()
	i.mu.Unlock()
	for rse, names := range asked {
		for some := range slices.Chunk(names, bulk) {
			has, err := i.api.replicas(i.background, i.plan.Inject.Scope, rse, some)
			if err != nil {
				break // the next round asks again
			}
			i.free(rse, some, has)
		}
	}
	i.mu.Lock()
	ready := i.ready
	i.ready = map[int][]inject.Copy{}
	i.mu.Unlock()
	for link, copies := range ready {
		for some := range slices.Chunk(copies, bulk) {
			i.requestRules(link, some)
		}
	}
}

// free frees the places of files without a replica.
func (i *injector) free(rse string, names []string, has map[string]bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, name := range names {
		if has[name] {
			continue
		}
		if c, waited := i.pool.gone(place{name, rse}); waited {
			i.ready[c.Link] = append(i.ready[c.Link], c)
		}
	}
}

// requestRules requests rules for copies of a link that have their places.
func (i *injector) requestRules(link int, copies []inject.Copy) {
	var saves []saved
	i.mu.Lock()
	copies = slices.DeleteFunc(slices.Clone(copies), func(c inject.Copy) bool { return !i.copies.Open(c.ID) })
	for _, c := range copies {
		k := i.placeOf(&c)
		saves = append(saves, saved{c.ID, k.name, k.rse})
		i.flights[c.ID] = &flight{copy: c, at: k, since: time.Now(), sending: true}
	}
	i.mu.Unlock()
	if len(copies) == 0 {
		return
	}
	err := i.insist(func() error { return i.register(link, copies) })
	if err == nil {
		err = i.journal.Append(line{Copies: saves})
	}
	if err == nil {
		err = i.addRules(link, copies)
	}
	if err != nil && i.background.Err() == nil {
		for _, c := range copies {
			i.fail(c.ID, err)
		}
	}
	i.mu.Lock()
	for _, c := range copies {
		if f := i.flights[c.ID]; f != nil {
			f.sending, f.settled = false, time.Now()
		}
	}
	i.mu.Unlock()
	i.poll.Signal()
}

// again reports whether a request may succeed later.
func again(err error) bool {
	e, ok := errors.AsType[*service.Error](err)
	return ok && (!e.Definite() || e.Kind == "ReplicationRuleCreationTemporaryFailed")
}

// insist calls f until it succeeds, or Rucio refuses the request.
func (i *injector) insist(f func() error) error {
	for wait := time.Second; ; wait = min(2*wait, mostPoll) {
		err := f()
		if !again(err) || !pause.For(i.background, wait) {
			return err
		}
	}
}

// register registers the files of copies at the source of a link, with a rule that removes them after
// the challenge.
func (i *injector) register(link int, copies []inject.Copy) error {
	from, rse := i.pairs[link].From, rseOf(i.pairs[link].From)
	info, err := i.info(i.background, rse)
	if err != nil {
		return err
	}
	var files []newReplica
	var dids []did
	i.mu.Lock()
	for _, c := range copies {
		k := place{i.placeOf(&c).name, rse}
		d := i.did(k.name)
		if i.known[k] || slices.Contains(dids, d) {
			continue
		}
		f := newReplica{did: d, Bytes: c.Source.Size, Adler: strings.TrimPrefix(c.Source.Sum, "adler32:")}
		if !info.Deterministic {
			f.PFN = service.URLOf(from, i.plan.Links[link].Protocol, c.Source.Path)
		}
		files, dids = append(files, f), append(dids, d)
	}
	i.mu.Unlock()
	if len(files) == 0 {
		return nil
	}
	if err := i.api.register(i.background, rse, files); err != nil {
		return err
	}
	if !i.plan.Files.Keep {
		if err := i.keepSources(rse, dids); err != nil {
			return err
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, d := range dids {
		i.known[place{d.Name, rse}] = true
	}
	return nil
}

// keepSources adds rules for files at their source, unless they have such rules. The rules remove the
// files a day after the challenge.
func (i *injector) keepSources(rse string, dids []did) error {
	_, err := i.api.addRule(i.background, i.newRule(dids, rse, i.plan.Duration()+24*time.Hour))
	if err == nil || service.AsError(err).Kind != "DuplicateRule" {
		return err
	}
	if len(dids) == 1 {
		return nil
	}
	for _, d := range dids { // one of them made Rucio refuse all
		if err := i.keepSources(rse, []did{d}); err != nil {
			return err
		}
	}
	return nil
}

func (i *injector) newRule(dids []did, rse string, life time.Duration) newRule {
	return newRule{DIDs: dids, Account: i.plan.Inject.Account, Copies: 1, RSE: rse, Grouping: "NONE", Lifetime: int(life.Seconds()),
		Activity: i.plan.Inject.Activity, Comment: i.comment(), Purge: true}
}

// addRules requests rules for copies of a link. Before it repeats a request without an answer, it takes
// over the rules that exist. If one of several rules is refused, each is requested alone.
func (i *injector) addRules(link int, copies []inject.Copy) error {
	return i.insist(func() error {
		missing := i.withoutRule(copies)
		if len(missing) == 0 {
			return nil
		}
		err := i.addOnce(link, missing)
		if again(err) {
			_ = i.takeOver(i.background) // the request may have been carried out
			return err
		}
		if err == nil || len(missing) == 1 {
			return err
		}
		for _, c := range missing {
			if err := i.addOnce(link, []inject.Copy{c}); again(err) {
				return err
			} else if err != nil {
				i.fail(c.ID, err)
			}
		}
		return nil
	})
}

// withoutRule returns the copies that are in flight and have no rule.
func (i *injector) withoutRule(copies []inject.Copy) (all []inject.Copy) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, c := range copies {
		if f := i.flights[c.ID]; f != nil && f.rule == "" && !f.leaving {
			all = append(all, c)
		}
	}
	return all
}

// addOnce requests rules once.
func (i *injector) addOnce(link int, copies []inject.Copy) error {
	var dids []did
	for _, c := range copies {
		dids = append(dids, i.did(i.placeOf(&c).name))
	}
	r := i.newRule(dids, rseOf(i.pairs[link].To), time.Duration(i.plan.Timeout)+time.Duration(i.plan.Files.Linger)+spare)
	r.Source = rseOf(i.pairs[link].From)
	ids, err := i.api.addRule(i.background, r)
	if err != nil {
		return err
	}
	for n, c := range copies {
		i.setRule(c.ID, ids[n])
	}
	return nil
}

// setRule sets the rule of a copy and reports the copy as queued.
func (i *injector) setRule(id int64, rule string) {
	i.mu.Lock()
	if f := i.flights[id]; f != nil {
		f.rule = rule
	}
	i.mu.Unlock()
	i.copies.Report(inject.Report{ID: id, State: inject.Queued, Moved: -1})
}

// fail reports a copy without a rule as failed.
func (i *injector) fail(id int64, err error) {
	i.mu.Lock()
	if f := i.flights[id]; f != nil {
		i.pool.release(f.at)
		delete(i.flights, id)
	}
	i.mu.Unlock()
	if e := service.AsError(err); e.Status == http.StatusConflict && e.Kind == "DuplicateRule" {
		err = errors.New("another rule of the account has the file at the destination")
	}
	i.copies.Fail(id, err)
}
