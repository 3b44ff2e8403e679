package cluster

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"weir/internal/say"
	"weir/internal/wire"
	"weir/measure"
)

// errGone tells a worker that it was given up.
func errGone() error {
	return wire.Refuse(http.StatusGone, "this worker was silent for too long and was given up")
}

// early is for how long a worker that comes before the run waits for an answer.
const early = 5 * time.Second

// hello takes in a worker.
func (d *Server) hello(ctx context.Context, h *hello) (*helloResponse, error) {
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
	if comes && !d.run.tell(workerInput{worker: s.worker, comes: true, hello: h}) {
		return &helloResponse{Over: true}, nil
	}
	return &helloResponse{Name: s.worker.name, Number: s.worker.number}, nil
}

// sessionOf returns the session of who says hello, and whether the controller does not know that it is there.
func (d *Server) sessionOf(h *hello) (s *session, comes bool, err error) {
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
	if s.lost() {
		return nil, false, errGone()
	}
	return s, s.arrive(h.Acked, !known), nil
}

// clean cuts what a worker says of itself to what can be shown.
func clean(text string) string {
	const longest = 100
	if r := []rune(text); len(r) > longest {
		text = string(r[:longest])
	}
	return say.Plain(text)
}

// spareFiles are what a worker needs to have open besides its clients'.
const spareFiles = 100

// room returns how many clients a worker can have that may open so many files.
func (r *run) room(files uint64) int {
	if r.options.FilesPerClient <= 0 || files == 0 {
		return 0
	}
	return max(int(min(files, 1<<30))-spareFiles, 1) / cmp.Or(r.options.FilesPerClient, 1)
}

// greet reports on a worker that came in.
func (k *controller) greet(w *remote) error {
	from := w.about.Host
	if w.about.Job != "" {
		from += ", job " + w.about.Job
	}
	return k.event(measure.Event{
		Kind: measure.EventWorker,
		Text: fmt.Sprintf("worker %s came in from %s; its clock is %s ours, give or take %v", w.name, from, apart(w.about.Offset),
			w.about.Doubt.Round(time.Microsecond)),
		Worker: &measure.Worker{Name: w.name, State: measure.Came, Host: w.about.Host, Job: w.about.Job, Clients: w.room,
			Offset: -w.about.Offset.Seconds(), Doubt: w.about.Doubt.Seconds()},
	})
}

// compare reports on a worker that is another version of the program, once of each: a user may have put it on its
// machine, or have started a newer controller.
func (k *controller) compare(w *remote, version string) error {
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

// apart says how far another clock is from ours.
func apart(offset time.Duration) string {
	word := "behind"
	if offset < 0 {
		word = "ahead of"
	}
	return fmt.Sprintf("%v %s", offset.Abs().Round(10*time.Microsecond), word)
}

// find returns a session that is there.
func (d *Server) find(id string) (*run, *session, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.run == nil || d.run.sessions[id] == nil || d.run.sessions[id].away() {
		return nil, nil, wire.Refuse(http.StatusNotFound, "unknown session: say hello")
	}
	s := d.run.sessions[id]
	if s.lost() {
		return nil, nil, errGone()
	}
	d.run.hears(s.worker)
	return d.run, s, nil
}

// orders answers when there are orders for a worker, or after a while.
func (d *Server) orders(ctx context.Context, l *ordersRequest) (*ordersResponse, error) {
	r, s, err := d.find(l.Session)
	if err != nil {
		return nil, err
	}
	s.poll(1)
	defer s.poll(-1)
	late := time.NewTimer(r.options.patience / 3)
	defer late.Stop()
	for {
		orders, more := s.pending(l.After)
		if len(orders) > 0 {
			return &ordersResponse{Acked: s.acked(), Orders: orders}, nil
		}
		select {
		case <-more:
			if s.lost() {
				return nil, errGone()
			}
		case <-r.over:
			return s.goodbye(), nil
		case <-late.C:
			return &ordersResponse{Acked: s.acked()}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// reports takes what a worker tells.
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
	if len(fresh) > 0 && !r.tell(workerInput{worker: s.worker, reports: fresh}) || r.isOver() {
		return s.goodbye(), nil
	}
	return s.receipt(), nil
}

// making writes down what a worker is about to make, or has removed.
func (d *Server) making(_ context.Context, m *manifestRequest) (*empty, error) {
	r, _, err := d.find(m.Session)
	if err != nil {
		return nil, err
	}
	if r.options.Manifest == nil {
		return nil, wire.Refuse(http.StatusForbidden, "this run makes nothing")
	}
	for _, e := range m.Entries {
		if e.Removed {
			err = r.options.Manifest.Removed(string(e.Path))
		} else {
			err = r.options.Manifest.Created(string(e.Path), e.Size, e.Seed)
		}
		if err != nil {
			return nil, fmt.Errorf("manifest: %w", err)
		}
	}
	return &empty{}, nil
}
