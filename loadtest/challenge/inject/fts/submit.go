package fts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"weir/internal/pause"
	"weir/loadtest/challenge/inject"
	"weir/loadtest/challenge/inject/service"
	"weir/storage"
)

const (
	mostFiles   = 100                    // of a job
	gather      = 500 * time.Millisecond // longest wait of a copy for others of its link
	submissions = 4                      // at once
	firstPause  = time.Second            // before a submission without an answer is repeated; it doubles
	longestWait = 30 * time.Second
)

// A batch has copies of a link that become a job.
type batch struct {
	link   int
	since  time.Time
	copies []inject.Copy
}

// An entry is a job that has been submitted, or is being submitted.
type entry struct {
	id     string
	link   int
	files  map[int]*flight // that have not ended, by their index in the job
	tokens time.Time       // end of its tokens; zero: unknown
	sent   time.Time       // end of the last attempt to submit it; zero: the first attempt goes on
	asked  time.Time       // of the last request to cancel it
	// sending is set until FTS has accepted or refused the job: it may not be known yet
	sending bool
}

// A flight is a copy of a job.
type flight struct {
	copy inject.Copy
	file int64 // id of the file in FTS; 0: unknown
}

// Start queues copies for submission: the copies of a link that are due within half a second become
// one job.
func (i *injector) Start(ctx context.Context, copies []inject.Copy) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	now := time.Now()
	i.mu.Lock()
	open := map[int]*batch{}
	for _, b := range i.waiting {
		open[b.link] = b
	}
	for _, c := range copies {
		if !i.copies.Add(c.ID) {
			continue
		}
		b := open[c.Link]
		if b == nil || len(b.copies) == mostFiles {
			b = &batch{link: c.Link, since: now}
			open[c.Link] = b
			i.waiting = append(i.waiting, b)
		}
		b.copies = append(b.copies, c)
	}
	i.mu.Unlock()
	i.submit.Signal()
	return nil
}

// submitAll submits batches as they become due.
func (i *injector) submitAll() {
	slots := make(chan struct{}, submissions)
	for {
		select {
		case slots <- struct{}{}:
		case <-i.background.Done():
			return
		}
		b := i.nextBatch()
		if b == nil {
			return
		}
		i.running.Go(func() {
			i.submitBatch(b)
			<-slots
		})
	}
}

// nextBatch waits for a batch that is due and returns it, or nil if the injector is closed.
func (i *injector) nextBatch() *batch {
	for {
		wait := time.Hour
		i.mu.Lock()
		for n, b := range i.waiting {
			d := time.Until(b.since.Add(gather))
			if len(b.copies) == mostFiles || d <= 0 {
				i.waiting = append(i.waiting[:n:n], i.waiting[n+1:]...)
				i.mu.Unlock()
				return b
			}
			wait = min(wait, d)
		}
		i.mu.Unlock()
		if !i.submit.Wait(i.background, wait) {
			return nil
		}
	}
}

// submitBatch submits the copies of a batch that have not been cancelled.
func (i *injector) submitBatch(b *batch) {
	var copies []inject.Copy
	for _, c := range b.copies {
		if !i.leave(c.ID) {
			copies = append(copies, c)
		}
	}
	if len(copies) == 0 {
		return
	}
	var who *identity
	err := i.insist(copies, func() (err error) {
		who, err = i.identity(i.background)
		return err
	})
	if errors.Is(err, errLeft) {
		for _, c := range copies {
			i.leave(c.ID)
		}
		return
	}
	var e *entry
	var body []byte
	if err == nil {
		body, e, err = i.newJob(who, b.link, copies)
	}
	if err == nil {
		i.mu.Lock()
		i.jobs[e.id] = e
		i.mu.Unlock()
		err = i.send(who, e, copies, body)
	}
	if err == nil {
		return
	}
	if e != nil {
		i.mu.Lock()
		delete(i.jobs, e.id)
		i.mu.Unlock()
	}
	for _, c := range copies {
		i.copies.Fail(c.ID, err)
		i.forget(c.ID)
	}
}

// newJob returns the body of a job and its entry, after it was written to the journal.
func (i *injector) newJob(who *identity, link int, copies []inject.Copy) ([]byte, *entry, error) {
	l, p := &i.plan.Links[link], i.pairs[link]
	tokens, err := i.tokens(p)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", storage.ErrLogin, err)
	}
	e := &entry{link: link, sending: true, files: map[int]*flight{}, tokens: tokens.ends}
	seconds := int(time.Duration(i.plan.Timeout).Seconds())
	j := job{Params: params{Verify: "none", Retry: -1, InQueue: strconv.Itoa(max(seconds, 60)) + "s", Timeout: seconds, Streams: l.Streams,
		Metadata:  map[string]any{"issuer": "weir", "challenge": i.plan.Name, "run": i.past.run, "link": l.Name()},
		Generator: "deterministic", SID: "weir-" + i.past.run + "-" + strconv.FormatInt(copies[0].ID, 10), Unmanaged: tokens.source != ""}}
	if i.plan.Verify {
		j.Params.Verify = "both"
	}
	var ids []int64
	for n, c := range copies {
		from, to := service.URLOf(p.From, l.Protocol, c.Source.Path), service.URLOf(p.To, l.Protocol, c.Dest)
		f := file{Sources: []string{from}, Destinations: []string{to}, Checksum: checksum(c.Source.Sum), Filesize: c.Source.Size,
			Activity: i.plan.Inject.Activity, SciTag: l.SciTag, Strategy: "auto", Metadata: map[string]any{"copy": c.ID}}
		if tokens.source != "" {
			f.SourceTokens, f.DestTokens = []string{tokens.source}, []string{tokens.dest}
		}
		j.Files = append(j.Files, f)
		e.files[n] = &flight{copy: c}
		ids = append(ids, c.ID)
	}
	if e.id, err = jobID(who.VOIDs[0], j.Params.SID); err != nil {
		return nil, nil, err
	}
	body, err := json.Marshal(j)
	if err != nil {
		return nil, nil, err
	}
	return body, e, i.journal.Append(line{Job: e.id, Link: link, Copies: ids})
}

