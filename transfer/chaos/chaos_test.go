package chaos

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/tier"
	"weir/internal/unit"
	"weir/lab"
	"weir/lab/labtest"
	"weir/transfer"
)

// No file is lost and no bad file counts as good, regardless of the injected faults. The same
// WEIR_CHAOS_SEED gives the same files, the same flaws of their copies and the same order of the
// faults. Their exact times depend on the machine.
func TestChaos(t *testing.T) {
	tier.Full(t, "faults at random")
	s := sized(t)
	clocks := os.Getenv("WEIR_LONG") != ""
	program := build(t, clocks)
	together := func(t *testing.T) {
		if !clocks { // a short campaign mostly waits: the two campaigns run at the same time
			t.Parallel()
		}
	}
	t.Run("SQLite", func(t *testing.T) {
		together(t)
		campaign(t, s, program, clocks, nil)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		together(t)
		labtest.Need(t, "postgres", "initdb", "pg_isready")
		pg := labtest.Start(t, lab.PostgreSQLConfig{})
		campaign(t, s, program, clocks, pg)
	})
}

func campaign(t *testing.T, s size, program string, clocks bool, pg *lab.System) {
	w := newWorld(t, newPlan(s), program, clocks, pg)
	t.Cleanup(func() { w.show() })
	w.start()
	w.fill()
	w.crowd(map[bool]int{true: 2000, false: 60}[s.files >= 2000])
	t.Logf("seed %d: %d files in %d requests, %d s of trouble", s.seed, s.files, len(w.sets), s.seconds)
	trouble := time.Duration(s.seconds) * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), trouble)
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() { w.submit(ctx, trouble*4/5) })
	all.Go(w.submitCrowd)
	all.Go(func() { w.tear(ctx) })
	all.Go(func() {
		for sleep(ctx, 10*time.Second) {
			t.Log(w.progress())
		}
	})
	managed, end := context.WithCancel(t.Context())
	var manager sync.WaitGroup
	manager.Go(func() { w.serve(managed) })
	defer manager.Wait()
	defer end()
	all.Wait()
	var v verdict
	calm := time.Now()
	w.giveUp()
	if !w.settle(10 * time.Minute) {
		return
	}
	v.settled = time.Since(calm)
	w.judge(&v)
	w.tell(&v)
}

// giveUp cancels the request that waits for space which will never be available, once the
// coordinator has reported this reason.
func (w *world) giveUp() {
	for _, s := range w.sets {
		if !s.files[0].giant {
			continue
		}
		said := ""
		for end := time.Now().Add(time.Minute); time.Now().Before(end); sleep(w.t.Context(), 200*time.Millisecond) {
			x, err := w.ask.Explain(w.t.Context(), s.id, "")
			if err == nil && len(x.Reasons) > 0 {
				said = x.Reasons[0].Text
			}
			if strings.Contains(said, " free") {
				break
			}
		}
		if !strings.Contains(said, " free") {
			w.t.Errorf("there is no space for %s, and what is said is %q", s.name, said)
		}
		if _, err := w.ask.Cancel(w.t.Context(), s.id, "it does not fit"); err != nil {
			w.t.Error(err)
		}
	}
}

// settle waits until all requests have ended.
func (w *world) settle(patience time.Duration) bool {
	w.t.Log("all is whole again: ", w.progress())
	last := time.Now()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		open, err := w.ask.Requests(w.t.Context(), transfer.Filter{Open: true})
		if err == nil && len(open) == 0 {
			return true
		}
		if time.Since(last) > 15*time.Second {
			last = time.Now()
			w.t.Log(w.progress())
			w.explain(open)
		}
	}
	open, err := w.ask.Requests(w.t.Context(), transfer.Filter{Open: true})
	w.t.Errorf("%d requests are left unfinished %v after all was whole again: %v", len(open), patience, err)
	for _, r := range open {
		x, err := w.ask.Explain(w.t.Context(), r.ID, "")
		w.t.Errorf("%s: %+v: %+v %v", r.Dataset, r.Count, x.Reasons, err)
	}
	return false
}

