package bench

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"weir/internal/burn"
	"weir/internal/unit"
	"weir/lab"
	"weir/loadtest/cluster"
	"weir/loadtest/engine"
	"weir/loadtest/measure"
	"weir/loadtest/results"
	"weir/loadtest/scenario"
	"weir/loadtest/workload"
	"weir/storage/all"
)

// The metrics of runs on many machines.
var (
	coresUsed  = metric{"cores", "cores", 1, ""}
	memoryUsed = metric{"memory", "peak-rss-MB", 1e-6, " MB"}
	comingIn   = metric{"CPU until all are connected", "coming-in-cpu-s", 1, " s"}
	reach      = metric{"step change", "step-change-ms", 1e3, " ms"}
	gap        = metric{"between two steps", "gap-ms", 1e3, " ms"}
	telling    = metric{"CPU of a worker's reports", "report-cpu-ms/s", 1e3, " ms"}
	received   = metric{"received", "received-MB/s", 1e-6, " MB/s"}
	written    = metric{"written", "written-MB/s", 1e-6, " MB/s"}
	openFiles  = metric{"open files", "open-files", 1, ""}
)

// A crowd is a number of simulated workers.
type crowd struct {
	name     string
	workers  int
	servers  int  // data servers in the reports of each worker
	machines bool // each is on a machine of its own
	honest   bool // reports cost the same CPU time as reports of a real worker
}

// crowds measures a controller with different numbers of workers.
func crowds(s scale) comparison {
	n := s.crew
	all := []crowd{
		{workers: n / 10, machines: true}, {workers: n}, {workers: n, machines: true}, {workers: n, servers: 6, machines: true},
		{workers: 3 * n, machines: true},
	}
	for i := range all {
		all[i].name = fmt.Sprintf("%d workers%s", all[i].workers, map[bool]string{true: ", hosts monitored", false: ""}[all[i].machines])
		if all[i].servers > 0 {
			all[i].name += fmt.Sprintf(", %d servers", all[i].servers)
		}
	}
	var bars []bar
	for _, c := range all[1:4] {
		bars = append(bars, bar{metric: coresUsed, a: c.name, limit: 1, why: "The cost follows the reports: each data server of each worker is " +
			"one interval per second, whose histograms are decoded and added."},
			bar{metric: memoryUsed, a: c.name, limit: 500e6}, bar{metric: reach, a: c.name, limit: 1})
	}
	return comparison{
		name:  "controller",
		title: "Controller of many workers",
		about: fmt.Sprintf("A controller on one core (GOMAXPROCS=1). Simulated workers, %d in a process, report over HTTPS every second: an "+
			"interval of a hundred operations, or one per data server, and with \"hosts monitored\" a host of 16 cores. Two steps of %v. "+
			"Memory is the controller's peak. \"step change\" is the time until the last worker has the second step; \"received\" is read "+
			"from sockets, \"written\" the growth of intervals.jsonl, hosts.jsonl and events.jsonl.", perCrowd, s.told),
		metrics: []metric{coresUsed, memoryUsed, comingIn, reach, gap, received, written, openFiles},
		bars:    bars,
		setup: func(r *rig) []side {
			var sides []side
			for _, c := range all {
				sides = append(sides, r.crowdSide(c))
			}
			return sides
		},
	}
}

// perCrowd is the largest number of simulated workers in a process.
const perCrowd = 250

func (r *rig) crowdSide(c crowd) side {
	return side{c.name, func() (figures, error) {
		dir, err := os.MkdirTemp(r.dir, "crowd-")
		if err != nil {
			return nil, err
		}
		f, err := r.follow(dir, c)
		return f, errors.Join(err, os.RemoveAll(dir))
	}}
}

// ended is a process that has ended: its usage and its error.
type ended struct {
	usage
	err error
}

// start runs a process in the background.
func start(ctx context.Context, argv ...string) <-chan ended {
	c := make(chan ended, 1)
	go func() {
		u, err := runChild(ctx, nil, nil, argv...)
		c <- ended{u, err}
	}()
	return c
}

