package fts

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"weir/loadtest/challenge/inject"
	"weir/loadtest/challenge/inject/service"
	"weir/storage"
)

const (
	leastPoll  = time.Second // between two polls
	mostPoll   = 10 * time.Second
	pollJobs   = 100             // in a request: the ids are in its path, and servers accept 8 KiB
	polls      = 4               // requests at once
	unknownFor = 5 * time.Second // until a job that FTS does not have is given up
	askAgain   = 5 * time.Second // until a request to cancel is repeated
)

// follow cancels copies, and polls the jobs with copies in flight.
func (i *injector) follow() {
	i.cancelLeaving()
	if i.anyLeaving() || !i.client.Paused() { // a poll that waits would delay cancellations
		i.pollAll()
	}
}

// pollAll polls all jobs with copies in flight once.
func (i *injector) pollAll() {
	i.mu.Lock()
	var all []string
	for id, e := range i.jobs {
		if !e.sent.IsZero() {
			all = append(all, id)
		}
	}
	i.mu.Unlock()
	slices.Sort(all)
	chunks := make(chan []string)
	var workers sync.WaitGroup
	for range min(polls, (len(all)+pollJobs-1)/pollJobs) {
		workers.Go(func() {
			for ids := range chunks {
				i.pollSome(ids)
			}
		})
	}
	for ids := range slices.Chunk(all, pollJobs) {
		chunks <- ids
	}
	close(chunks)
	workers.Wait()
}

// pollSome polls some jobs with one request. After an error the next poll asks again.
func (i *injector) pollSome(ids []string) {
	_, body, err := i.client.Do(i.background, service.Request{Method: http.MethodGet,
		Path: "/jobs/" + strings.Join(ids, ",") + "?files=" + fileFields, Urgent: i.anyLeaving()})
	if err != nil && (service.AsError(err).Status != http.StatusNotFound || len(ids) > 1) {
		return
	}
	states := []jobState{{ID: ids[0], Status: "404"}}
	if err == nil {
		if states, err = jobStates(body); err != nil {
			return
		}
	}
	for n := range states {
		i.update(&states[n])
	}
}

// update reports the news of a job.
func (i *injector) update(s *jobState) {
	i.mu.Lock()
	e := i.jobs[s.ID]
	i.mu.Unlock()
	switch {
	case e == nil:
	case s.unknown():
		i.lost(e)
	default:
		for n := range s.Files {
			i.updateFile(e, &s.Files[n])
		}
	}
}

// lost ends the copies of a job that FTS does not have: it never received it, or has forgotten it.
func (i *injector) lost(e *entry) {
	i.mu.Lock()
	early := e.sending || time.Since(e.sent) < unknownFor
	var ids []int64
	for _, f := range e.files {
		ids = append(ids, f.copy.ID)
	}
	if !early {
		delete(i.jobs, e.id)
	}
	i.mu.Unlock()
	if early {
		return
	}
	for _, id := range ids {
		if !i.leave(id) {
			i.copies.Fail(id, errors.New("FTS does not have the job: it was never submitted, or has been removed"))
			i.forget(id) // if it was cancelled in between
		}
	}
}

// updateFile reports the news of a file.
func (i *injector) updateFile(e *entry, s *fileState) {
	i.mu.Lock()
	f := e.files[s.Index]
	if f == nil {
		i.mu.Unlock()
		return
	}
	f.file = s.ID
	i.mu.Unlock()
	r, ended := i.reportOf(e, f, s)
	if r.State == inject.Cancelled && !i.isLeaving(r.ID) { // by an administrator, or max_time_in_queue
		r.State, r.Class = inject.Failed, storage.Other
		if strings.Contains(strings.ToLower(r.Reason), "queue") || strings.Contains(strings.ToLower(r.Reason), "expired") {
			r.Class = storage.Timeout
		}
	}
	i.copies.Report(r)
	if !ended {
		return
	}
	i.forget(r.ID)
	i.mu.Lock()
	if delete(e.files, s.Index); len(e.files) == 0 {
		delete(i.jobs, e.id)
	}
	i.mu.Unlock()
}

// reportOf returns the news of a file, and whether it has ended.
func (i *injector) reportOf(e *entry, f *flight, s *fileState) (r inject.Report, ended bool) {
	l, p := &i.plan.Links[e.link], i.pairs[e.link]
	r = inject.Report{ID: f.copy.ID, State: stateOf(s.State), Moved: -1, Begin: i.client.Local(parseTime(s.Begin))}
	if !r.State.Ended() {
		r.Begin = time.Time{}
		return r, false
	}
	r.At, r.Label = i.client.Local(parseTime(s.End)), l.SciTag != 0
	switch r.State {
	case inject.Done:
		r.Moved, r.Verified = f.copy.Source.Size, i.plan.Verify
	case inject.Cancelled:
		r.Class, r.Reason = storage.Canceled, service.Line(s.Reason)
	case inject.Failed:
		v := service.Judge(s.Reason, service.URLOf(p.From, l.Protocol, ""), service.URLOf(p.To, l.Protocol, ""))
		ended := !e.tokens.IsZero() && !r.At.IsZero() && r.At.After(e.tokens.Add(-time.Second))
		r.Class, r.Reason, r.Site, r.Exists = v.Class, service.Line(s.Reason), v.Site(p), v.Exists
		r.Expired = v.Expired || v.Class == storage.Denied && ended
	}
	return r, true
}

