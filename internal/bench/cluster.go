package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"weir/lab"
	"weir/results"
)

// What is measured of runs on many machines.
const (
	coresUsed  metric = "cores"                     // s of CPU a second
	memoryUsed metric = "memory"                    // B, the most that was resident
	comingIn   metric = "CPU for all to come in"    // s
	reach      metric = "step change"               // s
	gap        metric = "between two steps"         // s
	telling    metric = "CPU of a worker's telling" // s a second
	received   metric = "received"                  // B/s
	written    metric = "written"                   // B/s
	openFiles  metric = "open files"
)

// A crowd is workers that are pretended.
type crowd struct {
	name     string
	workers  int
	servers  int  // data servers that each tells of
	machines bool // each is on a machine of its own
	honest   bool // what they tell costs them what it costs a worker
}

// crowds is how a controller does with more and more workers.
func crowds(s scale) benchmark {
	n := s.crew
	all := []crowd{
		{workers: n / 10, machines: true}, {workers: n}, {workers: n, machines: true}, {workers: n, servers: 6, machines: true}, {workers: 3 * n, machines: true},
	}
	for i := range all {
		all[i].name = fmt.Sprintf("%d workers%s", all[i].workers, map[bool]string{true: ", machines watched", false: ""}[all[i].machines])
		if all[i].servers > 0 {
			all[i].name += fmt.Sprintf(", %d servers", all[i].servers)
		}
	}
	var bars []bar
	for _, c := range all[1:4] {
		bars = append(bars, bar{metric: coresUsed, a: c.name, limit: 1, why: "What a worker tells of is what costs: each data server of each worker is an interval a second, whose histograms are unpacked and added."},
			bar{metric: memoryUsed, a: c.name, limit: 500e6}, bar{metric: reach, a: c.name, limit: 1})
	}
	return benchmark{
		name:  "controller",
		title: "Controller of many workers",
		about: fmt.Sprintf("A controller, in a process of its own on one core (GOMAXPROCS=1), of a run whose workers come in over HTTPS and tell of every second: an interval of a hundred operations, or one for each of several data servers; "+
			"with \"machines watched\" each also tells of a machine of its own, 16 cores, as workers of a batch system do. Workers are pretended, %d in a process, whose intervals are packed once and for all; what they say, and how, is a worker's. Two steps of %v. "+
			"Memory is the most that the controller had. Step change: from when the pilot has named the second step until the last worker has got it; between two steps: from the end of the first to the begin of the second. Received is what it read from its sockets, written what intervals.jsonl, hosts.jsonl and events.jsonl grow by, both over the time of the steps.", perCrowd, s.told),
		metrics: []metric{coresUsed, memoryUsed, comingIn, reach, gap, received, written, openFiles},
		bars:    bars,
		setup: func(_ context.Context, r *rig) ([]side, error) {
			self, err := os.Executable()
			if err != nil {
				return nil, err
			}
			var sides []side
			for _, c := range all {
				sides = append(sides, r.crowdSide(self, c))
			}
			return sides, nil
		},
	}
}

// perCrowd is how many pretended workers a process has at most.
const perCrowd = 250

func (r *rig) crowdSide(self string, c crowd) side {
	return side{c.name, func(ctx context.Context) (figures, error) {
		dir, err := os.MkdirTemp(r.dir, "crowd-")
		if err != nil {
			return nil, err
		}
		f, err := r.follow(ctx, self, dir, c)
		return f, errors.Join(err, os.RemoveAll(dir))
	}}
}

// ended is a process that has.
type ended struct {
	usage
	err error
}

// start runs a process beside.
func start(ctx context.Context, argv ...string) <-chan ended {
	c := make(chan ended, 1)
	go func() {
		u, err := runChild(ctx, nil, nil, argv...)
		c <- ended{u, err}
	}()
	return c
}

