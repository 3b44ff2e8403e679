package monitor

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"weir/internal/require"
)

// watchOf returns a table over a made /proc with one group.
func watchOf(f *fakeProc, rule func(*group)) (*table, *group) {
	t := newTable(newProcFS(f.root, f.root))
	f.t.Cleanup(t.fs.close)
	g := newGroup("server", "server")
	rule(g)
	t.groups = []*group{g}
	return t, g
}

// look updates the table and returns the CPU ticks and bytes of the span.
func look(t testing.TB, tab *table, g *group) (ticks, bytes int64) {
	t.Helper()
	require.NoError(t, tab.update())
	p := g.take()
	return int64(p.User*100+0.5) + int64(p.System*100+0.5), p.Read + p.Written
}

func TestChildThatIsWaitedForCountsOnce(t *testing.T) {
	f := newFakeProc(t)
	f.process(fakeProcess{pid: 10, ppid: 1, comm: "server", start: 5, user: 1000, read: 5000})
	f.process(fakeProcess{pid: 11, ppid: 10, comm: "server", start: 6, user: 90_000, read: 1 << 30})
	tab, g := watchOf(f, func(g *group) { g.programs = []string{"server"} })
	if ticks, bytes := look(t, tab, g); ticks != 0 || bytes != 0 {
		t.Fatalf("history counted: %d ticks, %d bytes", ticks, bytes)
	}
	f.process(fakeProcess{pid: 11, ppid: 10, comm: "server", start: 6, user: 90_050, read: 1<<30 + 700})
	f.process(fakeProcess{pid: 12, ppid: 10, comm: "helper", start: 900, system: 30, written: 20})
	if ticks, bytes := look(t, tab, g); ticks != 80 || bytes != 720 {
		t.Fatalf("%d ticks, %d bytes", ticks, bytes)
	}
	// Both end after some more work; the parent waits and inherits all.
	f.remove(11)
	f.remove(12)
	f.process(fakeProcess{pid: 10, ppid: 1, comm: "server", start: 5, user: 1001, kidsUser: 90_060, kidsSystem: 35,
		read: 5000 + 1<<30 + 800, written: 25})
	if ticks, bytes := look(t, tab, g); ticks != 16 || bytes != 105 {
		t.Errorf("after the end: %d ticks, %d bytes", ticks, bytes)
	}
	if ticks, bytes := look(t, tab, g); ticks != 0 || bytes != 0 {
		t.Errorf("counted again: %d ticks, %d bytes", ticks, bytes)
	}
}

// TestOthers: programs in no group count from their start or from the first look on, but not
// threads of the kernel, nor processes that join a group.
func TestOthers(t *testing.T) {
	f := newFakeProc(t)
	f.process(fakeProcess{pid: 10, ppid: 1, comm: "server", start: 5, user: 1000})
	f.process(fakeProcess{pid: 21, ppid: 1, comm: "cron", start: 5, user: 4000})
	f.process(fakeProcess{pid: 22, ppid: 2, comm: "kworker", start: 5, kernel: true})
	tab, g := watchOf(f, func(g *group) { g.programs = []string{"server"} })
	others := func(want int64) {
		t.Helper()
		look(t, tab, g)
		if have := tab.others / 10_000; have != want {
			t.Errorf("look %d: %d ticks of others, not %d", tab.look, have, want)
		}
	}
	others(0)
	f.process(fakeProcess{pid: 10, ppid: 1, comm: "server", start: 5, user: 1050})
	f.process(fakeProcess{pid: 11, ppid: 10, comm: "helper", start: 90, user: 20})
	f.process(fakeProcess{pid: 22, ppid: 2, comm: "kworker", start: 5, system: 90, kernel: true})
	f.process(fakeProcess{pid: 30, ppid: 1, comm: "make", start: 90, user: 7})
	others(7)
	if tab.kernel != 90*10_000 {
		t.Errorf("%d us of threads of the kernel", tab.kernel)
	}
	f.process(fakeProcess{pid: 30, ppid: 1, comm: "make", start: 90, user: 17})
	others(10)
	f.process(fakeProcess{pid: 21, ppid: 1, comm: "cron", start: 5, user: 4030})
	sum := int64(0)
	for range often {
		look(t, tab, g)
		sum += tab.others
	}
	if sum != 30*10_000 {
		t.Errorf("%d us of a program that was idle", sum)
	}
	f.process(fakeProcess{pid: 30, ppid: 1, comm: "make", start: 91, user: 3}) // the same number, another process
	for range often {
		if look(t, tab, g); tab.others != 0 {
			break
		}
	}
	if tab.others != 30_000 {
		t.Errorf("%d us of a process with the number of another", tab.others)
	}
}

