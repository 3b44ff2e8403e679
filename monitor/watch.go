package monitor

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// A Sink takes samples. Its method is called by one goroutine at a time and may keep the sample. After an error it is
// not called again.
type Sink interface {
	Sample(*Sample) error
}

// Options configure how hosts are watched. The zero value is fine.
type Options struct {
	// Target is the service's URL or host:port. If that is on this machine, the processes that listen there are
	// watched as the server.
	Target string
	// Others are the service's other endpoints, as Target: the processes that listen there are watched with the server's.
	Others []string
	// Children adds the programs that this process started to its own figures, as long as no other
	// group has them.
	Children bool
	// Apart are processes that emulate links: they belong neither to the clients nor to the
	// service, although this process started them. Their children are not included.
	Apart []int
	// With returns further processes of the clients on this machine, which this process has not
	// started. It is called at each look. It may be nil.
	With func() []int
	// Look is called when a look at this machine begins, at the time that becomes the Time of its sample: counters of the caller
	// that are read in it cover the same span as the sample. It may be nil.
	Look func()
	// Scratch returns the block device of this machine with the jobs' copies of files, "" if it is
	// unknown. It is called at each look. It may be nil.
	Scratch func() string
	// Timeout bounds one look at a host; 0 means 3 s. A look that takes longer than a second leads
	// to fewer and longer samples.
	Timeout time.Duration

	// Reporter, if it is not nil, is called every second for the statistics of each server of the
	// service; each server has samples of its own. It must not be closed before Stop has returned.
	Reporter Reporter

	// Balancer, if it is not zero, is polled every second for the servers behind it; its samples
	// have the host "balancer".
	Balancer BalancerConfig

	backends  []Host // whose processes are on this machine
	servers   *servers
	proc, sys string // roots of the file systems, for tests; "" means the real roots
}

// A Watch is the watching of some hosts. Its methods are for any goroutine.
type Watch struct {
	step   atomic.Int64
	stop   chan struct{}
	once   sync.Once
	cancel context.CancelFunc
	runs   sync.WaitGroup
	serves func(server string) // see Serves

	mu   sync.Mutex // one sample at a time
	sink Sink
	err  error
}

// Start watches hosts: a host with a Prometheus page through the page, a host without a page
// through this machine's /proc, and XRootD servers that report to a port of this machine as hosts
// of their own, under the names in their reports. This machine is always among them, and this
// process is always watched, under the name "weir" in the role "client".
//
// At every whole second of the wall clock each host gives a sample of the time since its last one.
// Hosts that cannot be reached or do not respond in time give samples with an Error instead: three
// in a row, then one a minute. Start fails only if the settings are wrong. When ctx ends, watching
// ends without a final sample; [Watch.Stop] must be called nevertheless.
func Start(ctx context.Context, hosts []Host, o Options, sink Sink) (*Watch, error) {
	if o.Timeout <= 0 {
		o.Timeout = 3 * time.Second
	}
	clock := newClock()
	targets := localTargets(ctx, append([]string{o.Target}, o.Others...))
	w := &Watch{stop: make(chan struct{}), sink: sink}
	ok := false
	o.servers = &servers{}
	runners, err := w.balanced(hosts, o, clock)
	defer func() { closeUnless(ok, runners) }()
	if err != nil {
		return nil, err
	}
	ports, hosts, err := w.listen(ctx, hosts, o.servers, clock)
	if err != nil {
		return nil, err
	}
	hosts, o.backends = apart(hosts)
	for _, h := range withSelf(hosts, len(targets) > 0) {
		r := &runner{watch: w, host: h.Name, role: h.Role, timeout: o.Timeout}
		if h.NodeExporter == "" {
			r.probe = newLocal(h, o, targets, clock)
		} else {
			p, err := newPage(h, clock)
			if err != nil {
				closeAll(ports)
				return nil, err
			}
			r.probe = p
		}
		runners = append(runners, r)
	}
	ok = true
	ctx, w.cancel = context.WithCancel(ctx)
	w.serves = w.finder(ctx, o.servers)
	for _, r := range runners {
		w.runs.Go(func() { r.run(ctx) })
	}
	for _, r := range ports {
		w.runs.Go(r.run)
	}
	w.runs.Go(func() {
		defer closeAll(ports)
		if o.Reporter != nil {
			w.ask(ctx, o, clock)
			return
		}
		select {
		case <-ctx.Done():
		case <-w.stop:
		}
	})
	return w, nil
}

// finder returns a function that finds a server on this machine that clients name.
func (w *Watch) finder(ctx context.Context, s *servers) func(server string) {
	return func(server string) {
		if isNew, _ := s.isNew(server, false); !isNew {
			return
		}
		w.runs.Go(func() { // a name may take seconds
			if addr, ok := localTarget(ctx, server); ok {
				s.place(addr)
			}
		})
	}
}