// checksum returns a checksum in the notation of FTS: ADLER32:hex.
func checksum(sum string) string {
	name, hex, found := strings.Cut(sum, ":")
	if !found {
		return "ADLER32"
	}
	return strings.ToUpper(name) + ":" + hex
}

// send submits a job until FTS has accepted or refused it, or all its copies are to be cancelled. An
// error is the refusal.
func (i *injector) send(who *identity, e *entry, copies []inject.Copy, body []byte) error {
	renewed := false
	err := i.insist(copies, func() error {
		if who.Method == "certificate" {
			if err := i.proxy.ensure(i.background, who.DelegationID, false); err != nil {
				return err
			}
		}
		id, err := i.post(body)
		if err != nil && !renewed {
			renewed = true
			if i.renew(who, service.AsError(err).Status) {
				id, err = i.post(body)
			}
		}
		i.mu.Lock()
		e.sent = time.Now()
		i.mu.Unlock()
		if err == nil && id != "" && id != e.id {
			return i.rename(e, copies, id)
		}
		return err
	})
	i.mu.Lock()
	e.sending = false
	i.mu.Unlock()
	defer i.poll.Signal()
	if errors.Is(err, errLeft) {
		return nil // the polls show whether the job exists
	}
	if err != nil {
		return err
	}
	for _, c := range copies {
		i.copies.Report(inject.Report{ID: c.ID, State: inject.Queued, Moved: -1})
	}
	return nil
}

// statusNeedDelegation is FTS's status of jobs without a valid proxy.
const statusNeedDelegation = 419

// renew renews the credentials that a response refuses. It returns whether there are new ones.
func (i *injector) renew(who *identity, status int) bool {
	switch {
	case status == statusNeedDelegation && who.Method == "certificate":
		return i.proxy.ensure(i.background, who.DelegationID, true) == nil
	case status == http.StatusUnauthorized && i.cred.Token != "":
		before := i.cred.Bearer().Current()
		return i.cred.Bearer().Reread() != before
	}
	return false
}

// post submits a job once and returns its id, "" if FTS has it already.
func (i *injector) post(body []byte) (string, error) {
	_, text, err := i.client.Do(i.background, service.Request{Method: http.MethodPost, Path: "/jobs", Body: body})
	if err != nil {
		if e := service.AsError(err); e.Status == http.StatusConflict && strings.Contains(e.Message, "duplicate") {
			return "", nil // an earlier attempt, whose response was lost
		}
		return "", err
	}
	var out struct {
		ID string `json:"job_id"`
	}
	if err := json.Unmarshal(text, &out); err != nil || out.ID == "" {
		return "", &service.Error{Request: "POST /jobs", Err: errors.New("malformed response: there is no job_id")}
	}
	return out.ID, nil
}

// rename gives a job the id that FTS gave it.
func (i *injector) rename(e *entry, copies []inject.Copy, id string) error {
	l := line{Job: id, Link: e.link}
	for _, c := range copies {
		l.Copies = append(l.Copies, c.ID)
	}
	i.mu.Lock()
	delete(i.jobs, e.id)
	e.id, i.jobs[id] = id, e
	i.mu.Unlock()
	return i.journal.Append(l)
}

// errLeft ends insist: all copies are to be cancelled, or the injector is closed.
var errLeft = errors.New("the copies are cancelled")

// insist calls f until it succeeds, or the service refuses the request, or all the copies are to be
// cancelled. Requests without an answer and refusals for a while are repeated.
func (i *injector) insist(copies []inject.Copy, f func() error) error {
	for wait := firstPause; ; wait = min(2*wait, longestWait) {
		err := f()
		if e, ok := errors.AsType[*service.Error](err); err == nil || !ok || e.Definite() {
			return err
		}
		for end := time.Now().Add(wait); time.Now().Before(end); {
			if i.allLeaving(copies) || !pause.For(i.background, min(wait, firstPause)) {
				return errLeft
			}
		}
	}
}

// allLeaving reports whether all the copies are to be cancelled, or have ended.
func (i *injector) allLeaving(copies []inject.Copy) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, c := range copies {
		if !i.leaving[c.ID] && i.copies.Open(c.ID) {
			return false
		}
	}
	return true
}
