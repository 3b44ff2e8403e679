package monitor

import (
	"bytes"
	"os"
	"slices"
	"strconv"
)

// Limits of the cost of reading the threads of one process at each look.
const (
	mostThreads  = 128             // threads that are read; of more, the busiest and some of the others in turn
	mostHot      = mostThreads / 2 // of these, the busiest
	mostAtOnce   = 4096            // threads that are read if the busiest are unknown: at the first look, and after others were busy
	listThreads  = 8               // looks after which the threads of a process with many are listed, and may all be read, again
	worthThreads = 20_000          // microseconds of the process's CPU time: below that no thread is read
)

// A threadTable stores the known threads of one process.
type threadTable struct {
	known  map[int]*thread
	ids    []int // ascending
	count  int   // threads of the process when they were listed
	listed int   // the look at which they were
	read   int   // the last look at which threads were read
	turn   int   // place in ids of the next thread that is read in turn
	swept  int   // the last look at which all were read
	missed bool  // threads that were not read did much
	cpu    int64 // of the process, microseconds, when threads were read
}

// A thread is one thread of a process that was read.
type thread struct {
	cpu  int64 // microseconds since it began
	gain int64 // between its last two readings, for each look
	look int   // of the last reading
}

// A threadFigure sums up the CPU usage of the threads of a process between two looks.
type threadFigure struct {
	measured int   // threads whose CPU time in the span is known
	busiest  int64 // CPU time of the busiest of them, microseconds
	rest     int64 // CPU time of the process outside the measured threads
}

// threads reads the CPU time of e's busiest threads. The process used gain microseconds since the
// last look, and cpu in all. It returns the zero value if nothing is known.
func (t *table) threads(e *entry, cpu, gain int64) threadFigure {
	if e.threads == 1 {
		e.tasks = nil
		return threadFigure{measured: 1, busiest: gain}
	}
	first := e.tasks == nil
	if first {
		e.tasks = &threadTable{known: map[int]*thread{}}
	}
	k := e.tasks
	if !first && cpu-k.cpu < worthThreads {
		return threadFigure{measured: e.threads, busiest: max(0, gain)} // at most that
	}
	if first || e.threads <= mostThreads || k.count != e.threads || t.look-k.listed >= listThreads {
		k.list(t, e.pid)
		k.count = e.threads
	}
	before := k.read
	k.cpu, k.read = cpu, t.look
	f := threadFigure{rest: gain}
	for _, id := range k.due(t.look) {
		own, ok := t.fs.threadCPU(e.pid, id)
		if !ok {
			continue
		}
		x := k.known[id]
		if x == nil {
			x = &thread{look: before} // it began since
			if first || k.count > mostThreads {
				x.cpu, x.look = own, 0 // or earlier
			}
			k.known[id] = x
		}
		x.gain = max(0, own-x.cpu) / int64(max(1, t.look-x.look))
		if first {
			x.gain = own
		}
		if x.look == before && before > 0 {
			f.measured++
			f.busiest = max(f.busiest, own-x.cpu)
			f.rest -= own - x.cpu
		}
		x.cpu, x.look = own, t.look
	}
	f.rest, f.busiest = max(0, f.rest), min(f.busiest, gain)
	k.missed = f.rest > max(worthThreads, f.busiest/4)
	return f
}

// list finds the ids of all threads, and removes the threads that ended.
func (k *threadTable) list(t *table, pid int) {
	k.ids, k.listed = t.fs.threadIDs(pid, k.ids[:0]), t.look
	for id := range k.known {
		if _, found := slices.BinarySearch(k.ids, id); !found {
			delete(k.known, id)
		}
	}
}

// due returns the threads that are read at this look: all, or the busiest and as many of the others in turn.
func (k *threadTable) due(look int) []int {
	if len(k.ids) <= mostThreads || k.swept == 0 || k.missed && look-k.swept >= listThreads {
		k.swept = look
		return k.ids[:min(len(k.ids), mostAtOnce)]
	}
	all := slices.Clone(k.ids)
	slices.SortFunc(all, func(a, b int) int { return int(k.gainOf(b) - k.gainOf(a)) })
	all = all[:mostHot]
	for range mostThreads - mostHot {
		k.turn = (k.turn + 1) % len(k.ids)
		if id := k.ids[k.turn]; !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	return all
}

func (k *threadTable) gainOf(id int) int64 {
	if x := k.known[id]; x != nil {
		return x.gain
	}
	return 0
}

// threadIDs appends the ids of the threads of a process to into, ascending.
func (f *procFS) threadIDs(pid int, into []int) []int {
	dir, err := os.Open(f.ofPid(pid, "task"))
	if err != nil {
		return into
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		if id, err := strconv.Atoi(name); err == nil {
			into = append(into, id)
		}
	}
	slices.Sort(into)
	return into
}

// threadCPU returns the CPU time of a thread since it began, in microseconds.
func (f *procFS) threadCPU(pid, id int) (cpu int64, ok bool) {
	b, err := f.readPid(pid, "task/"+strconv.Itoa(id)+"/stat")
	if err != nil {
		return 0, false
	}
	end := bytes.LastIndexByte(b, ')')
	if end < 0 {
		return 0, false
	}
	_, rest := cutField(b[end+1:]) // the state
	var user, system int64
	if numbers(skipFields(rest, 10), &user, &system) < 2 {
		return 0, false
	}
	const us = 10_000 // microseconds a tick
	return (user + system) * us, true
}
