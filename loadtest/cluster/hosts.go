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

// A machine identifies a machine of workers, and the namespace of their process ids: containers may
// have namespaces of their own.
type machine struct{ boot, pids string }

func thisMachine() machine {
	space, _ := os.Readlink("/proc/self/ns/pid") // "" if the kernel has no namespaces
	return machine{boot: oneLine("/proc/sys/kernel/random/boot_id"), pids: space}
}

// assignMonitor makes one worker of w's machine monitor it, unless it is this machine. It is called
// when a worker of that machine comes or goes.
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

// sample writes a worker's sample of its machine.
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

// A guard monitors the machine of a worker.
type guard struct {
	watch *monitor.Watch
	pids  atomic.Pointer[[]int] // of the other workers on the machine
}

// Sample implements monitor.Sink.
func (m *member) Sample(s *monitor.Sample) error {
	s.Time = s.Time.Add(m.clock.offset)
	return m.worker.say(report{Sample: s})
}

// guardMachine begins to monitor this machine, or continues with other processes.
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
	if err == nil { // without monitoring there are no samples
		m.guard.watch = watch
	}
}

// stop ends the monitoring, if it was started.
func (g *guard) stop() error {
	if g.watch == nil {
		return nil
	}
	return g.watch.Stop()
}

// Pids returns the process ids of the workers on this machine, also in containers.
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

// A process is identified by its number in its namespace, as in /proc/PID/ns/pid.
type process struct {
	namespace string
	pid       int
}

// containedProcesses returns the process ids, in this namespace, of processes in other namespaces.
func containedProcesses(here string) map[process]int {
	found := map[process]int{}
	dirs, _ := filepath.Glob("/proc/[0-9]*") // the pattern is valid
	for _, dir := range dirs {
		space, err := os.Readlink(dir + "/ns/pid")
		if err != nil || space == here { // it has ended, or belongs to another user
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
