package diagnose

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"weir/internal/slow"
	"weir/internal/unit"
	"weir/storage"
)

const (
	smallFile = 1 << 20 // bytes below which a file gives no rates of ranges
	sessions  = 3       // new sessions that are measured
	answers   = 10      // requests of an open session that are measured
	silence   = 6 * time.Second
)

// points notes when an operation passes its phases.
type points struct {
	begun  time.Time
	at     [storage.Phases]float64 // s after begun; 0: not passed
	moved  func(int)
	server string
}

// Reached implements storage.Progress.
func (p *points) Reached(of storage.Phase) { p.at[of] = time.Since(p.begun).Seconds() }

// Moved implements storage.Progress.
func (p *points) Moved(n int) {
	if p.moved != nil {
		p.moved(n)
	}
}

// ServedBy implements storage.Progress.
func (p *points) ServedBy(host string) { p.server = host }

// setup returns the times between the phases. lookup is part of the first.
func (p *points) setup(lookup float64) slow.Setup {
	var s slow.Setup
	last := 0.0
	for _, to := range []struct {
		phase storage.Phase
		time  *float64
	}{
		{storage.Connected, &s.Connect}, {storage.Secured, &s.TLS}, {storage.Authenticated, &s.Login},
		{storage.Redirected, &s.Redirect}, {storage.Opened, &s.Open}, {storage.FirstByte, &s.First},
	} {
		if at := p.at[to.phase]; at > last {
			*to.time, last = at-last, at
		}
	}
	s.Lookup = min(lookup, s.Connect)
	s.Connect -= s.Lookup
	return s
}

// sessions measures new sessions up to the first byte.
func (d *diagnosis) sessions(ctx context.Context) (string, error) {
	if d.Write {
		if err := d.mkdir(ctx); err != nil {
			return "", err
		}
	}
	var all []slow.Setup
	for range sessions {
		s, err := d.session(ctx)
		if err != nil {
			return d.silent(ctx, err)
		}
		all = append(all, s)
	}
	d.seen.Setup = median(all)
	s := &d.seen.Setup
	return unit.Seconds(s.Sum()) + " to the first byte: " + phases(s), nil
}

// phases lists the phases of a session that took time.
func phases(s *slow.Setup) string {
	var all []string
	for _, p := range s.Parts() {
		if p.Seconds > 0 {
			all = append(all, p.Name+" "+unit.Seconds(p.Seconds))
		}
	}
	return strings.Join(all, ", ")
}

// session opens a session and reads one byte, or, to write, makes an empty file.
func (d *diagnosis) session(ctx context.Context) (slow.Setup, error) {
	c := d.service.Client()
	defer c.Close()
	d.route.took()
	op := firstByte(d.file)
	if d.Write {
		op = storage.Op{Kind: storage.Write, Path: d.newFile(), Timeout: 4 * silence}
	}
	p := &points{begun: time.Now()}
	r, err := c.Do(ctx, &op, p)
	d.report.Spent.Requests++
	if err != nil {
		return slow.Setup{}, err
	}
	if d.Write && p.at[storage.Opened] == 0 {
		p.at[storage.Opened] = time.Since(p.begun).Seconds()
	}
	if r.Size > 0 {
		d.seen.Size = float64(r.Size)
	}
	if p.server != "" {
		d.server = p.server
	}
	return p.setup(d.route.took()), nil
}

// firstByte returns the operation that reads the first byte of a file.
func firstByte(path string) storage.Op {
	return storage.Op{Kind: storage.Read, Path: path, Size: -1, Ranges: []storage.Range{{Length: 1}}, Timeout: 4 * silence}
}

// mkdir makes the folder that the diagnosis writes into.
func (d *diagnosis) mkdir(ctx context.Context) error {
	c := d.service.Client()
	defer c.Close()
	d.report.Spent.Requests++
	_, err := c.Do(ctx, &storage.Op{Kind: storage.Mkdir, Path: d.folder, Timeout: 4 * silence}, storage.NoProgress{})
	d.owns = err == nil
	return err
}

