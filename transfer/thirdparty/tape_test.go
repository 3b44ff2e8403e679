package thirdparty

import (
	"log/slog"
	"syscall"
	"testing"
	"time"

	"weir/internal/tpc"
	"weir/transfer/access"
	"weir/transfer/queue"
)

// What a file has on disk is to be released: a tape system that does not answer is asked for a day, however long the file took.
func TestReleaseIsTriedAgain(t *testing.T) {
	t.Parallel()
	h := New(Config{Access: &access.Control{}, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	for since, want := range map[time.Duration]queue.TapeStep{time.Hour: queue.TapeRelease, 25 * time.Hour: queue.TapeOver} {
		f := queue.TapeFile{Kind: queue.Stage, Step: queue.TapeRelease, Began: h.now().Add(-100 * time.Hour), Until: h.now().Add(-since)}
		down := &tpc.Error{Kind: tpc.Unreachable, Err: syscall.ECONNREFUSED}
		news := h.tapeFailed(t.Context(), &tapeBulk{step: f.Step, files: []queue.TapeFile{f}}, down)
		if len(news) != 1 || news[0].Step != want || !news[0].Due.After(h.now()) {
			t.Errorf("after %v: %+v", since, news)
		}
	}
}
