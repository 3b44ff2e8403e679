package calibration

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"weir/internal/say"
	"weir/loadtest/cluster"
	"weir/loadtest/run/calibration/relay"
	"weir/loadtest/workload"
	"weir/storage"
	"weir/storage/all"
)

// The number of files that each side moves through the relay, and the time limit for each.
const (
	looks       = 3
	lookTimeout = 30 * time.Second
)

// look has each side move a few files through a relay that counts requests.
func (c *calibrator) look(ctx context.Context) {
	u, err := url.Parse(c.sides[0].plan.Target)
	if err != nil {
		return // the plan would not be there
	}
	port, ok := map[string]string{"root": "1094", "xroot": "1094", "http": "80", "dav": "80"}[u.Scheme]
	if !ok {
		c.given.Encrypted = true
		return
	}
	if p := u.Port(); p != "" {
		port = p
	}
	for i, s := range c.sides[:2] {
		l, err := c.lookAt(ctx, s, *u, net.JoinHostPort(u.Hostname(), port))
		if err != nil {
			c.given.LookError = say.Plain(fmt.Sprintf("%s: %v", s.name, err))
			return
		}
		c.given.Look[i] = l
	}
}

func (c *calibrator) lookAt(ctx context.Context, s *side, u url.URL, server string) (l Look, err error) {
	r, err := relay.Listen(ctx, server)
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	plan := *s.plan
	if _, port, err := net.SplitHostPort(r.Address()); err == nil && u.Hostname() == "localhost" {
		u.Host = "localhost:" + port // certificates and tickets are for names
	} else {
		u.Host = r.Address()
	}
	plan.Target = u.String()
	service, err := cluster.OpenService(ctx, &plan, all.Drivers(), nil)
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, service.Close()) }()
	if workload.Writes(plan.Work) {
		if err := c.folders(s.config); err != nil {
			return l, err
		}
		defer func() { err = errors.Join(err, c.cleanSide(s)) }()
	}
	for i := range looks {
		if err := c.lookOnce(ctx, s, service, i, &l); err != nil {
			return l, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	r.Idle(ctx)
	l.Seen = r.Take()
	return l, nil
}

// lookOnce moves one file in a session of its own.
func (c *calibrator) lookOnce(ctx context.Context, s *side, service storage.Service, i int, l *Look) error {
	op := storage.Op{Kind: storage.Write, Timeout: lookTimeout, Chunk: int(s.plan.Work.Chunk), Ahead: s.plan.Work.InFlight,
		Plain: s.plan.Work.Plain}
	if workload.Writes(s.plan.Work) {
		op.Size = int64(s.plan.Work.Size.Fixed)
		op.Path = fmt.Sprintf("%s/look%d.dat", workload.Home(s.config.Folder, 0), i)
		if err := s.manifest.Created(op.Path, op.Size, op.Seed); err != nil {
			return err
		}
	} else {
		f := c.made[i%len(c.made)]
		op.Kind, op.Path, op.Size = storage.Read, f.Path, f.Size
	}
	client, w := service.Client(), &witness{}
	_, err := client.Do(ctx, &op, w)
	if err = errors.Join(err, client.Close()); err != nil {
		return err
	}
	l.Operations++
	l.Redirected = l.Redirected || w.redirected
	return nil
}

// A witness records whether an operation was redirected to another server.
type witness struct{ redirected bool }

func (*witness) Reached(storage.Phase) {}
func (*witness) Moved(int)             {}

// ServedBy implements storage.Progress.
func (w *witness) ServedBy(host string) { w.redirected = w.redirected || host != "" }