// median returns the medians of each phase.
func median(all []slow.Setup) (m slow.Setup) {
	for phase, of := range m.Phases() {
		var values []float64
		for i := range all {
			values = append(values, *all[i].Phases()[phase])
		}
		*of = middle(values)
	}
	return m
}

// silent judges a service that accepts connections and did not answer in time; other errors are
// returned.
func (d *diagnosis) silent(ctx context.Context, err error) (string, error) {
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, os.ErrDeadlineExceeded) {
		return "", err
	}
	d.seen.Stuck = &slow.Stuck{}
	c := d.service.Client()
	defer c.Close()
	if _, answers := d.request(ctx, c); answers == nil {
		d.seen.Stuck.Requests = true
	}
	return "no answer, though connections are accepted", nil
}

// request returns the time of a request without payload.
func (d *diagnosis) request(ctx context.Context, c storage.Client) (float64, error) {
	begun := time.Now()
	err := d.stat(ctx, c)
	d.report.Spent.Requests++
	return time.Since(begun).Seconds(), err
}

// stat carries out a request without payload. Goroutines may call it at once.
func (d *diagnosis) stat(ctx context.Context, c storage.Client) error {
	_, err := c.Do(ctx, &storage.Op{Kind: storage.Stat, Path: d.known(), Timeout: silence}, storage.NoProgress{})
	return err
}

// latencies measures connects and requests alternately, n times or until ctx ends.
func (d *diagnosis) latencies(ctx context.Context, n int, pause time.Duration) (slow.Latency, error) {
	c := d.service.Client()
	defer c.Close()
	var connects, asks []float64
	to := d.address(ctx)
	for i := -1; i < n && ctx.Err() == nil; i++ {
		took, err := d.request(ctx, c)
		if err != nil {
			return slow.Latency{}, err
		}
		if i < 0 {
			continue // it connects
		}
		asks = append(asks, took)
		d.report.Spent.Requests++
		if took, err = connect(ctx, to); err == nil {
			connects = append(connects, took)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
	return slow.Latency{Connect: middle(connects), Request: middle(asks)}, nil
}

// address returns the address of the data server, or of the target.
func (d *diagnosis) address(ctx context.Context) string {
	to := *d.URL
	if d.server != "" {
		to.Host = d.server
	}
	r := newRoute(&to)
	at, err := d.route.reach(ctx, r.host, r.port)
	if err != nil {
		return to.Host
	}
	return at.String()
}

func middle(of []float64) float64 {
	if len(of) == 0 {
		return 0
	}
	slices.Sort(of)
	return of[len(of)/2]
}

// idle measures requests without payload while nothing else goes on.
func (d *diagnosis) idle(ctx context.Context) (string, error) {
	l, err := d.latencies(ctx, answers, 0)
	if err != nil {
		return d.silent(ctx, err)
	}
	d.seen.Idle = l
	return fmt.Sprintf("%s in an open session, %s for a connect", unit.Seconds(l.Request), unit.Seconds(l.Connect)), nil
}

// smaller opens a much smaller file of the same folder.
func (d *diagnosis) smaller(ctx context.Context) (string, error) {
	c := d.service.Client()
	defer c.Close()
	list, err := c.Do(ctx, &storage.Op{Kind: storage.List, Timeout: silence}, storage.NoProgress{})
	d.report.Spent.Requests++
	if err != nil {
		return "", err
	}
	least := storage.Entry{}
	for _, e := range list.Entries {
		if !e.Dir && e.Size > 0 && (least.Size == 0 || e.Size < least.Size) {
			least = e
		}
	}
	if least.Size == 0 || float64(least.Size) > d.seen.Size/4 {
		return "none in the folder is smaller than a quarter", nil
	}
	p := &points{begun: time.Now()}
	op := firstByte(least.Name)
	if _, err = c.Do(ctx, &op, p); err != nil {
		return "", err
	}
	d.report.Spent.Requests++
	s := p.setup(0)
	d.seen.Other = &slow.Opening{Size: float64(least.Size), Seconds: s.Open + s.First}
	return fmt.Sprintf("%s opens in %s", path.Base(least.Name), unit.Seconds(s.Open+s.First)), nil
}