func TestChildThatNobodyWaitsFor(t *testing.T) {
	f := newFakeProc(t)
	f.process(fakeProcess{pid: 10, ppid: 1, comm: "server", start: 5, ignores: true})
	tab, g := watchOf(f, func(g *group) { g.pids = []int{10} })
	look(t, tab, g)
	f.process(fakeProcess{pid: 11, ppid: 10, comm: "child", start: 900, user: 40, read: 9})
	if ticks, bytes := look(t, tab, g); ticks != 40 || bytes != 9 {
		t.Fatalf("%d ticks, %d bytes", ticks, bytes)
	}
	f.remove(11)
	for range 2 {
		if ticks, bytes := look(t, tab, g); ticks != 0 || bytes != 0 {
			t.Errorf("after the end: %d ticks, %d bytes", ticks, bytes)
		}
	}
	f.process(fakeProcess{pid: 10, ppid: 1, comm: "server", start: 5, user: 7, read: 3, ignores: true})
	if ticks, bytes := look(t, tab, g); ticks != 7 || bytes != 3 {
		t.Errorf("the parent goes on: %d ticks, %d bytes", ticks, bytes)
	}
}

func TestPidUsedAgain(t *testing.T) {
	f := newFakeProc(t)
	f.process(fakeProcess{pid: 10, ppid: 1, comm: "server", start: 5, user: 500})
	f.process(fakeProcess{pid: 20, ppid: 1, comm: "other", start: 6})
	tab, g := watchOf(f, func(g *group) { g.programs = []string{"server"} })
	look(t, tab, g)
	f.process(fakeProcess{pid: 10, ppid: 1, comm: "server", start: 5, user: 510})
	if ticks, _ := look(t, tab, g); ticks != 10 {
		t.Fatal(ticks)
	}
	// The server is started again and gets the old number; it has used less CPU time than the first
	// server.
	f.process(fakeProcess{pid: 10, ppid: 1, comm: "server", start: 800, user: 3})
	if ticks, _ := look(t, tab, g); ticks != 3 {
		t.Errorf("the second server: %d ticks", ticks)
	}
	// A stranger gets the number.
	f.process(fakeProcess{pid: 10, ppid: 1, comm: "stranger", start: 950, user: 10_000})
	if ticks, _ := look(t, tab, g); ticks != 0 {
		t.Errorf("the stranger: %d ticks", ticks)
	}
	if g.alive() {
		t.Error("the stranger is a member")
	}
	// A process that was no server becomes one by exec.
	f.process(fakeProcess{pid: 20, ppid: 1, comm: "server", start: 6, user: 50})
	found := false
	for range often {
		look(t, tab, g)
		found = found || g.alive()
	}
	if !found {
		t.Error("a process that changed its program was not found again")
	}
}

func TestConfiguredPidMeansOneProcess(t *testing.T) {
	f := newFakeProc(t)
	f.process(fakeProcess{pid: 10, ppid: 1, comm: "a", start: 5})
	tab, g := watchOf(f, func(g *group) { g.pids = []int{10} })
	look(t, tab, g)
	f.process(fakeProcess{pid: 10, ppid: 1, comm: "b", start: 700, user: 99})
	if ticks, _ := look(t, tab, g); ticks != 0 || g.alive() {
		t.Errorf("another process under the number: %d ticks", ticks)
	}
	if said := g.complaints(); !slices.Equal(said, []string{"no process of server runs"}) {
		t.Error(said)
	}
	if said := g.complaints(); said != nil {
		t.Error("said again:", said)
	}
}

func TestProcessGroup(t *testing.T) {
	f := newFakeProc(t)
	f.process(fakeProcess{pid: 30, ppid: 1, pgrp: 30, comm: "lead", start: 5})
	f.process(fakeProcess{pid: 31, ppid: 1, pgrp: 30, comm: "orphan", start: 6})
	f.process(fakeProcess{pid: 32, ppid: 1, pgrp: 32, comm: "lead", start: 7})
	tab, g := watchOf(f, func(g *group) { g.pgrps = []int{30} })
	look(t, tab, g)
	if p := g.take(); p.Count != 2 || p.Threads != 6 {
		t.Errorf("%+v", p)
	}
}