// stateOf returns the state of a file of FTS (fts3rest/model/file.py).
func stateOf(state string) inject.State {
	switch state {
	case "ACTIVE", "ARCHIVING":
		return inject.Running
	case "FINISHED":
		return inject.Done
	case "FAILED":
		return inject.Failed
	case "CANCELED":
		return inject.Cancelled
	}
	return inject.Queued // SUBMITTED, READY, STAGING, STARTED, TOKEN_PREP, ON_HOLD, NOT_USED
}

// Cancel cancels copies: those that have not been submitted at once, others at the service.
func (i *injector) Cancel(ctx context.Context, ids []int64) error {
	i.mu.Lock()
	chosen := map[int64]bool{}
	for _, id := range ids {
		if i.copies.Open(id) {
			i.leaving[id], chosen[id] = true, true
		}
	}
	var now []int64
	for _, b := range i.waiting {
		b.copies = slices.DeleteFunc(b.copies, func(c inject.Copy) bool {
			if chosen[c.ID] {
				now = append(now, c.ID)
			}
			return chosen[c.ID]
		})
	}
	i.mu.Unlock()
	for _, id := range now {
		i.leave(id)
	}
	i.poll.Signal()
	return ctx.Err()
}

// leave reports a copy as cancelled if it is to be cancelled, and returns whether it is.
func (i *injector) leave(id int64) bool {
	if !i.isLeaving(id) {
		return false
	}
	i.copies.Cancel(id)
	i.forget(id)
	return true
}

func (i *injector) isLeaving(id int64) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.leaving[id]
}

func (i *injector) anyLeaving() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.leaving) > 0
}

// forget ends the cancellation of a copy, which has ended.
func (i *injector) forget(id int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.leaving, id)
}

// cancelLeaving asks FTS to cancel the copies that are to be cancelled: whole jobs together, and
// files of jobs with other copies.
func (i *injector) cancelLeaving() {
	jobs, files := i.leavingJobs()
	for ids := range slices.Chunk(jobs, pollJobs) {
		i.cancel("/jobs/" + strings.Join(ids, ","))
	}
	for id, some := range files {
		i.cancel("/jobs/" + id + "/files/" + strings.Join(some, ","))
	}
	if len(jobs)+len(files) > 0 {
		i.poll.Signal()
	}
}

// cancel sends a cancellation. A failure is in the health of the service; the request is repeated.
func (i *injector) cancel(path string) {
	_, _, _ = i.client.Do(i.background, service.Request{Method: http.MethodDelete, Path: path, Urgent: true})
}

// leavingJobs returns the jobs whose copies are all to be cancelled, and the files to be cancelled of
// other jobs.
func (i *injector) leavingJobs() (jobs []string, files map[string][]string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	files = map[string][]string{}
	if len(i.leaving) == 0 {
		return nil, files
	}
	for id, e := range i.jobs {
		if e.sent.IsZero() || time.Since(e.asked) < askAgain {
			continue
		}
		var some []string
		n, unknown := 0, false
		for _, f := range e.files {
			if i.leaving[f.copy.ID] {
				n++
				unknown = unknown || f.file == 0
				some = append(some, strconv.FormatInt(f.file, 10))
			}
		}
		switch {
		case n == 0:
		case n == len(e.files):
			jobs, e.asked = append(jobs, id), time.Now()
		case !unknown:
			files[id], e.asked = some, time.Now()
		}
	}
	return jobs, files
}

// Resume takes over copies of an earlier process, by the journal.
func (i *injector) Resume(ctx context.Context, copies []inject.Copy) error {
	var unsent []int64
	i.mu.Lock()
	for _, c := range copies {
		if !i.copies.Add(c.ID) {
			continue
		}
		l, known := i.past.jobs[c.ID]
		if !known {
			unsent = append(unsent, c.ID)
			continue
		}
		e := i.jobs[l.Job]
		if e == nil {
			e = &entry{id: l.Job, link: l.Link, files: map[int]*flight{}, sent: time.Now()}
			i.jobs[l.Job] = e
		}
		e.files[slices.Index(l.Copies, c.ID)] = &flight{copy: c}
	}
	i.past.jobs = nil
	i.mu.Unlock()
	for _, id := range unsent {
		i.copies.Fail(id, errors.New("the copy was not submitted to FTS before weir was killed"))
	}
	i.poll.Signal()
	return ctx.Err()
}
