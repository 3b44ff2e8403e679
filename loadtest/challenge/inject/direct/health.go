package direct

import (
	"sync"
	"time"

	"weir/loadtest/challenge/inject"
	"weir/loadtest/challenge/inject/service"
	"weir/storage"
)

// health counts the answers of the sites to requests for copies. It is safe for concurrent use.
type health struct {
	mu    sync.Mutex
	h     inject.Health
	spent time.Duration
}

// answered counts a request that ended after this time. A nil error is an accepted request.
func (h *health) answered(took time.Duration, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.h.Requests++
	h.spent += took
	if err == nil {
		return
	}
	h.h.Failed++
	h.h.Reason = service.Line(err.Error())
	h.h.Busy = h.h.Busy || storage.Classify(err) == storage.Busy
}

// take returns the counts and begins anew.
func (h *health) take() inject.Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := h.h
	if out.Requests > 0 {
		out.Latency = h.spent / time.Duration(out.Requests)
	}
	h.h, h.spent = inject.Health{}, 0
	return out
}
