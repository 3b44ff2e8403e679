package agent

import (
	"context"
	"testing"
	"testing/synctest"
)

// At most as many copies run as there are slots, and as the limit of their link allows; they start
// in their order, links in turn, and a copy that gives up does not block others.
func TestGate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newScheduler(3)
		ab, cd := link{"A", "B"}, link{"C", "D"}
		var in []string
		enter := func(ctx context.Context, name string, way link, limit int) {
			go func() {
				if g.enter(ctx, way, limit) {
					in = append(in, name)
				}
			}()
			synctest.Wait()
		}
		expect := func(names string) {
			t.Helper()
			synctest.Wait()
			got := ""
			for _, n := range in {
				got += n
			}
			if got != names {
				t.Errorf("%s are in, want %s", got, names)
			}
		}
		ctx := t.Context()
		given, giveUp := context.WithCancel(ctx)
		enter(ctx, "a", ab, 2)
		enter(ctx, "b", ab, 2)
		enter(given, "c", ab, 2)
		enter(ctx, "d", ab, 2)
		enter(ctx, "e", cd, 0)
		enter(ctx, "f", cd, 0)
		expect("abe")
		giveUp()
		synctest.Wait()
		g.leave(ab)
		expect("abed") // c has given up; links take turns
		g.leave(cd)
		expect("abedf")
		enter(ctx, "g", ab, 1)
		g.leave(ab)
		expect("abedf") // the limit is lower now
		g.leave(ab)
		expect("abedfg")
		g.leave(ab)
		g.leave(cd)
		if g.free != 3 || len(g.queues) != 0 || len(g.order) != 0 {
			t.Errorf("%d places are free, %d lanes are left", g.free, len(g.queues))
		}
	})
}