// A kernel plays processes that fork, work, end and are waited for.
type kernel struct {
	f     *fakeProc
	r     *rand.Rand
	procs map[int]*fakeProcess
	next  int
	dirty map[int]bool // to be written
	now   int64
	used  int64 // ticks by the server and its descendants, since the start
	bytes int64
}

func (k *kernel) pick() *fakeProcess {
	pids := make([]int, 0, len(k.procs))
	for pid := range k.procs {
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	return k.procs[pids[k.r.IntN(len(pids))]]
}

// event does one random thing.
func (k *kernel) event() {
	k.now++
	p := k.pick()
	k.dirty[p.pid], k.dirty[p.ppid], k.dirty[k.next+1] = true, true, true
	switch n := k.r.IntN(10); {
	case n < 5:
		work := k.r.Int64N(50)
		p.user += work
		p.system += work / 2
		p.read += work * 1000
		k.used += work + work/2
		k.bytes += work * 1000
	case n < 7 && len(k.procs) < 40:
		k.next++
		k.procs[k.next] = &fakeProcess{pid: k.next, ppid: p.pid, comm: "server", start: k.now, ignores: k.r.IntN(4) == 0}
	case p.pid != 10:
		k.exit(p)
	}
}

func (k *kernel) exit(p *fakeProcess) {
	delete(k.procs, p.pid)
	k.f.remove(p.pid)
	for _, child := range k.procs {
		if child.ppid == p.pid {
			child.ppid = 1
			k.dirty[child.pid] = true
		}
	}
	if parent := k.procs[p.ppid]; parent != nil && !parent.ignores {
		parent.kidsUser += p.user + p.kidsUser
		parent.kidsSystem += p.system + p.kidsSystem
		parent.read += p.read
	}
}

// TestFamilyAgainstModel plays thousands of events, with a look after each: the sum is then exact,
// for every sequence of forks, ends and waits.
func TestFamilyAgainstModel(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			f := newFakeProc(t)
			k := &kernel{f: f, r: rand.New(rand.NewPCG(seed, 1)), procs: map[int]*fakeProcess{}, next: 100}
			k.procs[10] = &fakeProcess{pid: 10, ppid: 1, comm: "server", start: 1, user: 777, read: 999}
			k.procs[11] = &fakeProcess{pid: 11, ppid: 10, comm: "server", start: 1, user: 5555, kidsUser: 444, read: 333}
			tab, g := watchOf(f, func(g *group) { g.programs = []string{"server"} })
			var ticks, bytes int64
			k.play(func() {
				dt, db := look(t, tab, g)
				if dt < 0 || db < 0 {
					t.Fatalf("went back by %d ticks, %d bytes", dt, db)
				}
				ticks, bytes = ticks+dt, bytes+db
				if ticks != k.used || bytes != k.bytes {
					t.Fatalf("event %d: %d ticks and %d bytes seen, %d and %d used", k.now, ticks, bytes, k.used, k.bytes)
				}
			}, 300, 1)
		})
	}
}

// TestFamilyWithRareLooks looks after every seventh event only: the reported usage never decreases
// and never exceeds the actual usage.
func TestFamilyWithRareLooks(t *testing.T) {
	var seen, used int64
	for seed := range uint64(4) {
		f := newFakeProc(t)
		k := &kernel{f: f, r: rand.New(rand.NewPCG(seed, 2)), procs: map[int]*fakeProcess{}, next: 100}
		k.procs[10] = &fakeProcess{pid: 10, ppid: 1, comm: "server", start: 1}
		tab, g := watchOf(f, func(g *group) { g.pids = []int{10} })
		var ticks int64
		k.play(func() {
			dt, _ := look(t, tab, g)
			ticks += dt
			if dt < 0 || ticks > k.used {
				t.Fatalf("seed %d, event %d: %d more ticks, %d in all of %d", seed, k.now, dt, ticks, k.used)
			}
		}, 400, 7)
		seen, used = seen+ticks, used+k.used
	}
	if seen < used*8/10 {
		t.Errorf("%d of %d ticks seen", seen, used)
	}
	t.Logf("%d of %d ticks seen", seen, used)
}

// play makes events and calls check after the first state and each group of them.
func (k *kernel) play(check func(), events, every int) {
	k.dirty = map[int]bool{10: true, 11: true}
	for n := 0; n <= events; n++ {
		if n%every == 0 {
			for pid := range k.dirty {
				if p := k.procs[pid]; p != nil {
					k.f.process(*p)
				}
			}
			clear(k.dirty)
			check()
		}
		k.event()
	}
}
