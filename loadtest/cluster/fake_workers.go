package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"weir/internal/pause"
	"weir/loadtest/measure"
	"weir/loadtest/scenario"
	"weir/monitor"
	"weir/storage"
)

// FakeWorkers are many workers in one process that measure nothing but send the messages of
// workers, to test the number of workers that a controller can serve.
type FakeWorkers struct {
	Workers int
	// Servers is the number of data servers that each worker reports each second; 0: the target
	// only.
	Servers int
	// Machines gives each worker a machine of its own, on which it reports.
	Machines bool
	// Once encodes a report once, so that a machine has room for many more workers. The controller
	// receives the same messages.
	Once bool
	// Got is called when a worker receives a step, by many goroutines at once. It may be nil.
	Got func(step scenario.Step, at time.Time)

	packed []byte // with Once: the JSON of an interval, from its kind on
}

// Run connects the workers with the pass p and returns when the run is over. They report a hundred
// operations on each server each second.
func (r FakeWorkers) Run(ctx context.Context, p Pass) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if r.Once {
		var err error
		if r.packed, err = packInterval(); err != nil {
			return err
		}
	}
	var all sync.WaitGroup
	for range r.Workers {
		all.Go(func() {
			if err := r.runOne(ctx, p); err != nil && !errors.Is(err, errOver) {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// runOne runs one worker.
func (r FakeWorkers) runOne(ctx context.Context, p Pass) error {
	m := newMember(p, JoinOptions{patience: patience, limit: longestSilence})
	defer m.close()
	if r.Machines {
		m.self.Boot, m.self.Host = "fake-"+m.self.Session, "node-"+m.self.Session[:8]
	}
	m.guard.watch = new(monitor.Watch) // this machine is not watched
	if err := m.register(ctx); err != nil {
		return err
	}
	w := newWorker(m.send)
	m.worker = w
	return m.run(ctx, func(ctx context.Context) error {
		for {
			step, err := w.Next(ctx)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if r.Got != nil {
				r.Got(step, m.clock.now())
			}
			if err := r.hold(ctx, m, step); err != nil {
				return err
			}
		}
	})
}

// hold reports on a step, second by second.
func (r FakeWorkers) hold(ctx context.Context, m *member, step scenario.Step) error {
	end := step.Begin.Add(time.Duration(step.Ramp + step.Warmup + step.Duration))
	for from := step.Begin; from.Before(end); {
		to := from.Truncate(time.Second).Add(time.Second)
		if to.After(end) {
			to = end
		}
		if !pause.For(ctx, to.Sub(m.clock.now())) {
			return fmt.Errorf("fake worker: %w", context.Cause(ctx))
		}
		if err := r.second(m, step, from, to); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// second reports the measurements between from and to.
func (r FakeWorkers) second(m *member, step scenario.Step, from, to time.Time) error {
	for i := range max(1, r.Servers) {
		v := &measure.Interval{Start: from, Seconds: to.Sub(from).Seconds(), Step: step.Number, Phase: measure.Measured,
			Clients: float64(step.Clients)}
		if r.Servers > 0 {
			v.Server = fmt.Sprintf("store%03d.example.org:1094", i)
		}
		var err error
		if r.packed != nil {
			err = m.keep(false, func(no int64) ([]byte, error) {
				return fmt.Appendf(nil, `{"no":%d,"interval":{"start":%q,"duration_seconds":%g,"step":%d,"phase":%q,"clients":%g,"server":%q,%s}`,
					no, v.Start.Format(time.RFC3339Nano), v.Seconds, v.Step, v.Phase, v.Clients, v.Server, r.packed), nil
			})
		} else {
			fillInterval(v)
			err = m.worker.Interval(v)
		}
		if err != nil {
			return err
		}
	}
	if r.Machines {
		return m.worker.say(report{Sample: fakeSample(m.self.Host, to)})
	}
	return nil
}

// fillInterval fills in the operations of a second.
func fillInterval(v *measure.Interval) {
	v.Kind, v.Moved, v.Begun, v.Done, v.Tasks = storage.Read, 100<<20, 100, 100, 100
	for i := range 100 {
		v.Latency.Record(time.Duration(50+i) * time.Millisecond)
		v.FirstByte.Record(time.Duration(5+i/10) * time.Millisecond)
		v.Late.Record(time.Duration(i) * time.Microsecond)
	}
}

// packInterval returns the JSON of an interval from its kind on, which is the same for all
// intervals.
func packInterval() ([]byte, error) {
	v := &measure.Interval{}
	fillInterval(v)
	text, err := json.Marshal(v)
	at := bytes.Index(text, []byte(`"kind":`))
	return text[max(at, 0):], err
}

// fakeSample returns a sample of one second of a machine with 16 cores.
func fakeSample(host string, end time.Time) *monitor.Sample {
	const cores, moved = 16, 1_250_000_000
	s := &monitor.Sample{
		Time: end, Seconds: 1, Host: host, Role: "client", Cores: cores, Load: 7.25, Cost: 0.00054,
		CPU:    &monitor.CPU{User: 0.1025, System: 0.30125, IRQ: 0.0625, Idle: 0.53375},
		Memory: &monitor.Memory{Total: 64 << 30, Available: 60 << 30},
		Disks:  []monitor.Disk{{Name: "nvme0n1", Write: 135168.25, Ops: 12.0625, Queue: 0.013370337651573909, Busy: 0.00825}},
		Nets: []monitor.Net{{Name: "lo", Received: 104857, Sent: 104857, PacketsIn: 300, PacketsOut: 300},
			{Name: "eth0", Received: moved, Sent: moved / 40, PacketsIn: moved / 1448, PacketsOut: moved / 2896, Speed: 10_000_000_000}},
		TCP: &monitor.TCP{Retransmits: 26, Established: 192},
		Procs: []monitor.Proc{{Name: "weir", Role: "client", Count: 1, Threads: 28, User: 0.21, System: 0.177385, RSS: 89_047_040, Files: 211,
			Read: 38609, Written: 35159}},
	}
	for i := range cores {
		s.Core = append(s.Core, float64(i)/cores)
	}
	return s
}
