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
	"time"

	"weir/cluster"
	"weir/engine"
	"weir/internal/unit"
	"weir/measure"
	"weir/scenario"
	"weir/storage/all"
	"weir/workload"
)

// loadedWord makes this program one engine that works, with a controller or
// without.
const loadedWord = "loaded"

// runLoaded works through the plan in a file and throws away what it sees; or,
// with a pass, it is a worker, which gets its plan and tells what it sees. All
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

// counted counts operations and what went wrong.
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
	if e.Kind == "warning" {
		c.warnings = append(c.warnings, e.Text)
	}
	return nil
}

// loadedPlan is a step of clients that read one file again and again.
func loadedPlan(target string, clients int, hold time.Duration) *scenario.Plan {
	return &scenario.Plan{
		Model: "closed", Driver: "webdav", Target: target, Seed: 1, Drain: unit.Duration(time.Second),
		Work:  workload.Work{Kind: "read", Session: "kept", Pick: "random"},
		Steps: []scenario.Step{{Number: 1, Clients: clients, Hold: unit.Duration(hold)}},
	}
}

func loadedConfig(p *scenario.Plan) engine.Config {
	return engine.Config{Plan: p, Files: []workload.File{{Path: theFile, Size: loadedSize}}, Folder: "weir-bench"}
}

const loadedSize = 4 << 10

// aloneSide is an engine without a controller.
func (r *rig) aloneSide(self string, plan *scenario.Plan) side {
	return side{"alone", func(ctx context.Context) (figures, error) {
		path := filepath.Join(r.dir, "plan.json")
		text, err := json.Marshal(plan)
		if err == nil {
			err = os.WriteFile(path, text, 0o600)
		}
		if err != nil {
			return nil, err
		}
		u, err := runChild(ctx, nil, nil, self, loadedWord, path)
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
	seconds := time.Duration(plan.Steps[0].Hold).Seconds()
	return figures{rate: done / seconds, requestCPU: u.cpu.Seconds() / done, coresUsed: u.cpu.Seconds() / seconds}
}

// workerSide is the same engine that tells a controller, which is this process.
func (r *rig) workerSide(self string, plan *scenario.Plan) side {
	return side{"worker", func(ctx context.Context) (f figures, err error) {
		dir, err := os.MkdirTemp(r.dir, "door-")
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		door, err := cluster.OpenDoor(cluster.DoorOptions{Address: "127.0.0.1", State: filepath.Join(dir, "state")})
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
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- door.Control(ctx, c, cluster.Crew{Want: 1, Wait: time.Minute}) }()
		u, err := runChild(ctx, nil, nil, self, loadedWord, "-pass", passFile(dir))
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