// Serves reports to the watch that clients were redirected to a server, host:port: if it is on this
// machine, its processes are watched from then on. It must not be called after Stop.
func (w *Watch) Serves(server string) { w.serves(server) }

// balanced returns the runners of the balancer and of the backends' logs.
func (w *Watch) balanced(hosts []Host, o Options, clock func() moment) (all []*runner, err error) {
	add := func(host string, role Role, p probe) {
		all = append(all, &runner{watch: w, host: host, role: role, timeout: o.Timeout, probe: p})
	}
	for _, h := range hosts {
		if h.TransferLog == "" {
			continue
		}
		t, err := newTransferLog(h.TransferLog, clock)
		if err != nil {
			return all, fmt.Errorf("host %s: %w", h.Name, err)
		}
		add(h.Name, h.Role, t)
	}
	if o.Balancer == (BalancerConfig{}) {
		return all, nil
	}
	b, err := newBalancer(o.Balancer, clock)
	if err != nil {
		return all, err
	}
	add(balancerName, RoleOther, b)
	return all, nil
}

// apart removes the backends without a page from hosts, which would otherwise represent this
// machine, and returns the backends whose processes are on it.
func apart(hosts []Host) (others, here []Host) {
	for _, h := range hosts {
		switch {
		case !h.Backend() || h.NodeExporter != "":
			others = append(others, h)
		case len(h.Processes)+len(h.Pids)+len(h.Groups) > 0:
			here = append(here, h)
		}
	}
	return others, here
}

// listen opens the ports for XRootD's reports that hosts name, and returns the hosts that are watched in other ways.
func (w *Watch) listen(ctx context.Context, hosts []Host, s *servers, clock func() moment) (ports []*reports,
	others []Host, err error) {
	for _, h := range hosts {
		if h.XRootDReport == "" {
			others = append(others, h)
			continue
		}
		r, err := newReports(ctx, w, h, s, clock)
		if err != nil {
			closeAll(ports)
			return nil, nil, err
		}
		ports = append(ports, r)
		if h.NodeExporter != "" {
			others = append(others, h)
		}
	}
	return ports, others, nil
}

// closeUnless closes the probes of all runners if ok is false.
func closeUnless(ok bool, all []*runner) {
	if ok {
		return
	}
	for _, r := range all {
		r.probe.close()
	}
}

func closeAll(ports []*reports) {
	for _, r := range ports {
		_ = r.conn.Close()
	}
}

// withSelf sets defaults of the hosts' settings, adds this machine if it is missing, and joins its
// entries if it is there twice.
func withSelf(hosts []Host, serves bool) []Host {
	name, err := os.Hostname()
	if err != nil {
		name = "localhost"
	}
	self := -1
	var out []Host
	for _, h := range hosts {
		if h.NodeExporter != "" {
			if u, err := url.Parse(h.NodeExporter); err == nil && h.Name == "" {
				h.Name = u.Hostname()
			}
			h.Role = cmp.Or(h.Role, RoleOther)
			out = append(out, h)
			continue
		}
		if self < 0 {
			self = len(out)
			out = append(out, h)
			continue
		}
		join(&out[self], h)
	}
	if self < 0 {
		self, out = 0, append([]Host{{}}, out...)
	}
	if out[self].Name == "" {
		out[self].Name = name
	}
	if out[self].Role == "" {
		out[self].Role = RoleClient
		if serves {
			out[self].Role = RoleBoth
		}
	}
	return out
}

func join(to *Host, h Host) {
	to.Name = cmp.Or(to.Name, h.Name)
	if h.Role != "" && to.Role != "" && h.Role != to.Role {
		to.Role = RoleBoth
	} else if to.Role == "" {
		to.Role = h.Role
	}
	to.Processes = append(to.Processes[:len(to.Processes):len(to.Processes)], h.Processes...)
	to.Pids = append(to.Pids[:len(to.Pids):len(to.Pids)], h.Pids...)
	to.Groups = append(to.Groups[:len(to.Groups):len(to.Groups)], h.Groups...)
}

// SetStep sets the step of the run for the following samples. A sample belongs to the step at its
// end.
func (w *Watch) SetStep(n int) { w.step.Store(int64(n)) }

// Stop takes a final sample of each host, ends the watching and waits until it has ended, at most three times the
// time-out of a look. It returns the first error of the sink. More calls return the same.
func (w *Watch) Stop() error {
	w.once.Do(func() { close(w.stop) })
	w.runs.Wait()
	w.cancel()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func (w *Watch) emit(s *Sample) {
	s.Step = int(w.step.Load())
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return
	}
	if err := w.sink.Sample(s); err != nil {
		w.err = fmt.Errorf("keep a sample of host %s: %w", s.Host, err)
	}
}