// explain logs the reasons why requests wait.
func (w *world) explain(open []transfer.Request) {
	for _, r := range open {
		x, err := w.ask.Explain(w.t.Context(), r.ID, "")
		for _, one := range x.Reasons {
			w.t.Logf("request %d, %s to %s, %s: %d files (%s): %s", r.ID, r.Dataset, r.To, r.Status, one.Files, one.File, one.Text)
		}
		if err != nil {
			w.t.Log(err)
		}
	}
}

// progress returns the progress of all requests on one line.
func (w *world) progress() string {
	ctx, cancel := context.WithTimeout(w.t.Context(), 3*time.Second)
	defer cancel()
	var done, failed, files int64
	all, err := w.ask.Requests(ctx, transfer.Filter{Limit: 1000})
	if err != nil {
		return "the coordinator does not answer"
	}
	ended := 0
	for _, r := range all {
		done += r.Count.Done + r.Count.Skipped
		failed += r.Count.Failed + r.Count.Cancelled
		files += r.Count.Files
		if r.Status.Ended() {
			ended++
		}
	}
	return fmt.Sprintf("%3.0f s: %d of %d requests over; of %d files %d there, %d named; %d kills, %d stops, %d cuts, %d flips",
		time.Since(w.begun).Seconds(), ended, len(all), files, done, failed,
		w.n.kills.Load(), w.n.stops.Load(), w.n.cuts.Load(), w.n.flips.Load())
}

// tell prints the figures in the format of docs/reliability.md.
func (w *world) tell(v *verdict) {
	var b strings.Builder
	row := func(what string, n any) { fmt.Fprintf(&b, "| %s | %v |\n", what, n) }
	bytes := func(n int64) string { return unit.Bytes(float64(n)) }
	n := &w.n
	row("kills (-9) of coordinator, agents, servers of others, database server", n.kills.Load())
	row("database connections ended, times", n.database.Load())
	row("agents stopped beyond their leases", n.stops.Load())
	row("links cut / stalled", fmt.Sprintf("%d / %d", n.cuts.Load(), n.stalls.Load()))
	row("bytes flipped in flight / in temporaries", fmt.Sprintf("%d / %d", n.flips.Load(), n.rots.Load()))
	row("good copies spoiled, cut, lengthened or removed in the middle", n.changes.Load())
	row("questions or answers lost / repeated / held", fmt.Sprintf("%d / %d / %d", n.lost.Load(), n.repeated.Load(), n.held.Load()))
	row("agents that ended by themselves and were started again", n.restarts.Load())
	row("servers of others that crashed by themselves", n.fallen.Load())
	row("clocks stepped", n.steps.Load())
	row("tokens of sites that expired or were revoked", n.expired.Load())
	row("disk filled", n.fills.Load())
	row("files done / there before / named with their reason", fmt.Sprintf("%d / %d / %d", v.done, v.there, v.named))
	row("requests", strings.Trim(fmt.Sprint(v.ended), "map[]"))
	row("attempts / too late to count", fmt.Sprintf("%d / %d", v.attempts, v.late))
	row("bytes needed / moved / kept from broken attempts", fmt.Sprintf("%s / %s / %s", bytes(v.useful), bytes(v.moved), bytes(v.resumed)))
	row("moved by pulls / pushes / third-party copies / too late to count", fmt.Sprintf("%s / %s / %s / %s", bytes(v.by[transfer.Pull]),
		bytes(v.by[transfer.Push]), bytes(v.by[transfer.Third]), bytes(v.lateBytes)))
	row("trouble, then until all was over", fmt.Sprintf("%d s, %.0f s", w.seconds, v.settled.Seconds()))
	w.t.Logf("seed %d, %d files:\n%s", w.seed, w.files, b.String())
}

// show keeps the logs of a failed test if WEIR_CHAOS_KEEP is set.
func (w *world) show() {
	dir := os.Getenv("WEIR_CHAOS_KEEP")
	if dir == "" || !w.t.Failed() {
		return
	}
	if out, err := exec.CommandContext(context.Background(), "cp", "-a", w.Dir(), dir).CombinedOutput(); err != nil {
		w.t.Logf("%v: %s", err, out)
	}
}
