package monitor

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"
)

// A Reporter requests statistics from the servers of the service, in the service's own protocol;
// storage.Reporter is one. Its methods are called by several goroutines at once, Report never twice
// at once for one server. They return soon after ctx ends.
type Reporter interface {
	// Servers returns host:port of the target and, if it is a redirector, of its data servers; the target comes
	// first.
	Servers(ctx context.Context) ([]string, error)
	// Report returns the server's statistics in the format of XRootD's kXR_query stats.
	Report(ctx context.Context, server string) ([]byte, error)
}

const (
	listAgain   = 30 * time.Second // between two questions which servers there are
	mostServers = 512              // servers that are polled
	mostBackoff = 30 * time.Second // between two questions to a server that does not answer
	reportFresh = 3 * time.Second  // a report so old is as good as an answer
)

// A backoff spaces out tries that fail: after 1, 2, 4 s and so on.
type backoff struct {
	row  int
	next time.Duration // by the clock that does not jump
}

// failed notes a failure and reports whether it is the first of consecutive failures.
func (b *backoff) failed(now time.Duration) (first bool) {
	wait := mostBackoff
	if b.row < 5 {
		wait = time.Second << b.row
	}
	b.row++
	b.next = now + wait - tooSoon
	return b.row == 1
}

func (b *backoff) waits(now time.Duration) bool { return b.row > 0 && now < b.next }

// asked is the probe of one server of the service that has statistics of its own. It uses a report
// that the server sent by itself, if that is fresh, instead of a request.
type asked struct {
	reporter Reporter
	server   string // host:port
	kind     string // the kind of server, unless the statistics contain it
	servers  *servers
	place    *place // nil: not on this machine
	clock    func() moment
	tries    backoff
	last     *statistics
	lastAt   moment
}

func (a *asked) close() {}

func (a *asked) look(ctx context.Context) (*Sample, error) {
	began := a.clock()
	if a.tries.waits(began.mono) {
		return nil, nil
	}
	now, at, err := a.get(ctx, began)
	if err != nil {
		if first := a.tries.failed(a.clock().mono); !first {
			return nil, nil // reported already
		}
		return nil, fmt.Errorf("statistics of %s: %w", a.server, err)
	}
	a.tries = backoff{}
	if now == nil {
		return nil, nil // nothing since the last look
	}
	var s *Sample
	if now.follows(a.last) {
		s = a.sample(now, at)
	}
	a.last, a.lastAt = now, at
	return s, nil
}

// get returns the newest statistics; nil if the last statistics are still the newest.
func (a *asked) get(ctx context.Context, began moment) (*statistics, moment, error) {
	if a.last != nil {
		if s, at := a.servers.ask(a.last.identity()); s != nil && began.mono-at.mono < reportFresh {
			if at.mono <= a.lastAt.mono {
				return nil, at, nil
			}
			return s, at, nil
		}
	}
	b, err := a.reporter.Report(ctx, a.server)
	if err != nil {
		return nil, began, err
	}
	at := a.clock()
	at.mono = (began.mono + at.mono) / 2 // somewhere in between it counted
	s, err := parseStatistics(b)
	if err != nil {
		return nil, at, err
	}
	if a.last != nil && a.last.identity() != s.identity() {
		a.servers.leave(a.last.identity())
	}
	a.servers.ask(s.identity())
	return s, at, nil
}

func (a *asked) sample(now *statistics, at moment) *Sample {
	seconds := (at.mono - a.lastAt.mono).Seconds()
	service := now.since(a.last, seconds)
	if service == nil {
		return &Sample{Time: at.wall, LeftOut: []string{LeftOutService}}
	}
	service.Kind = cmp.Or(service.Kind, a.kind)
	s := &Sample{Time: at.wall, Seconds: seconds, Service: service}
	if a.place == nil || a.place.state.Load() == placeHidden {
		s.Procs = []Proc{service.proc()}
	}
	return s
}

// ask lists the servers of the service and starts a probe for each, until the watch stops. Servers
// that appear later get a probe as well.
func (w *Watch) ask(ctx context.Context, o Options, clock func() moment) {
	warned := false // of too many servers
	var tries backoff
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.stop:
			return
		case <-timer.C:
		}
		list, err := w.list(ctx, o)
		if full := w.enlist(ctx, list, o, clock); full && !warned {
			warned = true
			w.warn(hostPort(o.Target), RoleServer, fmt.Sprintf("there are %d servers: only %d of them are asked", len(list), mostServers))
		}
		if err == nil {
			tries = backoff{}
			timer.Reset(listAgain)
			continue
		}
		if tries.failed(clock().mono) {
			w.warn(hostPort(o.Target), RoleServer, fmt.Sprintf("the servers of the service do not tell about themselves: %v", err))
		}
		timer.Reset(max(tooSoon, tries.next-clock().mono))
	}
}

// list requests the list of servers; it ends when the watch stops.
func (w *Watch) list(ctx context.Context, o Options) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	var ending sync.WaitGroup
	ending.Go(func() {
		select {
		case <-w.stop:
			cancel()
		case <-ctx.Done():
		}
	})
	defer ending.Wait()
	defer cancel()
	return o.Reporter.Servers(ctx)
}

// enlist starts the probes of servers that are new, and reports whether there are too many.
func (w *Watch) enlist(ctx context.Context, list []string, o Options, clock func() moment) bool {
	for i, server := range list {
		isNew, full := o.servers.isNew(server, true)
		if full {
			return true
		}
		if !isNew {
			continue
		}
		a := &asked{reporter: o.Reporter, server: server, kind: DataServer, servers: o.servers, clock: clock}
		if i == 0 && len(list) > 1 {
			a.kind = Redirector
		}
		if addr, ok := localTarget(ctx, server); ok {
			a.place = o.servers.place(addr)
		}
		r := &runner{watch: w, host: server, role: RoleServer, timeout: o.Timeout, probe: a}
		w.runs.Go(func() { r.run(ctx) })
	}
	return false
}

// warn writes a sample that has only a text.
func (w *Watch) warn(host string, role Role, text string) {
	w.emit(&Sample{Time: time.Now().Round(0), Host: host, Role: role, Error: text})
}

// hostPort returns host:port of a URL or of host:port.
func hostPort(target string) string {
	host, port, err := splitTarget(target)
	if err != nil || host == "" {
		return target
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}
