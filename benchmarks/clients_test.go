package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"weir/lab"
)

// smallFile is the size of a small file.
const smallFile = 4 << 10

// oneThread is the name of weir if it runs on one core at a time, as wrk does.
const oneThread = "weir, one thread"

func small(connections int, secure bool) comparison {
	name, title := "small", "Small requests"
	bars := []bar{
		{metric: rate, a: "weir", b: "wrk", least: true, limit: .8},
		{metric: requestCPU, a: "weir", b: "wrk", limit: 1.25},
		{metric: rate, a: oneThread, b: "wrk", least: true, limit: 1},
		{metric: requestCPU, a: oneThread, b: "wrk", limit: 1,
			why: "Go's scheduler wakes a goroutine for each response. The bare loop, in Go and without metering, needs more than weir."},
	}
	if secure {
		name, title = "tls-small", "Small requests with TLS 1.3"
	} else {
		bars = append(bars, bar{metric: requestCPU, a: "weir", b: "bare", limit: 1})
	}
	return comparison{
		name:  fmt.Sprintf("%s-%d", name, connections),
		title: fmt.Sprintf("%s, %d connections", title, connections),
		about: "GET of 4 KiB on persistent connections to nginx. weir meters each request; wrk runs one thread. \"one thread\" is weir " +
			"with GOMAXPROCS=1: its second thread takes time from nginx, which has one core of the two.",
		metrics: []metric{rate, requestCPU},
		bars:    bars,
		setup: func(r *rig) []side {
			if !secure {
				srv := r.smallServer(lab.NginxConfig{}, smallFile)
				return append(r.smallSides(srv, "", connections), r.bareSide(srv, "whole", connections, "-for", r.hold.String()))
			}
			srv, ca := r.secureNginx("TLSv1.3", "")
			r.file(filepath.Join(srv.data, theFile), smallFile)
			return r.smallSides(srv, "auth: {ca_file: "+ca+"}\n", connections)
		},
	}
}

// smallSides returns weir and wrk, which read a small file over a number of connections.
func (r *rig) smallSides(srv server, auth string, connections int) []side {
	l := r.reads(srv, theFile, connections)
	l.settle, l.auth = 500*time.Millisecond, auth
	all := r.weirSide(l, 0)
	l.env = []string{"GOMAXPROCS=1"}
	one := r.weirSide(l, 0)
	one.name = oneThread
	return []side{all, one, r.wrkSide(srv.url+"/"+theFile, connections)}
}

// smallServer starts an nginx with theFile.
func (r *rig) smallServer(c lab.NginxConfig, size int64) server {
	srv := r.nginx(c)
	r.file(filepath.Join(srv.data, theFile), size)
	return srv
}

// crowded returns the configuration of an nginx that holds many connections.
func (s scale) crowded() lab.NginxConfig {
	return lab.NginxConfig{Workers: workers, Connections: s.held}
}

func sleeping(s scale) comparison {
	return comparison{
		name:  "clients-memory",
		title: "Memory of a client",
		about: fmt.Sprintf("%d clients in one process, each with a connection, think for %v between reads of 64 KiB. Memory is VmRSS "+
			"(median) minus that of a run with one client, per client.", s.clients, s.think),
		metrics: []metric{clients, resident, rate, failed},
		bars:    []bar{{metric: resident, a: "weir", limit: 4 << 10}, {metric: failed, a: "weir", limit: 0}},
		setup: func(r *rig) []side {
			srv := r.smallServer(r.crowded(), 64<<10)
			return []side{r.memorySide(srv)}
		},
	}
}

// memorySide measures the memory of a client that mostly sleeps.
func (r *rig) memorySide(srv server) side {
	return r.residentSide("weir", r.clients, func(n int) load { return r.asleep(srv, n) })
}

// asleep returns a load of clients in one process that mostly sleep.
func (r *rig) asleep(srv server, n int) load {
	l := r.reads(srv, theFile, n)
	l.think, l.ramp, l.settle, l.flags = r.think, r.think, r.think/5, []string{"--processes", "1"}
	return l
}

// residentSide measures the memory of each of n clients of a load.
func (r *rig) residentSide(name string, n int, of func(clients int) load) side {
	return side{name, func() (figures, error) {
		alone, _, err := r.residentWhile(of(1))
		if err != nil {
			return nil, err
		}
		all, o, err := r.residentWhile(of(n))
		if err != nil {
			return nil, err
		}
		sum := o.sum("")
		if sum.Sessions > int64(n+n/50) {
			return nil, fmt.Errorf("%d sessions of %d clients: the server closes connections", sum.Sessions, n)
		}
		return figures{
			clients: float64(sum.Sessions), resident: float64(all-alone) / float64(n),
			rate: *o.curve[0].Rate, failed: float64(o.failures()),
		}, nil
	}}
}

// A memory is the resident memory of a process at a time.
type memory struct {
	at    time.Time
	bytes int64
}

