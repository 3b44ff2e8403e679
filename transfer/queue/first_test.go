package queue

import (
	"errors"
	"slices"
	"testing"

	"weir/transfer"
)

// The first files in several states are the files of each single state, one after the other.
func TestFirst(t *testing.T) {
	each(t, Options{}, func(w *world) {
		w.dataset("/d", 12, "A")
		r := w.submit(transfer.Submission{Dataset: "/d", To: "C"})
		l := w.lease("C", 6)
		w.report(success(l[0]), success(l[1]), failure(l[2], transfer.Permanent, "no"), failure(l[3], transfer.Transient, "later"))
		states := []transfer.State{transfer.FileFailed, transfer.Leased, transfer.NoSource, transfer.Queued, transfer.Done}
		for n := range 14 {
			var want []transfer.Item
			for _, s := range states {
				some, _, err := w.Read.Items(w.ctx, r.ID, s, 0, 12)
				w.must(err)
				want = append(want, some...)
			}
			want = want[:min(n, len(want))]
			got, err := w.Read.First(w.ctx, r.ID, states, n)
			w.must(err)
			if !slices.Equal(got, want) {
				w.t.Errorf("first %d: %+v, not %+v", n, got, want)
			}
		}
		if _, err := w.Read.First(w.ctx, r.ID, []transfer.State{transfer.FileFailed, "lost?"}, 10); !errors.Is(err, ErrRefused) {
			w.t.Errorf("of a state that is none: %v", err)
		}
		if _, err := w.Read.First(w.ctx, 99, states, 10); !errors.Is(err, ErrNotFound) {
			w.t.Errorf("of no request: %v", err)
		}
	})
}

// If there is room for all requests, nothing is summed up; as soon as there is not, the bytes on
// their way count.
func TestRoomForAll(t *testing.T) {
	each(t, Options{}, func(w *world) {
		w.dataset("/d", 5, "A") // of 1000 to 1004 bytes
		w.dataset("/e", 5, "A")
		const room = 5010 // enough for one of the datasets
		w.site("C", true, room)
		w.submit(transfer.Submission{Dataset: "/d", To: "C"})
		taken := w.lease("C", 3)
		if len(taken) != 3 {
			w.t.Fatalf("%+v", taken)
		}
		second := w.submit(transfer.Submission{Dataset: "/e", To: "C"})
		for range 5 {
			taken = append(taken, w.lease("C", 10)...)
		}
		var sum int64
		for _, l := range taken {
			sum += l.Size
		}
		if sum > room || len(taken) < 4 {
			w.t.Errorf("%d files of %d bytes were begun where %d are free", len(taken), sum, room)
		}
		for _, l := range taken {
			w.report(success(l))
		}
		w.site("C", true, 1<<40)
		w.pass(otherPause + spacePause)
		for range 3 {
			for _, l := range w.lease("C", 10) {
				w.report(success(l))
			}
		}
		if r := w.get(second.ID); r.Status != transfer.Completed {
			w.t.Errorf("%+v", r)
		}
	})
}
