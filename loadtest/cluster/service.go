package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"weir/internal/redact"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/monitor"
	"weir/storage"
)

// OpenService opens the plan's target with the driver that the plan names, reading the credentials
// that its auth names. If a user's own program does jobs, all other operations are done by our
// driver of the target's protocol, if there is such a driver. reach may be nil; an external program
// gets the address at which the target is reached. The caller closes the service.
func OpenService(ctx context.Context, p *scenario.Plan, drivers []storage.Driver, reach storage.Reach) (storage.Service, error) {
	cred, err := p.Auth.Read()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(drivers, func(d storage.Driver) bool { return d.Name == p.Driver })
	if i < 0 {
		return nil, fmt.Errorf("no driver %q in this program", p.Driver)
	}
	origin, err := openOrigin(ctx, p, drivers[i])
	if err != nil {
		return nil, fmt.Errorf("origin: %w", err)
	}
	var endpoints []storage.Endpoint
	for _, target := range p.Endpoints() {
		t := storage.Target{Cred: cred, Command: p.Command, Shared: p.Work.Session == workload.SharedSession, Reach: reach,
			Resume: p.Work.Resume, Origin: origin.of()}
		if t.URL, err = url.Parse(target); err != nil {
			err = fmt.Errorf("target: %w", err)
			break
		}
		var s storage.Service
		if s, err = opened(ctx, p, drivers[i], t, drivers); err != nil {
			break
		}
		endpoints = append(endpoints, storage.Endpoint{Name: t.URL.Host, Service: s})
	}
	switch {
	case err != nil:
		_ = storage.MultiEndpoint(endpoints).Close() // nothing was done with them
		return nil, errors.Join(err, origin.close())
	case len(endpoints) == 1:
		return origin.with(endpoints[0].Service), nil
	}
	return origin.with(storage.MultiEndpoint(endpoints)), nil
}

// An openedOrigin is the origin of a plan's copies, as a part of the target and as a service. It is
// nil for plans without an origin.
type openedOrigin struct {
	storage.Origin
	service storage.Service
}

// openOrigin opens the origin of a plan with the driver of its target.
func openOrigin(ctx context.Context, p *scenario.Plan, d storage.Driver) (*openedOrigin, error) {
	if p.Origin == nil {
		return nil, nil
	}
	cred, err := p.Origin.Auth.Read()
	if err != nil {
		return nil, err
	}
	o, err := p.Origin.Service(cred)
	if err != nil {
		return nil, err
	}
	s, err := d.Open(ctx, storage.Target{URL: o.URL, Cred: cred, Resume: p.Work.Resume})
	if err != nil {
		return nil, err
	}
	return &openedOrigin{*o, s}, nil
}

func (o *openedOrigin) of() *storage.Origin {
	if o == nil {
		return nil
	}
	return &o.Origin
}

func (o *openedOrigin) with(target storage.Service) storage.Service {
	if o == nil {
		return target
	}
	return storage.WithOrigin(target, o.service)
}

func (o *openedOrigin) close() error {
	if o == nil {
		return nil
	}
	return o.service.Close()
}

// OpenOwnClient opens the target of a plan whose clients are external programs with weir's own
// driver of its protocol. It returns nil if the clients are weir's own, or if there is no such
// driver. The caller closes the service.
func OpenOwnClient(ctx context.Context, p *scenario.Plan, drivers []storage.Driver) (storage.Service, error) {
	target, err := url.Parse(p.Endpoints()[0])
	if err != nil {
		return nil, fmt.Errorf("target: %w", err)
	}
	i := ownDriver(drivers, storage.Command, target.Scheme)
	if p.Driver != storage.Command || i < 0 {
		return nil, nil
	}
	own := *p
	own.Driver, own.Command = drivers[i].Name, nil
	return OpenService(ctx, &own, drivers, nil)
}

// ownDriver returns the index of a driver of scheme other than except, or a negative number.
func ownDriver(drivers []storage.Driver, except storage.DriverName, scheme string) int {
	return slices.IndexFunc(drivers, func(d storage.Driver) bool { return d.Name != except && slices.Contains(d.Schemes, scheme) })
}

// opened opens t with the driver d.
func opened(ctx context.Context, p *scenario.Plan, d storage.Driver, t storage.Target, drivers []storage.Driver) (_ storage.Service,
	err error) {
	there := t
	if len(p.Command) > 0 && t.Reach != nil {
		if there.URL, err = reached(ctx, t.URL, t.Reach); err != nil {
			return nil, err
		}
	}
	s, err := d.Open(ctx, there)
	if err == nil && len(p.Command) > 0 && p.Work.Kind == workload.CommandJobWork {
		s = withFiles(s, d.Name, t, drivers)
	}
	return s, err
}

// A jobService is the service of a user's own program, which only does its jobs (storage.Run).
// Files are listed, made and removed by our own driver of the target's protocol, which is opened at
// the first such operation.
type jobService struct {
	storage.Service // of the program
	driver          storage.Driver
	target          storage.Target

	mu    sync.Mutex
	files storage.Service // nil before it is opened
}

