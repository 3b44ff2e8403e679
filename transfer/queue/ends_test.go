package queue

import (
	"strings"
	"testing"
	"time"

	"weir/transfer"
)

// When a request ends, the reason of each unfinished file contains the state in which the file was,
// and the cause for which the request ended.
func TestEndsHaveReasons(t *testing.T) {
	const expired = "its time ran out at 2026-11-22 12:10:00 UTC"
	for _, c := range []struct {
		name   string
		before func(w *world) // steps before the request's time runs out
		why    string
		after  func(w *world)
	}{
		{"too large for the destination", func(w *world) {
			w.site("C", true, 900)
			w.lease("C", 1)
		}, "C has 900 bytes free, of which 0 bytes are promised to files on their way, and this one needs 1000 bytes", nil},
		{"too large, and its time to look again has come", func(w *world) {
			w.site("C", true, 900)
			w.lease("C", 1)
			w.pass(9 * time.Minute) // it is ready once more, and not looked at yet
		}, "C has 900 bytes free, of which 0 bytes are promised to files on their way, and this one needs 1000 bytes", nil},
		{"its turn never came", func(*world) {}, "its turn had not come", nil},
		{"the source is away", func(w *world) { w.site("A", false, -1) }, "A cannot be reached since 2026-11-22 12:00:00 UTC", nil},
		{"the destination is away", func(w *world) { w.site("C", false, -1) }, "C cannot be reached since 2026-11-22 12:00:00 UTC", nil},
		{"it had failed once", func(w *world) {
			w.report(failure(w.lease("C", 1)[0], transfer.Transient, "connection reset"))
		}, "connection reset", nil},
		{"the source has more bytes than the catalog says", func(w *world) {
			w.report(failure(w.lease("C", 1)[0], transfer.SourceBad, "/d/f0000 has 1009 bytes, not the 1000 of the catalog"))
		}, "A: /d/f0000 has 1009 bytes, not the 1000 of the catalog", nil},
		{"it was on its way, and is broken off", func(w *world) { w.pass(9*time.Minute + 50*time.Second); w.lease("C", 1) }, "", func(w *world) {
			w.report(transfer.Outcome{Item: w.all(1)[0].ID, Epoch: 1, Fault: transfer.RequestCancelled, Reason: "the request was cancelled"})
		}},
		{"it was on its way, and failed", func(w *world) { w.pass(9*time.Minute + 50*time.Second); w.lease("C", 1) }, "no space left on device",
			func(w *world) {
				w.report(transfer.Outcome{Item: w.all(1)[0].ID, Epoch: 1, Fault: transfer.DestFull, Reason: "no space left on device"})
			}},
		{"it was on its way, and its mover is not heard of", func(w *world) { w.lease("C", 1) },
			"no report of its mover since 2026-11-22 12:00:00 UTC", func(w *world) { w.pass(time.Hour) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			each(t, Options{}, func(w *world) {
				w.dataset("/d", 1, "A")
				w.site("C", true, -1)
				r := w.submit(transfer.Submission{Dataset: "/d", To: "C", Expires: start.Add(10 * time.Minute)})
				c.before(w)
				w.pass(start.Add(10 * time.Minute).Sub(w.clock()))
				w.work()
				if c.after != nil {
					c.after(w)
				}
				want := strings.TrimPrefix(c.why+"; "+expired, "; ")
				if strings.HasPrefix(c.why, "A: ") { // it had failed before
					want = c.why
				}
				if one, got := w.all(r.ID)[0], w.get(r.ID); !got.Status.Ended() || one.Reason != want {
					t.Errorf("%s: %s, %q, not %q", got.Status, one.State, one.Reason, want)
				}
				w.audit()
			})
		})
	}
}

// The files of a cancelled request have reasons as well.
func TestCancelledHaveReasons(t *testing.T) {
	each(t, Options{}, func(w *world) {
		w.dataset("/d", 2, "A")
		r := w.submit(transfer.Submission{Dataset: "/d", To: "C"})
		w.site("C", true, 1000)
		w.lease("C", 2)
		_, err := w.Cancel(w.ctx, r.ID, "bob", "enough")
		w.must(err)
		w.report(transfer.Outcome{Item: w.all(r.ID)[0].ID, Epoch: 1, Fault: transfer.RequestCancelled, Reason: "the request was cancelled"})
		all := w.all(r.ID)
		if all[0].Reason != "the request was cancelled" || !strings.HasPrefix(all[1].Reason, "C has 1000 bytes free") ||
			!strings.HasSuffix(all[1].Reason, "; the request was cancelled") {
			t.Errorf("%q, %q", all[0].Reason, all[1].Reason)
		}
	})
}
