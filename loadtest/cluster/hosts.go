package cluster

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"weir/monitor"
)

// A machine is one that workers are on, and how its processes are numbered: containers may have numbers of their own.
type machine struct{ boot, pids string }

func thisMachine() machine {
	space, _ := os.Readlink("/proc/self/ns/pid") // "" where there is none
	return machine{boot: oneLine("/proc/sys/kernel/random/boot_id"), pids: space}
}

// assignMonitor has one worker of each machine but ours watch that machine. It is called when a worker of it comes or goes.
func (k *controller) assignMonitor(w *remote) {
	if k.options.Samples == nil || w.on.boot == "" || w.on.boot == k.here.boot {
		return
	}
	var first *remote
	var pids []int
	for _, o := range k.present() {
		if o.on.boot != w.on.boot {
			continue
		}
		if first == nil {
			first = o
		}
		if o != first && o.on == first.on {
			pids = append(pids, o.pid)
		}
	}
	if first != nil {
		_ = first.say(order{Watch: &watchOrder{Pids: pids}})
	}
}

// sample keeps what a worker saw of its machine.
func (k *controller) sample(s *monitor.Sample) error {
	if k.options.Samples == nil {
		return nil
	}
	s.Step, s.Host, s.Role = k.number, clean(s.Host), "client"
	if !s.Time.After(k.watched[s.Host]) {
		return nil // it was written before the restart
	}
	return k.options.Samples.Sample(s)
}

// A guard is the watch that a worker keeps over its machine.
type guard struct {
	watch *monitor.Watch
	pids  atomic.Pointer[[]int] // of the other workers there
}

// Sample implements monitor.Sink.
func (m *member) Sample(s *monitor.Sample) error {
	s.Time = s.Time.Add(m.clock.offset)
	return m.worker.say(report{Sample: s})
}

// guardMachine begins to watch this machine, or goes on with other processes.
func (m *member) guardMachine(ctx context.Context, l *watchOrder) {
	m.registering.Lock()
	defer m.registering.Unlock()
	m.guard.pids.Store(&l.Pids)
	if m.guard.watch != nil || ctx.Err() != nil {
		return
	}
	with := func() []int { return *m.guard.pids.Load() }
	o := monitor.Options{Target: m.targets[0], Others: m.targets[1:], Children: true, With: with, Scratch: m.worker.scratchDevice}
	watch, err := monitor.Start(ctx, nil, o, m)
	if err == nil { // a machine that cannot be watched has no samples
		m.guard.watch = watch
	}
}

// stop ends the watch, if there is one.
func (g *guard) stop() error {
	if g.watch == nil {
		return nil
	}
	return g.watch.Stop()
}

// Pids returns the processes of the workers that are on this machine, also of those in containers.
func (d *Server) Pids() []int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.run == nil {
		return nil
	}
	var all []int
	var contained map[process]int
	for _, s := range d.run.sessions {
		w := s.worker
		if w.on.boot != d.run.controller.here.boot || w.pid <= 0 || s.isClosed() {
			continue
		}
		if s.pid == 0 && w.on == d.run.controller.here {
			s.pid = w.pid
		}
		if s.pid == 0 {
			if contained == nil {
				contained = containedProcesses(d.run.controller.here.pids)
			}
			s.pid = cmp.Or(contained[process{w.on.pids, w.pid}], -1)
		}
		if s.pid > 0 {
			all = append(all, s.pid)
		}
	}
	return all
}

// A process is known by its number in its namespace, as /proc/PID/ns/pid has it.
type process struct {
	namespace string
	pid       int
}

// containedProcesses returns the numbers here of processes that are in other namespaces than this one.
func containedProcesses(here string) map[process]int {
	found := map[process]int{}
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is valid
	for _, dir := range dirs {
		space, err := os.Readlink(dir + "/ns/pid")
		if err != nil || space == here { // it has ended, or is another user's
			continue
		}
		status, _ := os.ReadFile(dir + "/status")
		_, numbers, _ := strings.Cut(string(status), "\nNSpid:")
		numbers, _, _ = strings.Cut(numbers, "\n")
		if all := strings.Fields(numbers); len(all) > 1 {
			outer, _ := strconv.Atoi(all[0])
			inner, _ := strconv.Atoi(all[len(all)-1])
			found[process{space, inner}] = outer
		}
	}
	return found
}
