package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"weir/cluster"
	"weir/engine"
	"weir/internal/unit"
	"weir/results"
	"weir/scenario"
	"weir/workload"
)

// Words that make this program a part of a run of many workers instead of the
// comparison.
const (
	controllerWord = "controller"
	crowdWord      = "crowd"
)

// passFile is where the controller of a case leaves the pass of its workers.
func passFile(dir string) string { return filepath.Join(dir, "pass") }

// A controlled is what a controller says of itself at its end.
type controlled struct {
	Coming   float64     // s of CPU until the first step was named
	CPU      float64     // s, from then on
	Seconds  float64     // from then on
	Read     int64       // bytes from then on, nearly all of them from workers
	Files    int         // open when the second step was named
	Answered []time.Time // when the pilot had named each step
}

// runController controls a run of workers that come in with the pass that it
// leaves in a folder, and keeps the run there as weir run does.
func runController(args []string, out io.Writer) error {
	flags := flag.NewFlagSet(controllerWord, flag.ContinueOnError)
	workers := flags.Int("workers", 1, "that come in")
	hold := flags.Duration("hold", time.Second, "of each of two steps")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir := flags.Arg(0)
	plan := &scenario.Plan{Model: "closed", Driver: "simulated", Target: "simulated://pretended", Work: workload.Work{Kind: "read", Session: "kept", Pick: "random"}, Drain: unit.Duration(time.Second)}
	for i := range 2 {
		plan.Steps = append(plan.Steps, scenario.Step{Number: i + 1, Clients: (i + 1) * 100 * *workers, Hold: unit.Duration(*hold)})
	}
	w, err := results.Create(filepath.Join(dir, "run"), plan, results.About{})
	if err != nil {
		return err
	}
	door, err := cluster.OpenDoor(cluster.DoorOptions{Address: "127.0.0.1", State: filepath.Join(dir, "state")})
	if err != nil {
		return errors.Join(err, w.Close())
	}
	if err := door.Pass().Write(passFile(dir)); err != nil {
		return errors.Join(err, door.Close(), w.Close())
	}
	p := &watchedPilot{pilot: engine.Alone(plan)}
	conf := engine.Config{Plan: plan, Pilot: p, Sink: w}
	err = door.Control(context.Background(), conf, cluster.Crew{Want: *workers, Wait: time.Minute, Samples: w})
	if err := errors.Join(err, door.Close(), w.Close()); err != nil {
		return err
	}
	p.Seconds, p.CPU = time.Since(p.Answered[0]).Seconds(), cpuOfThis()-p.Coming
	p.Read = readByThis() - p.Read
	return json.NewEncoder(out).Encode(p.controlled)
}

// A watchedPilot notes when it names steps.
type watchedPilot struct {
	pilot engine.Pilot
	controlled
}

// Next implements engine.Pilot.
func (p *watchedPilot) Next(ctx context.Context) (scenario.Step, error) {
	s, err := p.pilot.Next(ctx)
	if err == nil {
		if len(p.Answered) == 0 {
			p.Coming, p.Read = cpuOfThis(), readByThis()
		}
		if files, err := os.ReadDir("/proc/self/fd"); err == nil {
			p.Files = len(files)
		}
		p.Answered = append(p.Answered, time.Now())
	}
	return s, err
}

// readByThis is how many bytes this process has read from files and sockets; 0
// where the system does not say.
func readByThis() (n int64) {
	text, _ := os.ReadFile("/proc/self/io")
	_, _ = fmt.Sscanf(string(text), "rchar: %d", &n)
	return n
}

// cpuOfThis is the CPU time of this process in seconds.
func cpuOfThis() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail with this argument
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// An arrival is what a crowd knows of a step.
type arrival struct {
	Got         int // workers that got it
	First, Last time.Time
	Begin       time.Time
}

// runCrowd is many workers that only talk.
func runCrowd(args []string, out io.Writer) error {
	flags := flag.NewFlagSet(crowdWord, flag.ContinueOnError)
	p := cluster.Pretense{}
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
		now := time.Now() // all are on this machine: no other clock is needed
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