// withFiles returns own with the help of the driver of t's scheme, if there is such a driver.
func withFiles(own storage.Service, driver storage.DriverName, t storage.Target, drivers []storage.Driver) storage.Service {
	i := ownDriver(drivers, driver, t.URL.Scheme)
	if i < 0 {
		return own
	}
	t.Command = nil
	return &jobService{Service: own, driver: drivers[i], target: t}
}

// Client implements storage.Service.
func (s *jobService) Client() storage.Client {
	return &jobClient{Client: s.Service.Client(), service: s}
}

// Close implements storage.Service.
func (s *jobService) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.Service.Close()
	if s.files != nil {
		err = errors.Join(err, s.files.Close())
	}
	return err
}

// client returns a client of our own driver.
func (s *jobService) client(ctx context.Context) (storage.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil {
		files, err := s.driver.Open(ctx, s.target)
		if err != nil {
			return nil, err
		}
		s.files = files
	}
	return s.files.Client(), nil
}

// A jobClient runs jobs with one client, and does all other operations with another.
type jobClient struct {
	storage.Client
	service *jobService
	files   storage.Client // nil before its first operation
}

// Do implements storage.Client.
func (c *jobClient) Do(ctx context.Context, op *storage.Op, p storage.Progress) (storage.Result, error) {
	if op.Kind == storage.Run {
		return c.Client.Do(ctx, op, p)
	}
	if c.files == nil {
		files, err := c.service.client(ctx)
		if err != nil {
			return storage.Result{Size: -1}, err
		}
		c.files = files
	}
	return c.files.Do(ctx, op, p)
}

// Close implements storage.Client.
func (c *jobClient) Close() error {
	err := c.Client.Close()
	if c.files != nil {
		err = errors.Join(err, c.files.Close())
	}
	return err
}

// A place is a server's name and port.
type place struct {
	host string
	port uint16
}

// found is the address at which a worker reaches a place. It is valid once known is closed.
type found struct {
	known chan struct{}
	at    netip.AddrPort
	since time.Time
	err   error
}

// remembered is the time for which a worker keeps an address. It is shorter than the time after
// which unused listeners are closed, such as listeners for data connections.
const remembered = time.Minute

// old reports whether the address is older than that.
func (f *found) old() bool {
	select {
	case <-f.known:
		return time.Since(f.since) > remembered
	default:
		return false
	}
}

// reach implements storage.Reach: it requests an address from the controller at most once a minute
// for each server, and again after an error.
func (w *worker) reach(ctx context.Context, host string, port uint16) (netip.AddrPort, error) {
	p := place{host, port}
	w.places.RLock()
	f := w.ways[p]
	w.places.RUnlock()
	if f == nil || f.old() {
		w.places.Lock()
		if f = w.ways[p]; f == nil || f.old() {
			f = &found{known: make(chan struct{})}
			w.ways[p] = f
			if err := w.say(report{Ask: net.JoinHostPort(host, strconv.Itoa(int(port)))}); err != nil {
				w.places.Unlock()
				return netip.AddrPort{}, err
			}
		}
		w.places.Unlock()
	}
	select {
	case <-f.known:
		return f.at, f.err
	case <-ctx.Done():
		return netip.AddrPort{}, ctx.Err()
	}
}

// learn stores the controller's response. An error is not kept: the server may be reachable the
// next time.
func (w *worker) learn(answer *way) {
	host, port, err := net.SplitHostPort(answer.Server)
	n, bad := strconv.ParseUint(port, 10, 16)
	if err != nil || bad != nil {
		return // not requested
	}
	p := place{host, uint16(n)}
	w.places.Lock()
	defer w.places.Unlock()
	f := w.ways[p]
	if f == nil || !f.since.IsZero() {
		return
	}
	f.since = time.Now()
	if answer.Error != "" {
		f.err = fmt.Errorf("reach %s over the link: %w", answer.Server, errors.New(answer.Error))
	} else {
		f.at, f.err = netip.ParseAddrPort(answer.At)
	}
	if f.err != nil {
		delete(w.ways, p)
	}
	close(f.known)
}

// reached returns u with the address at which its host is reached. An external program handles
// redirections itself.
func reached(ctx context.Context, u *url.URL, reach func(context.Context, string, uint16) (netip.AddrPort, error)) (*url.URL, error) {
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	if u.Port() == "" {
		n, err = uint64(monitor.DefaultPort(u.Scheme)), nil
	}
	if err != nil || n == 0 {
		return nil, fmt.Errorf("target %s: over a link the port has to be known: write it, as in %s://%s:1234/", redact.URL(u.String()),
			u.Scheme, u.Hostname())
	}
	at, err := reach(ctx, u.Hostname(), uint16(n))
	if err != nil {
		return nil, err
	}
	there := *u
	there.Host = at.String()
	return &there, nil
}
