package chaos

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// tear injects faults until ctx ends, and then repairs everything.
func (w *world) tear(ctx context.Context) {
	var all sync.WaitGroup
	do := func(stream uint64, least, most time.Duration, what func(*rand.Rand)) {
		r := rand.New(rand.NewPCG(w.seed, 100+stream))
		all.Go(func() {
			for sleep(ctx, least+time.Duration(r.Int64N(int64(most-least)))) {
				what(r)
			}
		})
	}
	s := time.Second
	do(1, s, 3*s, func(r *rand.Rand) { w.kill(w.any(r), r) })
	do(2, 6*s, 10*s, func(r *rand.Rand) { w.freeze(ctx, sites[r.IntN(len(sites))]) })
	do(3, s/2, 2*s, func(r *rand.Rand) { w.cut(w.ways[sites[r.IntN(3)]], r) })
	do(4, s, 4*s, func(r *rand.Rand) { w.set(w.any(r), r) })
	if w.tmpfs && w.seconds > 60 {
		do(5, 25*s, 40*s, func(r *rand.Rand) { w.stuff(ctx, r) })
	}
	if w.pg != nil {
		do(6, 3*s, 6*s, func(*rand.Rand) { w.terminate() })
		do(7, time.Duration(w.seconds/3)*s, time.Duration(w.seconds/2)*s, func(r *rand.Rand) { w.crash(r) })
	}
	do(8, 2*s, 6*s, func(r *rand.Rand) { w.expire(r) })
	do(9, time.Duration(w.seconds)*s/10, time.Duration(w.seconds)*s/5, func(r *rand.Rand) { w.crashAbroad(r) })
	all.Go(func() { w.spoil(ctx) })
	all.Wait()
	for _, e := range w.echos {
		e.calm.Store(true)
	}
	for _, one := range w.ways {
		one.peace()
	}
	for _, b := range w.bodies {
		w.mend(b.step(0))
	}
}

// mend reports an error of the campaign itself.
func (w *world) mend(err error) {
	if err != nil {
		w.t.Error("the campaign itself:", err)
	}
}

// any returns the coordinator in one of three calls, otherwise an agent.
func (w *world) any(r *rand.Rand) *body {
	if r.IntN(3) == 0 {
		return w.bodies[boss]
	}
	return w.bodies[sites[r.IntN(len(sites))]]
}

// kill kills a process, and starts it again a little later.
func (w *world) kill(b *body, r *rand.Rand) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w.mend(b.Kill())
	w.n.kills.Add(1)
	if b.name != boss {
		w.rot(b.name, r)
	}
	time.Sleep(time.Duration(r.IntN(1500)) * time.Millisecond)
	w.mend(w.revive(b))
}

// revive starts a process, repeatedly if the processes that it needs are down as well.
func (w *world) revive(b *body) (err error) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if b.Running() {
			return nil
		}
		if err = b.Start(w.t.Context()); err == nil {
			return nil
		}
	}
	return err
}

// serve restarts processes that have ended by themselves, as a service manager does, until ctx
// ends: an agent whose disk is full does not start, and reports that.
func (w *world) serve(ctx context.Context) {
	for sleep(ctx, time.Second) {
		for _, b := range w.bodies {
			if b.Running() || !b.mu.TryLock() {
				continue
			}
			if !b.Running() && b.Start(ctx) == nil {
				w.n.restarts.Add(1)
			}
			b.mu.Unlock()
		}
		w.serveAbroad()
	}
}

// freeze stops an agent for longer than its leases are valid, and then continues it. Its next
// report is outdated.
func (w *world) freeze(ctx context.Context, site string) {
	b := w.bodies[site]
	b.mu.Lock()
	defer b.mu.Unlock()
	pid := b.Pid()
	if pid == 0 {
		return
	}
	w.mend(syscall.Kill(pid, syscall.SIGSTOP))
	w.n.stops.Add(1)
	sleep(ctx, time.Duration(w.lease)*time.Second+3*time.Second)
	w.mend(syscall.Kill(pid, syscall.SIGCONT))
}

// cut cuts a way, refuses connections for a while, or holds all data.
func (w *world) cut(one *way, r *rand.Rand) {
	d := time.Duration(r.IntN(2500)) * time.Millisecond
	if r.IntN(4) == 0 {
		one.hold(d)
		w.n.stalls.Add(1)
		return
	}
	one.cut(d / 4)
	w.n.cuts.Add(1)
}

// set changes a clock by seconds, minutes or hours, and back.
func (w *world) set(b *body, r *rand.Rand) {
	if b.clock == "" {
		return
	}
	far := []int{5, 60, 600, 3600, 7200}[r.IntN(5)]
	w.mend(b.step(r.IntN(2*far+1) - far))
	w.n.steps.Add(1)
}

// stuff fills the small disk for some seconds.
func (w *world) stuff(ctx context.Context, r *rand.Rand) {
	path := filepath.Join(w.Root(small), "ballast")
	f, err := os.Create(path)
	if err != nil {
		w.mend(err)
		return
	}
	w.n.fills.Add(1)
	data := make([]byte, 1<<20)
	for end := time.Now().Add(time.Duration(3+r.IntN(4)) * time.Second); time.Now().Before(end) && ctx.Err() == nil; {
		if _, err := f.Write(data); err != nil {
			sleep(ctx, 20*time.Millisecond)
		}
	}
	w.mend(errors.Join(f.Close(), os.Remove(path)))
}

// terminate ends all connections to the database except its own.
func (w *world) terminate() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "psql", "-qAtc", "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> "+
		"pg_backend_pid() AND backend_type = 'client backend'")
	cmd.Env = append(os.Environ(), w.pg.Env...)
	if cmd.Run() == nil { // else the server is down
		w.n.database.Add(1)
	}
}

// crash kills the database server and starts it again.
func (w *world) crash(r *rand.Rand) {
	w.pg.Kill()
	w.n.kills.Add(1)
	time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
	w.mend(w.pg.Restart(w.t.Context()))
}

// spoil damages copies, one after another during the first two thirds of the time.
func (w *world) spoil(ctx context.Context) {
	type copied struct {
		site string
		f    *file
	}
	var all []copied
	for _, s := range w.sets {
		for _, f := range s.files {
			for _, site := range f.from {
				if f.later[site] != good {
					all = append(all, copied{site, f})
				}
			}
		}
	}
	r := rand.New(rand.NewPCG(w.seed, 99))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, c := range all {
		if !sleep(ctx, time.Duration(w.seconds)*time.Second*2/3/time.Duration(len(all)+1)) {
			return
		}
		w.turn(c.site, c.f)
	}
}
