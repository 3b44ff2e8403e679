package trial

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/procfs"
)

const (
	usageEvery  = 100 * time.Millisecond // between observations of processes
	usageLooks  = 5                      // over which the largest CPU usage is computed: a tick is 10 ms
	usageWindow = 450 * time.Millisecond // that these span at least
)

// Main is the name of the coordinator among the hosts of a case.
const Main = "main"

// A Usage is the resource usage of a process of a trial during a case. It is zero if /proc is
// missing.
type Usage struct {
	CPU     float64 `json:"cpu_max"`            // largest usage within half a second, in cores
	Memory  int64   `json:"resident_bytes_max"` // largest resident memory
	Seconds float64 `json:"cpu_seconds"`        // CPU time
	Share   float64 `json:"resident_ratio_max"` // Memory, of this machine's
}

// A look is the cumulative resource usage of a process at a moment.
type look struct {
	at   time.Time
	pid  int
	cpu  float64 // seconds
	size int64
}

// A watcher observes the processes of a trial.
type watcher struct {
	t    *Trial
	end  chan struct{}
	done sync.WaitGroup
	mu   sync.Mutex
	seen map[string][]look
}

// watch observes all processes until stop is called.
func (t *Trial) watch() *watcher {
	w := &watcher{t: t, end: make(chan struct{}), seen: map[string][]look{}}
	w.look()
	w.done.Go(func() {
		every := time.NewTicker(usageEvery)
		defer every.Stop()
		for {
			select {
			case <-w.end:
				return
			case <-every.C:
				w.look()
			}
		}
	})
	return w
}

func (w *watcher) stop() {
	close(w.end)
	w.done.Wait()
	w.look()
}

// look records the usage of all processes now, and returns the time.
func (w *watcher) look() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	one := func(name string, p *Process) {
		pid := p.Pid()
		if pid == 0 {
			return
		}
		if cpu, size, err := processUsage(pid); err == nil {
			w.seen[name] = append(w.seen[name], look{now, pid, cpu, size})
		}
	}
	one(Main, w.t.coordinator)
	for name, p := range w.t.sites {
		one(name, p)
	}
	return now
}

// all returns the usage of each process.
func (w *watcher) all() map[string]Usage { return w.between(time.Time{}, time.Now()) }

// between returns the usage of each process between two looks.
func (w *watcher) between(from, to time.Time) map[string]Usage {
	w.mu.Lock()
	defer w.mu.Unlock()
	all, total := map[string]Usage{}, memoryTotal()
	for name, seen := range w.seen {
		seen = slices.DeleteFunc(slices.Clone(seen), func(l look) bool { return l.at.Before(from) || l.at.After(to) })
		u := usageOf(seen)
		if total > 0 {
			u.Share = float64(u.Memory) / float64(total)
		}
		all[name] = u
	}
	return all
}

// usageOf adds up looks. A process that was started again began with no CPU time.
func usageOf(seen []look) (u Usage) {
	begin := 0 // of the observed process
	for i, l := range seen {
		u.Memory = max(u.Memory, l.size)
		if i == 0 {
			continue
		}
		last := seen[i-1]
		if last.pid != l.pid {
			begin, last.cpu = i, 0
		}
		u.Seconds += l.cpu - last.cpu
		first := seen[max(begin, i-usageLooks)]
		span := l.at.Sub(first.at)
		if span >= usageWindow || i == len(seen)-1 && u.CPU == 0 && span > 0 {
			u.CPU = max(u.CPU, (l.cpu-first.cpu)/span.Seconds())
		}
	}
	return u
}

// processUsage returns the CPU time of a process, in seconds, and its resident memory, in bytes.
func processUsage(pid int) (cpu float64, size int64, err error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, 0, err
	}
	stat, err := p.Stat()
	return stat.CPUTime(), int64(stat.ResidentMemory()), err
}

// memoryTotal returns the memory of this machine in bytes; 0: unknown.
func memoryTotal() int64 {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0
	}
	m, err := fs.Meminfo()
	if err != nil || m.MemTotalBytes == nil {
		return 0
	}
	return int64(*m.MemTotalBytes)
}