// follow runs a controller and a crowd of simulated workers that report to it.
func (r *rig) follow(dir string, c crowd) (figures, error) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	controller := start(ctx, "env", "GOMAXPROCS=1", self(), controllerWord, "-workers", strconv.Itoa(c.workers), "-hold", r.told.String(), dir)
	if err := until(ctx, passFile(dir), controller); err != nil {
		return nil, err
	}
	var all []<-chan ended
	for left := c.workers; left > 0; left -= perCrowd {
		all = append(all, start(ctx, self(), crowdWord, "-workers", strconv.Itoa(min(left, perCrowd)), "-servers", strconv.Itoa(c.servers),
			fmt.Sprintf("-machines=%v", c.machines), fmt.Sprintf("-once=%v", !c.honest), passFile(dir)))
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
		gap: begins[1].Sub(begins[0]).Seconds() - r.told.Seconds(), telling: cpu.Seconds() / float64(c.workers) / steps,
		written:  float64(size) / steps,
		received: float64(k.Read) / steps, openFiles: float64(k.Files),
	}, err
}

// grown returns the total size of the files of a run that have lines, in bytes.
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

// worker compares an engine that reports to a controller with an engine that does not.
func worker(s scale) comparison {
	return comparison{
		name:  "worker",
		title: "Cost of a worker's reports",
		about: fmt.Sprintf("64 clients in one process read 4 KiB from nginx for %v: alone, and as a worker that reports over HTTPS. Their "+
			"difference is below the variation between rounds, so \"simulated\" workers, %d in a process, only report: an interval of a "+
			"hundred operations per second.", s.loaded, min(perCrowd, s.crew/10)),
		metrics: []metric{requestCPU, rate, coresUsed},
		bars:    []bar{{metric: coresUsed, a: "simulated", b: "worker", limit: .01}},
		setup: func(r *rig) []side {
			srv := r.smallServer(lab.NginxConfig{}, loadedSize)
			plan := loadedPlan(srv.url, 64, s.loaded)
			c := crowd{workers: min(perCrowd, s.crew/10), honest: true}
			return []side{r.aloneSide(plan), r.workerSide(plan), {"simulated", func() (figures, error) {
				f, err := r.crowdSide(c).run()
				return figures{coresUsed: f[telling]}, err
			}}}
		},
	}
}

// Words that make this program run as a part of a run of many workers instead of the comparison.
const (
	controllerWord = "controller"
	crowdWord      = "crowd"
)

// passFile returns the path of the file to which the controller of a case writes the pass of its
// workers.
func passFile(dir string) string { return filepath.Join(dir, "pass") }

// A controlled has the measurements that a controller prints at its end.
type controlled struct {
	Coming   float64     // s of CPU until the first step was returned
	CPU      float64     // s, from then on
	Seconds  float64     // from then on
	Read     int64       // bytes from then on, nearly all of them from workers
	Files    int         // open when the second step was returned
	Answered []time.Time // the times at which the pilot had returned each step
}

