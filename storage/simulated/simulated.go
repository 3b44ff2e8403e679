// Package simulated is a service in memory whose knee is known: a queueing
// station that theory can compute, for tests, demonstrations and weir's check
// of itself.
//
// A target is a URL such as
//
//	simulated://name?servers=4&service=10ms&dist=exponential&bandwidth=1Gbit/s&connect=1ms&error=0.1%&files=1000x1MiB
//
// # The model
//
// An operation waits, first come first served, for one of the servers, which
// then takes a service time, exponential or constant. Its payload then passes
// the link that all operations share, if there is a bandwidth: in pieces, each
// of which queues for the link, so that streams take turns as packets on a
// cable do. A new session first takes the connect time, in which nobody waits
// for anybody. An operation that is given up leaves its queue or its server at
// once.
//
// The payload is never there: files are a size and a seed of package content,
// and checksums are computed from these. All waiting is for timers and
// channels, so under testing/synctest it takes no wall time. In real time
// everything is planned ahead: a server begins its next operation when the
// last one was to end, not when a late timer said so, so that the machine's
// own lateness does not lower the capacity.
//
// Services of one Driver with the same URL share files, servers and link, and
// what is written stays as long as the Driver does. Processes share nothing.
package simulated

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"weir/storage"
)

// Driver returns the driver with no files and no services yet.
func Driver() storage.Driver {
	d := &driver{worlds: map[string]*world{}}
	return storage.Driver{
		Name:    "simulated",
		Schemes: []string{"simulated"},
		Kinds: []storage.Kind{storage.Read, storage.Write, storage.Stat, storage.List, storage.Mkdir,
			storage.Remove, storage.Checksum, storage.Login, storage.Move, storage.Ping},
		Open: d.open,
	}
}

type driver struct {
	mu     sync.Mutex
	worlds map[string]*world // by URL
}

func (d *driver) open(_ context.Context, t storage.Target) (storage.Service, error) {
	conf, err := Parse(t.URL)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	w := d.worlds[t.URL.String()]
	if w == nil {
		w = newWorld(conf, t.URL.Scheme+"://"+t.URL.Host)
		d.worlds[t.URL.String()] = w
	}
	s := service{w: w}
	if t.Shared {
		s.joint = &joint{turn: make(chan struct{}, 1)}
	}
	return s, nil
}

// A world is one simulated service, however often it is opened.
type world struct {
	Config
	url     string
	epoch   time.Time
	servers *station
	link    *station
	tree    *tree
	clients atomic.Uint64
}

func newWorld(c Config, url string) *world {
	return &world{Config: c, url: url, epoch: time.Now(), servers: newStation(c.Servers), link: newStation(1), tree: newTree(c)}
}

// now is the time since the world's begin.
func (w *world) now() time.Duration { return time.Since(w.epoch) }

type service struct {
	w     *world
	joint *joint // the session that all clients share; nil: each has its own
}

// A joint is a session of many clients: the first to need it connects, the
// others wait for that.
type joint struct {
	turn chan struct{}
	up   atomic.Bool
}

// Client implements storage.Service. What a client draws follows from the
// seed and from how many clients there were before.
func (s service) Client() storage.Client {
	return &client{w: s.w, joint: s.joint, rand: rand.New(rand.NewPCG(s.w.Seed, s.w.clients.Add(1)))}
}

// Close implements storage.Service. The files stay.
func (service) Close() error { return nil }
