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

// A copy on disk that has to be released is not forgotten: releases at a silent tape system are
// tried for a day, regardless of the time that the file took.
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