// every returns a watch function for runChild that calls look once per period.
func every(period time.Duration, look func(pid int)) func(ctx context.Context, pid int) {
	return func(ctx context.Context, pid int) {
		tick := time.NewTicker(period)
		defer tick.Stop()
		for {
			look(pid)
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}
}

// residentWhile runs a load and returns the median of the resident memory of its process while the
// load was held.
func (r *rig) residentWhile(l load) (int64, outcome, error) {
	var seen []memory
	o, err := r.run(l, every(50*time.Millisecond, func(pid int) {
		if n, err := lab.StatusBytes(pid, "VmRSS:"); err == nil && n > 0 {
			seen = append(seen, memory{time.Now(), n})
		}
	}))
	if err != nil {
		return 0, o, err
	}
	from, to := o.held()
	var held []int64
	for _, m := range seen {
		if m.at.After(from) && m.at.Before(to) {
			held = append(held, m.bytes)
		}
	}
	if len(held) == 0 {
		return 0, o, errors.New("no look at the process's memory fell into the measurement time")
	}
	slices.Sort(held)
	return held[len(held)/2], o, nil
}

// starting uses many short steps of the same clients, because an interval ends with each step: they
// give the time at which the last connection was made.
func starting(s scale) comparison {
	const steps, each = 60, 50 * time.Millisecond
	return comparison{
		name:    "clients-start",
		title:   fmt.Sprintf("Start of %d clients", s.crowd),
		about:   fmt.Sprintf("Time from the start of the load, without a ramp, until %d clients are connected, in steps of %v.", s.crowd, each),
		metrics: []metric{startTime, clients, failed},
		bars:    []bar{{metric: startTime, a: "weir", limit: 2}, {metric: failed, a: "weir", limit: 0}},
		setup: func(r *rig) []side {
			srv := r.smallServer(r.crowded(), 64<<10)
			l := r.reads(srv, theFile, r.crowd)
			l.think, l.settle, l.hold = s.think, 0, each
			l.clients = strings.TrimSuffix(strings.Repeat(l.clients+",", steps), ",")
			return []side{{"weir", func() (figures, error) {
				o, err := r.run(l, nil)
				if err != nil {
					return nil, err
				}
				took, sessions := o.connected(int64(r.crowd))
				if took == 0 {
					return nil, fmt.Errorf("only %d of %d clients connected in %v", sessions, r.crowd, steps*each)
				}
				return figures{startTime: took.Seconds(), clients: float64(sessions), failed: float64(o.failures())}, nil
			}}}
		},
	}
}

func waking(s scale) comparison {
	think := min(s.think, time.Second)
	return comparison{
		name:  "clients-wake-up",
		title: fmt.Sprintf("Wake-up of %d clients", s.crowd),
		about: fmt.Sprintf("%d clients read 64 KiB and think for %v: actual minus planned start of each read, on an otherwise idle machine.",
			s.crowd, think),
		metrics: []metric{lateMedian, lateHigh, rate},
		bars: []bar{{
			metric: lateHigh, a: "weir", limit: 0.0003,
			why: "The median is on time; the tail is the wait for a core that the server or another process uses.",
		}},
		setup: func(r *rig) []side {
			srv := r.smallServer(r.crowded(), 64<<10)
			l := r.reads(srv, theFile, r.crowd)
			l.think, l.ramp, l.settle, l.hold = think, think, think, 2*r.hold
			return []side{{"weir", func() (figures, error) {
				o, err := r.run(l, nil)
				if err != nil {
					return nil, err
				}
				sum := o.sum("measure")
				if sum.Late.Count() == 0 {
					return nil, errors.New("no client woke up")
				}
				return figures{lateMedian: sum.Late.Quantile(.5), lateHigh: sum.Late.Quantile(.99), rate: *o.curve[0].Rate}, nil
			}}}
		},
	}
}

// many tests that weir starts several processes by itself if one process may not have enough open
// files.
func many(s scale) comparison {
	return comparison{
		name:  "clients-many",
		title: "More clients than one process may hold",
		about: fmt.Sprintf("%d clients, each with a connection, think for %v between reads of 64 KiB, in as many processes as weir chooses. "+
			"Memory is their sum, per client.", s.many, s.think),
		metrics: []metric{clients, processes, resident, rate, failed},
		bars:    []bar{{metric: clients, a: "weir", least: true, limit: float64(s.many)}, {metric: failed, a: "weir", limit: 0}},
		setup: func(r *rig) []side {
			srv := r.smallServer(r.crowded(), 64<<10)
			l := r.reads(srv, theFile, r.many)
			l.think, l.ramp, l.settle = s.think, s.think, s.think/5
			return []side{{"weir", func() (figures, error) {
				var most struct {
					processes int
					bytes     int64
				}
				o, err := r.run(l, every(200*time.Millisecond, func(pid int) {
					n, bytes := 0, int64(0)
					for _, p := range append(childrenOf(pid), pid) {
						if b, err := lab.StatusBytes(p, "VmRSS:"); err == nil {
							n, bytes = n+1, bytes+b
						}
					}
					most.processes, most.bytes = max(most.processes, n), max(most.bytes, bytes)
				}))
				if err != nil {
					return nil, err
				}
				sum := o.sum("")
				return figures{
					clients: float64(sum.Sessions), processes: float64(most.processes),
					resident: float64(most.bytes) / float64(r.many), rate: *o.curve[0].Rate, failed: float64(o.failures()),
				}, nil
			}}}
		},
	}
}

// childrenOf returns the processes that pid has started and that still run.
func childrenOf(pid int) []int {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return nil
	}
	var all []int
	for _, path := range tasks {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended
		}
		for _, word := range strings.Fields(string(b)) {
			var child int
			if _, err := fmt.Sscan(word, &child); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}
