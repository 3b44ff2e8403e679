// Package simulated is a service in memory with a known knee: a queueing station that theory can
// compute, for tests, demonstrations and weir's check of itself.
//
// A target is a URL such as
//
//	simulated://name?servers=4&service=10ms&dist=exponential&bandwidth=1Gbit/s&connect=1ms&error=0.1%&files=1000x1MiB
//	simulated://name?service=10ms&sigma=0.02&kappa=0.0001&collapse=500x20%&noise=3%
//
// # The model
//
// An operation waits, first come first served, for one of the servers, and then occupies it for a
// service time, exponential or constant. Its payload then passes the link that all operations
// share, if there is a bandwidth: in pieces, each of which queues for the link, so that streams
// alternate like packets on a cable. A new session first needs the connect time, in parallel for
// all clients. A canceled operation leaves its queue or its server at once.
//
// With sigma or kappa there are no servers: n operations at once, each with the service time S if
// alone, together end at the rate
//
//	n/S / (1 + sigma(n-1) + kappa n(n-1))
//
// of the Universal Scalability Law (Gunther, Guerrilla Capacity Planning, 2007), which has its
// maximum at n = sqrt((1-sigma)/kappa). Any of them is the next to end. With collapse=500x20%, only
// 20% of the rate is left while more than 500 operations are present. Both need exponential times,
// and payload without a link moves all at once.
//
// With noise=3% the capacity, of the link too, is multiplied by a factor drawn whenever the service
// is opened: exp of a normal number with that standard deviation. With a seed in the URL a process
// draws the same numbers as the last process.
//
// Payload is not stored: files are a size and a seed of package content, and checksums are computed
// from these. All waiting uses timers and channels, so under testing/synctest it needs no wall
// time. In real time everything is planned ahead: a server begins its next operation at the planned
// end of the last operation, not when a late timer fires, so that the machine's own lateness does
// not lower the capacity.
//
// Services of one Driver with the same URL share files, servers and link, and written files stay as
// long as the Driver does. Processes share nothing.
package simulated

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"weir/storage"
)

// Driver returns the driver with no files and no services yet.
func Driver() storage.Driver {
	d := &driver{simulations: map[string]*simulation{}}
	return storage.Driver{
		Name:    storage.Simulated,
		Schemes: []string{"simulated"},
		Kinds: []storage.Kind{storage.Read, storage.Write, storage.Stat, storage.List, storage.Mkdir,
			storage.Remove, storage.Checksum, storage.Login, storage.Move, storage.Ping},
		Open: d.open,
	}
}

type driver struct {
	mu          sync.Mutex
	simulations map[string]*simulation // by URL
}

func (d *driver) open(_ context.Context, t storage.Target) (storage.Service, error) {
	conf, err := Parse(t.URL)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	w := d.simulations[t.URL.String()]
	if w == nil {
		w = newSimulation(conf, t.URL.Scheme+"://"+t.URL.Host)
		d.simulations[t.URL.String()] = w
	}
	w.opened()
	s := service{w: w}
	if t.Shared {
		s.shared = &sharedSession{turn: make(chan struct{}, 1)}
	}
	return s, nil
}

// A simulation is one simulated service. It is kept when the service is opened again.
type simulation struct {
	Config
	url     string
	epoch   time.Time
	servers *station
	link    *station
	tree    *tree
	clients atomic.Uint64

	contended *contended    // instead of servers, if the rate depends on more
	openings  uint64        // guarded by the driver's lock
	factor    atomic.Uint64 // of the capacity since the last opening: the bits of a float64
}

func newSimulation(c Config, url string) *simulation {
	w := &simulation{Config: c, url: url, epoch: time.Now(), servers: newStation(c.Servers), link: newStation(1), tree: newTree(c)}
	if c.depends() {
		w.contended = newContended(c, w.now, func(n int) float64 { return c.Rate(n) * w.capacity() })
	}
	return w
}

// opened draws the capacity until the next opening. Without a seed it is another one in each process.
func (w *simulation) opened() {
	w.openings++
	seed := w.Seed
	if !w.fixed {
		seed = uint64(time.Now().UnixNano())
	}
	z := rand.New(rand.NewPCG(seed, w.openings)).NormFloat64()
	w.factor.Store(math.Float64bits(math.Exp(w.Noise * z)))
}

// capacity returns the ratio of the service's speed to its mean.
func (w *simulation) capacity() float64 { return math.Float64frombits(w.factor.Load()) }

// now returns the time since the begin of the simulation.
func (w *simulation) now() time.Duration { return time.Since(w.epoch) }

