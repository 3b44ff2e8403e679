package coordinator

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"weir/internal/require"
	"weir/lab/labtest"
	"weir/transfer"
	"weir/transfer/access"
	"weir/transfer/catalog"
	"weir/transfer/client"
)

// A house is a coordinator that runs, with the questions of its administrator.
type house struct {
	*Coordinator
	t     *testing.T
	conf  Config
	admin *client.Client
	also  []string // the address of its standby
	stop  context.CancelFunc
	done  sync.WaitGroup
}

// start starts a coordinator.
func start(t *testing.T, conf Config) *house {
	t.Helper()
	if conf.State == "" {
		conf.State = t.TempDir()
	}
	if conf.Listen == "" {
		conf.Listen = labtest.Address(t)
	}
	h := &house{t: t, conf: conf}
	h.begin()
	t.Cleanup(h.end)
	return h
}

func (h *house) begin() {
	h.t.Helper()
	c, err := Open(h.t.Context(), h.conf)
	if err != nil {
		h.t.Fatal(err)
	}
	h.Coordinator = c
	ctx, stop := context.WithCancel(context.WithoutCancel(h.t.Context()))
	h.stop = stop
	h.done.Go(func() {
		if err := c.Run(ctx); err != nil {
			h.t.Error(err)
		}
	})
	raw, err := c.Admin()
	if err != nil {
		h.t.Fatal(err)
	}
	h.admin = h.client(raw)
}

// end ends it, as often as one likes.
func (h *house) end() {
	h.t.Helper()
	if h.stop == nil {
		return
	}
	h.stop()
	h.stop = nil
	h.done.Wait()
	if err := h.Close(); err != nil {
		h.t.Error(err)
	}
	h.admin.Close()
}

func (h *house) client(raw string) *client.Client {
	h.t.Helper()
	c, err := client.New(client.Config{URLs: []string{h.URL()}, Pin: h.Pin(), Token: raw})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(c.Close)
	return c
}

// as returns the questions of somebody with roles.
func (h *house) as(name string, roles ...string) *client.Client {
	h.t.Helper()
	raw, err := h.admin.Token(h.t.Context(), transfer.NewToken{Subject: name, Roles: roles, Life: time.Hour})
	if err != nil {
		h.t.Fatal(err)
	}
	return h.client(raw)
}

// fill makes a dataset of files of so many bytes at a site.
func (h *house) fill(dataset, site string, files int, size int64) {
	h.t.Helper()
	in := transfer.NewFiles{Dataset: dataset, Site: site, By: "the test"}
	for i := range files {
		in.Files = append(in.Files, transfer.NewFile{File: catalog.File{Name: fmt.Sprintf("%s/f%d", dataset, i), Size: size,
			Adler: fmt.Sprintf("%08x", i+1)}})
		if len(in.Files) == transfer.MaxNewFiles || i == files-1 {
			if _, err := h.admin.AddFiles(h.t.Context(), in); err != nil {
				h.t.Fatal(err)
			}
			in.Files = nil
		}
	}
}

// A robot says what an agent says, and moves nothing: by hand, or by itself.
type robot struct {
	t       *testing.T
	ask     *client.Client
	site    string
	session string
	number  int64
	mu      sync.Mutex
	holding map[int64]transfer.Lease
}

func (h *house) robot(site string) *robot {
	h.t.Helper()
	return &robot{t: h.t, ask: h.as("agent "+site, access.AgentOf+site), site: site, session: "one", holding: map[int64]transfer.Lease{}}
}

func (r *robot) register(url string) transfer.Registration {
	r.t.Helper()
	w, err := r.ask.Register(r.t.Context(), transfer.Register{Site: r.site, Session: r.session, URL: url, Slots: 4, Free: 1 << 40,
		Holding: r.holds()})
	if err != nil {
		r.t.Fatal(err)
	}
	return w
}

func (r *robot) holds() (all []transfer.LeaseID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.holding {
		all = append(all, transfer.LeaseID{Item: l.Item, Epoch: l.Epoch})
	}
	return all
}

// work asks for work once.
func (r *robot) work() transfer.Work {
	r.t.Helper()
	w, err := r.ask.Work(r.t.Context(), transfer.PollRequest{Site: r.site, Session: r.session, Slots: 4, Free: 1 << 40, Holding: r.holds()})
	if err != nil {
		r.t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range w.Leases {
		r.holding[l.Item] = l
	}
	return w
}

// report tells outcomes, and how far all else is.
func (r *robot) report(all ...transfer.Outcome) (transfer.Ack, error) {
	r.number++
	in := transfer.Report{Site: r.site, Session: r.session, Number: r.number, Free: 1 << 40, Outcomes: all}
	over := map[int64]bool{}
	for _, o := range all {
		over[o.Item] = true
	}
	r.mu.Lock()
	for _, l := range r.holding {
		if !over[l.Item] {
			in.Progress = append(in.Progress, transfer.Progress{Item: l.Item, Epoch: l.Epoch, Stage: transfer.Moving, Moved: l.Size / 2})
		}
	}
	r.mu.Unlock()
	ack, err := r.ask.Report(r.t.Context(), in)
	if err == nil {
		r.mu.Lock()
		for item := range over {
			delete(r.holding, item)
		}
		r.mu.Unlock()
	}
	return ack, err
}

// did is a lease that went well.
func did(l transfer.Lease) transfer.Outcome {
	now := time.Now()
	return transfer.Outcome{Item: l.Item, Epoch: l.Epoch, Size: l.Size, Adler: l.Adler, Verified: true, Moved: l.Size,
		Begin: now.Add(-10 * time.Millisecond), End: now}
}

// until waits for something to be so.
func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	require.Eventually(t, what, f)
}

// ended waits for a request to end.
func (h *house) ended(id int64) transfer.Request {
	h.t.Helper()
	var q transfer.Request
	defer func() {
		if !q.Status.Ended() {
			h.tell(id)
		}
	}()
	until(h.t, "the request ends", func() bool {
		var err error
		if q, err = h.admin.Request(h.t.Context(), id); err != nil {
			h.t.Fatal(err)
		}
		return q.Status.Ended()
	})
	return q
}
