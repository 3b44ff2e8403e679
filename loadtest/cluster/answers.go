package cluster

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"weir/internal/say"
	"weir/internal/wire"
	"weir/loadtest/measure"
)

// refuseGivenUp returns the error response to a worker that was given up.
func refuseGivenUp() error {
	return wire.Refuse(http.StatusGone, "this worker was silent for too long and was given up")
}

// early is the time that a worker that registers before the run begins waits for a response.
const early = 5 * time.Second

// register opens the session of a worker.
func (d *Server) register(ctx context.Context, h *registration) (*registrationResponse, error) {
	select {
	case <-d.begun:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(early):
		return nil, wire.Refuse(http.StatusServiceUnavailable, "the run has not begun")
	}
	if len(h.Session) < 8 || len(h.Session) > 64 {
		return nil, wire.Refuse(http.StatusBadRequest, "the session must have 8 to 64 characters")
	}
	s, comes, err := d.sessionOf(h)
	if err != nil {
		return nil, err
	}
	if comes && !d.run.deliver(workerInput{worker: s.worker, registers: true, registration: h}) {
		return &registrationResponse{Over: true}, nil
	}
	return &registrationResponse{Name: s.worker.name, Number: s.worker.number}, nil
}

// sessionOf returns the session of a registration, and whether the worker is new to this controller.
func (d *Server) sessionOf(h *registration) (s *session, comes bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, known := d.run.sessions[h.Session]
	if !known {
		e := journalEntry{identity: h.identity, Number: d.came + 1}
		e.Host, e.Job = clean(e.Host), clean(e.Job)
		if err := d.journal.note(e); err != nil {
			return nil, false, err
		}
		d.came++
		s = d.run.enroll(e, h.Files, machine{h.Boot, h.Space})
	}
	if s.isClosed() {
		return nil, false, refuseGivenUp()
	}
	return s, s.reconnect(h.Acked, !known), nil
}

// clean shortens text of a worker and removes characters that cannot be displayed.
func clean(text string) string {
	const longest = 100
	if r := []rune(text); len(r) > longest {
		text = string(r[:longest])
	}
	return say.Plain(text)
}

// spareFiles is the number of open files that a worker needs besides the files of its clients.
const spareFiles = 100

// room returns the number of clients for which a worker has enough open files.
func (r *run) room(files uint64) int {
	if r.controller.options.FilesPerClient <= 0 || files == 0 {
		return 0
	}
	return max(int(min(files, 1<<30))-spareFiles, 1) / cmp.Or(r.controller.options.FilesPerClient, 1)
}

// announceWorker writes the event of a new worker.
func (k *controller) announceWorker(w *remote) error {
	from := w.about.Host
	if w.about.Job != "" {
		from += ", job " + w.about.Job
	}
	return k.event(measure.Event{
		Kind: measure.EventWorker,
		Text: fmt.Sprintf("worker %s connected from %s; its clock is %s the controller's, within %v", w.name, from, apart(w.about.Offset),
			w.about.Doubt.Round(time.Microsecond)),
		Worker: &measure.Worker{Name: w.name, State: measure.Came, Host: w.about.Host, Job: w.about.Job, Clients: w.room,
			Offset: -w.about.Offset.Seconds(), Doubt: w.about.Doubt.Seconds()},
	})
}

// checkVersion warns, once for each version, of a worker with another version of the program.
func (k *controller) checkVersion(w *remote, version string) error {
	version = clean(version)
	if k.options.Version == "" || version == k.options.Version || k.others[version] {
		return nil
	}
	if k.others == nil {
		k.others = map[string]bool{}
	}
	k.others[version] = true
	return k.warn(fmt.Sprintf("worker %s is another version of weir, %q, and this one is %q: they may not measure the same", w.name, version,
		k.options.Version))
}

// apart describes the offset of another clock.
func apart(offset time.Duration) string {
	word := "behind"
	if offset < 0 {
		word = "ahead of"
	}
	return fmt.Sprintf("%v %s", offset.Abs().Round(10*time.Microsecond), word)
}

// find returns the session of a connected worker.
func (d *Server) find(id string) (*run, *session, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.run == nil || d.run.sessions[id] == nil || d.run.sessions[id].isAbsent() {
		return nil, nil, wire.Refuse(http.StatusNotFound, "unknown session: register first")
	}
	s := d.run.sessions[id]
	if s.isClosed() {
		return nil, nil, refuseGivenUp()
	}
	d.run.controller.heard(s.worker)
	return d.run, s, nil
}

// orders responds when there are orders for a worker, or after a third of the patience (long poll).
func (d *Server) orders(ctx context.Context, l *ordersRequest) (*ordersResponse, error) {
	r, s, err := d.find(l.Session)
	if err != nil {
		return nil, err
	}
	s.poll(1)
	defer s.poll(-1)
	late := time.NewTimer(r.controller.options.patience / 3)
	defer late.Stop()
	for {
		orders, more := s.pending(l.After)
		if len(orders) > 0 {
			return &ordersResponse{Acked: s.acked(), Orders: orders}, nil
		}
		select {
		case <-more:
			if s.isClosed() {
				return nil, refuseGivenUp()
			}
		case <-r.over:
			return s.runOver(), nil
		case <-late.C:
			return &ordersResponse{Acked: s.acked()}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// reports receives reports of a worker.
func (d *Server) reports(ctx context.Context, t *reportsRequest) (*ordersResponse, error) {
	r, s, err := d.find(t.Session)
	if err != nil {
		return nil, err
	}
	s.met(ctx)
	s.turn.Lock()
	defer s.turn.Unlock()
	fresh, err := s.fresh(t.Reports, d.clock())
	if err != nil {
		return nil, err
	}
	if len(fresh) > 0 && !r.deliver(workerInput{worker: s.worker, reports: fresh}) || r.isOver() {
		return s.runOver(), nil
	}
	return s.receipt(), nil
}

// making records in the manifest the paths that a worker is about to create, or has removed.
func (d *Server) making(_ context.Context, m *manifestRequest) (*empty, error) {
	r, _, err := d.find(m.Session)
	if err != nil {
		return nil, err
	}
	if r.controller.options.Manifest == nil {
		return nil, wire.Refuse(http.StatusForbidden, "this run makes nothing")
	}
	for _, e := range m.Entries {
		if e.Removed {
			err = r.controller.options.Manifest.Removed(string(e.Path))
		} else {
			err = r.controller.options.Manifest.Created(string(e.Path), e.Size, e.Seed)
		}
		if err != nil {
			return nil, fmt.Errorf("manifest: %w", err)
		}
	}
	return &empty{}, nil
}
