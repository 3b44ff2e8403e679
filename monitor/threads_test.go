package monitor

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"weir/internal/require"
	"weir/internal/tier"
)

// manyThreads runs WEIR_THREADS threads, one of which burns CPU time while its standard input
// lasts, and prints a line when it has begun.
func manyThreads() {
	n, err := strconv.Atoi(os.Getenv("WEIR_THREADS"))
	if err != nil {
		panic(err)
	}
	up := make(chan bool)
	for range n {
		go func() {
			runtime.LockOSThread()
			up <- true
			select {}
		}()
	}
	for range n {
		<-up
	}
	go func() {
		runtime.LockOSThread()
		fmt.Println("up")
		for x := uint32(1); ; {
			x = x*1664525 + 1013904223
		}
	}()
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// withThreads starts a process of so many threads and returns its id.
func withThreads(t testing.TB, n int) int {
	t.Helper()
	cmd := playCommand("threads")
	cmd.Env = append(cmd.Env, fmt.Sprintf("WEIR_THREADS=%d", n))
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	started(t, cmd)
	t.Cleanup(func() { _ = in.Close() })
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

// The busiest thread of a process with 1000 threads is found at the first look, and its usage is
// the usage of the process.
func TestBusiestOfManyThreads(t *testing.T) {
	tier.Slow(t, "keeps cores busy")
	pid := withThreads(t, 1000)
	l := newLocal(Host{Pids: []int{pid}}, Options{}, nil, newClock())
	defer l.close()
	const looks = 3
	cost := 0.0
	for i := range looks + 1 {
		burned(t, pid, 200_000)
		res := measured(context.Background(), l)
		if i == 0 {
			continue
		}
		cost += res.sample.Cost
		p := res.sample.Procs[1]
		all := p.User + p.System
		if p.MeasuredThreads < mostHot || p.MeasuredThreads > mostThreads || math.Abs(p.BusiestThread-all) > 0.05+0.2*all ||
			p.UnmeasuredThread > 0.05+0.2*all {
			t.Errorf("%+v", p)
		}
		if p.AllowedCores < 1 || p.AllowedCores > runtime.NumCPU() {
			t.Errorf("allowed on %d cores", p.AllowedCores)
		}
	}
	t.Logf("%.0f us of CPU time a look", cost/looks*1e6)
}

// burned waits until a process has used so many microseconds more.
func burned(t *testing.T, pid int, more int64) {
	t.Helper()
	f := newProcFS("", "")
	defer f.close()
	begin := int64(-1)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); runtime.Gosched() {
		b, err := f.readPid(pid, "stat")
		require.NoError(t, err)
		s, err := parseProcStat(b)
		require.NoError(t, err)
		now := s.self.user + s.self.system
		if begin < 0 {
			begin = now
		}
		if now-begin >= more {
			return
		}
	}
	t.Fatal("the process does nothing")
}

// BenchmarkThreads prints the CPU time of a look at a process of 1000 threads.
func BenchmarkThreads(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		pid := withThreads(b, n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l := newLocal(Host{Pids: []int{pid}}, Options{}, nil, newClock())
			defer l.close()
			bench(b, busyLooks{l, pid})
		})
	}
}

// busyLooks makes each look read the threads, as one a second of a busy process does.
type busyLooks struct {
	*local
	pid int
}

func (l busyLooks) look(ctx context.Context) (*Sample, error) {
	if e := l.table.known[l.pid]; e != nil && e.tasks != nil {
		e.tasks.cpu -= worthThreads
	}
	return l.local.look(ctx)
}

// threadsOf writes the threads of a process of a fakeProc, with their CPU time in ticks.
func (f *fakeProc) threadsOf(pid int, ticks map[int]int64) {
	f.t.Helper()
	for id, n := range ticks {
		f.write(fmt.Sprintf("%d/task/%d/stat", pid, id), fmt.Sprintf("%d (a) b) S 1 1 1 0 -1 4194304 9 0 0 0 %d 0 0 0 20 0 3 0 5 0 0 0\n", id, n))
	}
}

func TestBusiestThread(t *testing.T) {
	f := newFakeProc(t)
	tab, g := watchOf(f, func(g *group) { g.pids = []int{10} })
	step := func(user int64, ticks map[int]int64) Proc {
		f.process(fakeProcess{pid: 10, ppid: 1, comm: "server", start: 5, user: user})
		f.threadsOf(10, ticks)
		require.NoError(t, tab.update())
		return g.take()
	}
	step(1000, map[int]int64{10: 600, 11: 300, 12: 100}) // earlier usage does not count
	same := func(p Proc, measured int, busiest, other float64) {
		t.Helper()
		if p.MeasuredThreads != measured || math.Abs(p.BusiestThread-busiest) > 1e-9 || math.Abs(p.UnmeasuredThread-other) > 1e-9 {
			t.Errorf("%+v, want %d threads, %v and %v", p, measured, busiest, other)
		}
	}
	same(step(1080, map[int]int64{10: 610, 11: 370, 12: 100}), 3, 0.7, 0)
	same(step(1150, map[int]int64{10: 610, 11: 380, 12: 150}), 3, 0.5, 0.1) // one came and went: 0.1 s
	same(step(1151, map[int]int64{10: 610, 11: 381, 12: 150}), 3, 0.01, 0)  // too little to look at threads: the process's is the bound
	same(step(1251, map[int]int64{10: 660, 11: 431, 12: 150}), 3, 0.51, 0)
	same(step(1351, map[int]int64{10: 660, 11: 431, 12: 150, 13: 90}), 4, 0.9, 0.1) // a new thread
}

// A process of one thread needs no further reading, and one of which no
// thread can be read gives no figure.
func TestThreadsThatCannotBeRead(t *testing.T) {
	f := newFakeProc(t)
	f.process(fakeProcess{pid: 10, ppid: 1, comm: "server", start: 5, user: 100})
	tab, g := watchOf(f, func(g *group) { g.pids = []int{10} })
	look(t, tab, g)
	f.process(fakeProcess{pid: 10, ppid: 1, comm: "server", start: 5, user: 190})
	require.NoError(t, tab.update())
	if p := g.take(); p.MeasuredThreads != 0 || p.BusiestThread != 0 || p.AllowedCores != 0 {
		t.Errorf("%+v", p)
	}
}
