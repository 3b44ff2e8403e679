package xrootd

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"

	"weir/storage"
)

// A reporter requests reports from servers about themselves, each over a session of its own that no
// client uses.
type reporter struct {
	mu     sync.Mutex
	askers map[string]*asker
}

// An asker is the session with one server.
type asker struct {
	mu sync.Mutex
	c  *client
}

var _ storage.Reporter = (*service)(nil)

// Servers returns the target and, if it is a redirector, its data servers.
func (s *service) Servers(ctx context.Context) ([]string, error) {
	names := []string{s.home.name}
	err := s.asking(ctx, s.home.name, func(x *call) error {
		l, err := x.exchange.session(x.s.home)
		if err != nil || l.flags&flagManager == 0 {
			return err
		}
		more, err := x.locations([]byte{'*'}, 0)
		names = append(names, more...)
		return err
	})
	return names, err
}

// Report returns a server's report on itself: the XML of kXR_query stats.
func (s *service) Report(ctx context.Context, server string) ([]byte, error) {
	var text []byte
	err := s.asking(ctx, server, func(x *call) error {
		e := &x.exchange
		e.req = request{code: rqQuery, args: append(e.req.args[:0], 'a')}
		binary.BigEndian.PutUint16(e.req.params[0:], queryStats)
		_, err := e.ask()
		text = append([]byte(nil), e.data...)
		return err
	})
	return text, err
}

// asking runs a request on the session with a server.
func (s *service) asking(ctx context.Context, server string, ask func(*call) error) error {
	a, err := s.askerOf(server)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	x := newCall(a.c.s)
	op := storage.Op{Kind: storage.Ping}
	x.begin(ctx, a.c, &op, storage.NoProgress{})
	x.Deadline, _ = ctx.Deadline()
	if err := ask(x); err != nil {
		if refused(err) == 0 {
			err = errors.Join(err, a.c.Close())
		}
		return x.describe(err)
	}
	return nil
}

// askerOf returns the session with a server: a client with that server as its target.
func (s *service) askerOf(name string) (*asker, error) {
	s.ask.mu.Lock()
	defer s.ask.mu.Unlock()
	if a := s.ask.askers[name]; a != nil {
		return a, nil
	}
	home, err := s.serverNamed(name)
	if err != nil {
		return nil, err
	}
	of := &service{
		home: home, opaque: s.opaque, tls: s.tls, actions: s.actions,
		methods: s.methods, user: s.user, pid: s.pid, dialer: s.dialer, small: s.small, large: s.large,
	}
	of.calls.New = func() any { return newCall(of) }
	a := &asker{c: &client{s: of, home: of.link(of.home)}}
	if s.ask.askers == nil {
		s.ask.askers = map[string]*asker{}
	}
	s.ask.askers[name] = a
	return a, nil
}

func (r *reporter) close() error {
	var errs []error
	for _, a := range r.askers {
		errs = append(errs, a.c.Close())
	}
	return errors.Join(errs...)
}