// follow has a controller follow a crowd.
func (r *rig) follow(ctx context.Context, self, dir string, c crowd) (figures, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	controller := start(ctx, "env", "GOMAXPROCS=1", self, controllerWord, "-workers", strconv.Itoa(c.workers), "-hold", r.told.String(), dir)
	if err := until(ctx, passFile(dir), controller); err != nil {
		return nil, err
	}
	var all []<-chan ended
	for left := c.workers; left > 0; left -= perCrowd {
		all = append(all, start(ctx, self, crowdWord, "-workers", strconv.Itoa(min(left, perCrowd)), "-servers", strconv.Itoa(c.servers), fmt.Sprintf("-machines=%v", c.machines), fmt.Sprintf("-once=%v", !c.honest), passFile(dir)))
	}
	var cpu time.Duration
	var last time.Time
	var begins [2]time.Time
	got := 0
	var errs []error
	for _, e := range all {
		u := <-e
		if u.err != nil {
			cancel()
			errs = append(errs, u.err)
			continue
		}
		var steps map[int]arrival
		if err := json.Unmarshal(u.out, &steps); err != nil {
			errs = append(errs, err)
		}
		cpu += u.cpu
		got += steps[2].Got
		begins[0], begins[1] = steps[1].Begin, steps[2].Begin
		if l := steps[2].Last; l.After(last) {
			last = l
		}
	}
	u := <-controller
	if err := errors.Join(append(errs, u.err)...); err != nil {
		return nil, err
	}
	var k controlled
	if err := json.Unmarshal(u.out, &k); err != nil {
		return nil, err
	}
	if got != c.workers {
		return nil, fmt.Errorf("%d of %d workers got the second step", got, c.workers)
	}
	size, err := grown(filepath.Join(dir, "run"))
	steps := 2 * r.told.Seconds()
	return figures{
		coresUsed: k.CPU / k.Seconds, memoryUsed: float64(u.peak), comingIn: k.Coming, reach: last.Sub(k.Answered[1]).Seconds(),
		gap: begins[1].Sub(begins[0]).Seconds() - r.told.Seconds(), telling: cpu.Seconds() / float64(c.workers) / steps, written: float64(size) / steps,
		received: float64(k.Read) / steps, openFiles: float64(k.Files),
	}, err
}

// grown is how large the lines of a run have become, in bytes.
func grown(run string) (int64, error) {
	var all int64
	for _, name := range []string{results.IntervalsFile, results.HostsFile, results.EventsFile} {
		s, err := os.Stat(filepath.Join(run, name))
		if err != nil {
			return 0, err
		}
		all += s.Size()
	}
	return all, nil
}

// until waits for a file that a process makes.
func until(ctx context.Context, path string, by <-chan ended) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		select {
		case e := <-by:
			return errors.Join(fmt.Errorf("%s was not made", path), e.err)
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// worker compares an engine that tells a controller with one that does not.
func worker(s scale) benchmark {
	return benchmark{
		name:  "worker",
		title: "A worker's telling",
		about: fmt.Sprintf("64 clients read 4 KiB from nginx (one worker) again and again for %v, in a process of its own: an engine that throws away what it sees (alone), and the same one as a worker that tells a controller over HTTPS. "+
			"Their CPU per request differs by less than it differs from round to round; so what telling costs is taken from workers that only tell (\"pretended\", %d in a process; an interval of a hundred operations a second each, what they take to come in included).", s.loaded, min(perCrowd, s.crew/10)),
		metrics: []metric{requestCPU, rate, coresUsed},
		bars:    []bar{{metric: coresUsed, a: "pretended", b: "worker", limit: .01}},
		setup: func(ctx context.Context, r *rig) ([]side, error) {
			self, err := os.Executable()
			if err != nil {
				return nil, err
			}
			srv, err := r.smallServer(ctx, lab.NginxConfig{}, loadedSize)
			if err != nil {
				return nil, err
			}
			plan := loadedPlan(srv.url, 64, s.loaded)
			c := crowd{workers: min(perCrowd, s.crew/10), honest: true}
			return []side{r.aloneSide(self, plan), r.workerSide(self, plan), {"pretended", func(ctx context.Context) (figures, error) {
				f, err := r.crowdSide(self, c).run(ctx)
				return figures{coresUsed: f[telling]}, err
			}}}, nil
		},
	}
}