// runController controls a run of workers that join with the pass that it writes to a folder, and
// stores the run there as weir run does.
func runController(args []string, out io.Writer) error {
	flags := flag.NewFlagSet(controllerWord, flag.ContinueOnError)
	workers := flags.Int("workers", 1, "that come in")
	hold := flags.Duration("hold", time.Second, "of each of two steps")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir := flags.Arg(0)
	plan := &scenario.Plan{Model: "closed", Driver: "simulated", Target: "simulated://pretended",
		Work: workload.Work{Kind: "read", Session: "kept", Pick: "random"}, GracefulStop: unit.Duration(time.Second)}
	for i := range 2 {
		plan.Steps = append(plan.Steps, scenario.Step{Number: i + 1, Clients: (i + 1) * 100 * *workers, Duration: unit.Duration(*hold)})
	}
	w, err := results.Create(filepath.Join(dir, "run"), plan, results.About{})
	if err != nil {
		return err
	}
	door, err := cluster.NewServer(cluster.ServerOptions{Address: "127.0.0.1", State: filepath.Join(dir, "state")})
	if err != nil {
		return errors.Join(err, w.Close())
	}
	if err := door.Pass().Write(passFile(dir)); err != nil {
		return errors.Join(err, door.Close(), w.Close())
	}
	p := &watchedPilot{pilot: engine.FixedSteps(plan)}
	conf := engine.Config{Plan: plan, Steps: p, Sink: w}
	err = door.Control(context.Background(), conf, cluster.WorkerOptions{Want: *workers, Wait: time.Minute, Samples: w})
	if err := errors.Join(err, door.Close(), w.Close()); err != nil {
		return err
	}
	p.Seconds, p.CPU = time.Since(p.Answered[0]).Seconds(), burn.Process().Seconds()-p.Coming
	p.Read = readByThis() - p.Read
	return json.NewEncoder(out).Encode(p.controlled)
}

// A watchedPilot records the times at which it returns steps.
type watchedPilot struct {
	pilot engine.StepSource
	controlled
}

// Next implements engine.StepSource.
func (p *watchedPilot) Next(ctx context.Context) (scenario.Step, error) {
	s, err := p.pilot.Next(ctx)
	if err == nil {
		if len(p.Answered) == 0 {
			p.Coming, p.Read = burn.Process().Seconds(), readByThis()
		}
		if files, err := os.ReadDir("/proc/self/fd"); err == nil {
			p.Files = len(files)
		}
		p.Answered = append(p.Answered, time.Now())
	}
	return s, err
}

// readByThis returns the number of bytes that this process has read from files and sockets, or 0 if
// the system does not report it.
func readByThis() (n int64) {
	text, _ := os.ReadFile("/proc/self/io")
	_, _ = fmt.Sscanf(string(text), "rchar: %d", &n)
	return n
}

// An arrival records the delivery of a step to the workers of a crowd.
type arrival struct {
	Got         int // workers that got it
	First, Last time.Time
	Begin       time.Time
}

// runCrowd runs many simulated workers, which report but make no load.
func runCrowd(args []string, out io.Writer) error {
	flags := flag.NewFlagSet(crowdWord, flag.ContinueOnError)
	p := cluster.FakeWorkers{}
	flags.IntVar(&p.Workers, "workers", 1, "in this process")
	flags.IntVar(&p.Servers, "servers", 0, "data servers that each tells of")
	flags.BoolVar(&p.Once, "once", false, "what they tell is packed once")
	flags.BoolVar(&p.Machines, "machines", false, "each is on a machine of its own")
	if err := flags.Parse(args); err != nil {
		return err
	}
	pass, err := cluster.ReadPass(flags.Arg(0))
	if err != nil {
		return err
	}
	var mu sync.Mutex
	got := map[int]*arrival{}
	p.Got = func(s scenario.Step, _ time.Time) {
		now := time.Now() // all processes are on this machine and have the same clock
		mu.Lock()
		defer mu.Unlock()
		a := got[s.Number]
		if a == nil {
			a = &arrival{First: now, Begin: s.Begin}
			got[s.Number] = a
		}
		a.Got++
		a.Last = now
	}
	if err := p.Run(context.Background(), pass); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(got)
}

// loadedWord makes this program run one engine that makes load, with or without a controller.
const loadedWord = "loaded"