type service struct {
	w      *simulation
	shared *sharedSession // the session that all clients share; nil: each has its own
}

// A sharedSession is one session of all clients: the first that needs it connects while the others wait.
type sharedSession struct {
	turn chan struct{}
	up   atomic.Bool
}

// Client implements storage.Service. A client's random numbers follow from the seed and from the
// number of clients before it.
func (s service) Client() storage.Client {
	return &client{w: s.w, shared: s.shared, rand: rand.New(rand.NewPCG(s.w.Seed, s.w.clients.Add(1)))}
}

// Close implements storage.Service. The files stay.
func (service) Close() error { return nil }

// A client is one session. Its timer and its place in queues are made once, so that an operation allocates nothing
// by itself.
type client struct {
	w         *simulation
	rand      *rand.Rand
	timer     *time.Timer
	place     waiter
	connected bool
	shared    *sharedSession // instead of connected, if sessions are shared
}

// Close implements storage.Client. A shared session stays for the others.
func (c *client) Close() error {
	c.connected = false
	return nil
}

func (c *client) isConnected() bool { return c.connected || c.shared != nil && c.shared.up.Load() }

// broken notes that the session has ended, for all that share it.
func (c *client) broken() {
	c.connected = false
	if c.shared != nil {
		c.shared.up.Store(false)
	}
}

// Do implements storage.Client.
func (c *client) Do(ctx context.Context, op *storage.Op, p storage.Progress) (storage.Result, error) {
	if op.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, op.Timeout)
		defer cancel()
	}
	r := run{c: c, ctx: ctx, op: op, p: p, res: storage.Result{Size: -1}}
	do := r.do
	if op.Dest != "" {
		do = r.fetch
	}
	err := do()
	if err != nil {
		path := url.URL{Path: "/" + op.Path}
		err = &storage.OpError{Kind: op.Kind, URL: c.w.url + path.EscapedPath(), Err: err}
	}
	return r.res, err
}

// until waits for a time of the simulation, or until ctx ends.
func (c *client) until(ctx context.Context, t time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d := t - c.w.now()
	if d <= 0 {
		return nil
	}
	if c.timer == nil {
		c.timer = time.NewTimer(d)
	} else {
		c.timer.Reset(d)
	}
	select {
	case <-c.timer.C:
		return nil
	case <-ctx.Done():
		c.timer.Stop()
		return ctx.Err()
	}
}

// pass holds a server of s for the given time, from the arrival or when its turn comes, and returns when it ended
// by plan. It calls tick, if not nil, after each of the equal steps of that time.
func (c *client) pass(ctx context.Context, s *station, arrival, length time.Duration, steps int, tick func(i int)) (time.Duration, error) {
	c.takePlace()
	start, err := s.enter(ctx, &c.place, arrival)
	if err != nil {
		return 0, err
	}
	for i := range steps {
		at := start + time.Duration(float64(length)*float64(i+1)/float64(steps))
		if err := c.until(ctx, at); err != nil {
			s.leave(max(start, min(c.w.now(), start+length)))
			return 0, err
		}
		if tick != nil {
			tick(i)
		}
	}
	s.leave(start + length)
	return start + length, nil
}

func (c *client) takePlace() {
	if c.place.start == nil {
		c.place.start = make(chan time.Duration, 1)
	}
}

// serviceTime draws the time that the servers need for the next operation.
func (c *client) serviceTime() time.Duration {
	mean := float64(c.w.Service) / c.w.capacity()
	if c.w.Constant {
		return time.Duration(mean)
	}
	return time.Duration(c.rand.ExpFloat64() * mean)
}

// drawError draws the class of error of the next operation, or the class without failure.
func (c *client) drawError() storage.Class {
	x := c.rand.Float64()
	for class, share := range c.w.Errors {
		if x < share {
			return storage.Class(class)
		}
		x -= share
	}
	return storage.None
}

// failure returns the error of an operation of a class, whose text mentions that it is simulated.
func failure(class storage.Class) error {
	sentinel := map[storage.Class]error{
		storage.Refused: errRefused, storage.Reset: errReset, storage.Denied: fs.ErrPermission, storage.NotFound: fs.ErrNotExist,
		storage.Busy: storage.ErrBusy, storage.Checksummed: storage.ErrChecksum, storage.Short: storage.ErrShort,
		storage.ServerFailed: storage.ErrServer, storage.Timeout: context.DeadlineExceeded, storage.Other: errors.New("some other failure"),
	}[class]
	return fmt.Errorf("simulated failure: %w", sentinel)
}
