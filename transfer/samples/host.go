package samples

import (
	"context"
	"sync"
	"time"

	"weir/internal/pause"
	"weir/monitor"
	"weir/transfer"
	"weir/transfer/hostsample"
)

const (
	hostEvery = 2 * time.Second // samples of this host are stored
	mostHost  = 600             // samples that are kept while the database is unavailable
)

// hostSamples are the samples of this host and this process that are not in the database yet.
type hostSamples struct {
	c    *Store
	mu   sync.Mutex
	kept []transfer.Sample
}

// Sample implements monitor.Sink.
func (h *hostSamples) Sample(m *monitor.Sample) error {
	s := hostsample.Of(m)
	s.Time = h.c.Now().Add(-time.Since(m.Time))
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kept = append(h.kept, s)
	h.kept = h.kept[max(0, len(h.kept)-mostHost):]
	return nil
}

// save stores the samples. Samples that could not be stored are kept.
func (h *hostSamples) save(ctx context.Context) error {
	h.mu.Lock()
	some := h.kept
	h.kept = nil
	h.mu.Unlock()
	if len(some) == 0 {
		return nil
	}
	err := h.c.Keep(ctx, transfer.CoordinatorHost, some)
	if err != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.kept = append(some, h.kept...)
	}
	return err
}

// SampleHost samples this host, as agents do theirs, until ctx ends.
func (c *Store) SampleHost(ctx context.Context) {
	h := &hostSamples{c: c}
	watch, err := monitor.Start(ctx, nil, monitor.Options{}, h)
	if err != nil {
		c.Health.Set("samples of this host", err)
		return
	}
	for pause.For(ctx, hostEvery) {
		c.Health.Database(h.save(ctx))
	}
	c.Health.Set("samples of this host", watch.Stop())
}