// runLoaded executes the plan in a file and discards the measurements. With a pass it is a worker
// instead, which receives its plan from a controller and reports the measurements to it. Everything
// else is the same.
func runLoaded(args []string, out io.Writer) error {
	flags := flag.NewFlagSet(loadedWord, flag.ContinueOnError)
	pass := flags.String("pass", "", "come in with this file")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx := context.Background()
	if *pass != "" {
		p, err := cluster.ReadPass(*pass)
		if err != nil {
			return err
		}
		return cluster.Join(ctx, p, cluster.JoinOptions{}, all.Drivers())
	}
	text, err := os.ReadFile(flags.Arg(0))
	if err != nil {
		return err
	}
	plan := &scenario.Plan{}
	if err := json.Unmarshal(text, plan); err != nil {
		return err
	}
	service, err := cluster.OpenService(ctx, plan, all.Drivers(), nil)
	if err != nil {
		return err
	}
	seen := &counted{}
	c := loadedConfig(plan)
	c.Service, c.Sink = service, seen
	if err := errors.Join(engine.Run(ctx, c), service.Close()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%d operations\n", seen.done)
	return err
}

// counted counts operations and failures, and keeps warnings.
type counted struct {
	done, failed int64
	warnings     []string
}

// Interval implements measure.Sink.
func (c *counted) Interval(v *measure.Interval) error {
	c.done += v.Done
	c.failed += v.Errors()
	return nil
}

// Event implements measure.Sink.
func (c *counted) Event(e measure.Event) error {
	if e.Kind == measure.EventWarning {
		c.warnings = append(c.warnings, e.Text)
	}
	return nil
}

// loadedPlan returns a plan with one step of clients that read one file repeatedly.
func loadedPlan(target string, clients int, hold time.Duration) *scenario.Plan {
	return &scenario.Plan{
		Model: "closed", Driver: "webdav", Target: target, Seed: 1, GracefulStop: unit.Duration(time.Second),
		Work:  workload.Work{Kind: "read", Session: "kept", Pick: "random"},
		Steps: []scenario.Step{{Number: 1, Clients: clients, Duration: unit.Duration(hold)}},
	}
}

func loadedConfig(p *scenario.Plan) engine.Config {
	return engine.Config{Plan: p, Files: []workload.File{{Path: theFile, Size: loadedSize}}, Folder: "weir-bench"}
}

const loadedSize = 4 << 10

// aloneSide runs an engine without a controller.
func (r *rig) aloneSide(plan *scenario.Plan) side {
	return side{"alone", func() (figures, error) {
		path := filepath.Join(r.dir, "plan.json")
		text, err := json.Marshal(plan)
		if err == nil {
			err = os.WriteFile(path, text, 0o600)
		}
		if err != nil {
			return nil, err
		}
		u, err := r.child(self(), loadedWord, path)
		if err != nil {
			return nil, err
		}
		done, err := number(`([0-9]+) operations`, u.out)
		if err != nil {
			return nil, err
		}
		return loadedFigures(u, done, plan), nil
	}}
}

func loadedFigures(u usage, done float64, plan *scenario.Plan) figures {
	seconds := time.Duration(plan.Steps[0].Duration).Seconds()
	return figures{rate: done / seconds, requestCPU: u.cpu.Seconds() / done, coresUsed: u.cpu.Seconds() / seconds}
}

// workerSide runs the same engine, which reports to a controller in this process.
func (r *rig) workerSide(plan *scenario.Plan) side {
	return side{"worker", func() (f figures, err error) {
		dir, err := os.MkdirTemp(r.dir, "door-")
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		door, err := cluster.NewServer(cluster.ServerOptions{Address: "127.0.0.1", State: filepath.Join(dir, "state")})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, door.Close()) }()
		if err := door.Pass().Write(passFile(dir)); err != nil {
			return nil, err
		}
		seen := &counted{}
		c := loadedConfig(plan)
		c.Sink = seen
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- door.Control(ctx, c, cluster.WorkerOptions{Want: 1, Wait: time.Minute}) }()
		u, err := runChild(ctx, nil, nil, self(), loadedWord, "-pass", passFile(dir))
		if err != nil {
			cancel()
			return nil, errors.Join(err, <-ended)
		}
		if err := <-ended; err != nil {
			return nil, err
		}
		if seen.failed > 0 || len(seen.warnings) > 0 {
			return nil, fmt.Errorf("%d operations failed; %v", seen.failed, seen.warnings)
		}
		return loadedFigures(u, float64(seen.done), plan), nil
	}}
}
