package cluster

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"weir/internal/wire"
)

// find returns a session that is there.
func (d *Server) find(id string) (*run, *session, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.run == nil || d.run.sessions[id] == nil || d.run.sessions[id].away() {
		return nil, nil, wire.Refuse(http.StatusNotFound, "nobody of that name has come in: say hello")
	}
	s := d.run.sessions[id]
	if s.lost() {
		return nil, nil, errGone()
	}
	d.run.hears(s.worker)
	return d.run, s, nil
}

// orders answers when there are orders for a worker, or after a while.
func (d *Server) orders(ctx context.Context, l *listening) (*taken, error) {
	r, s, err := d.find(l.Session)
	if err != nil {
		return nil, err
	}
	s.poll(1)
	defer s.poll(-1)
	late := time.NewTimer(r.crew.patience / 3)
	defer late.Stop()
	for {
		orders, more := s.pending(l.After)
		if len(orders) > 0 {
			return &taken{Acked: s.acked(), Orders: orders}, nil
		}
		select {
		case <-more:
			if s.lost() {
				return nil, errGone()
			}
		case <-r.over:
			return s.goodbye(), nil
		case <-late.C:
			return &taken{Acked: s.acked()}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// reports takes what a worker tells.
func (d *Server) reports(_ context.Context, t *told) (*taken, error) {
	r, s, err := d.find(t.Session)
	if err != nil {
		return nil, err
	}
	s.turn.Lock()
	defer s.turn.Unlock()
	fresh, err := s.fresh(t.Reports, d.clock())
	if err != nil {
		return nil, err
	}
	if len(fresh) > 0 && !r.tell(heard{worker: s.worker, reports: fresh}) || r.isOver() {
		return s.goodbye(), nil
	}
	return s.receipt(), nil
}

// making writes down what a worker is about to make, or has removed.
func (d *Server) making(_ context.Context, m *making) (*nothing, error) {
	r, _, err := d.find(m.Session)
	if err != nil {
		return nil, err
	}
	if r.crew.Manifest == nil {
		return nil, wire.Refuse(http.StatusForbidden, "this run makes nothing")
	}
	for _, e := range m.Entries {
		if e.Removed {
			err = r.crew.Manifest.Removed(string(e.Path))
		} else {
			err = r.crew.Manifest.Created(string(e.Path), e.Size, e.Seed)
		}
		if err != nil {
			return nil, fmt.Errorf("manifest: %w", err)
		}
	}
	return &nothing{}, nil
}
