package serve

import (
	"sync"
	"time"
)

// A pacer spreads bytes over time. A nil pacer does not.
type pacer struct {
	rate float64 // bytes/s
	mu   sync.Mutex
	due  time.Time // when the next byte may move
}

// totals are the pacers that all connections share.
type totals struct{ up, down *pacer }

func newPacer(rate int64) *pacer {
	if rate <= 0 {
		return nil
	}
	return &pacer{rate: float64(rate)}
}

// take books n bytes at now and returns the wait before they move.
func (p *pacer) take(now time.Time, n int) time.Duration {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.due.Before(now) {
		p.due = now
	}
	wait := p.due.Sub(now)
	p.due = p.due.Add(time.Duration(float64(n) / p.rate * float64(time.Second)))
	return wait
}

// quantum returns the number of bytes, of n, that may move at once, so that a slow connection
// trickles instead of jerking: about 1/20 s worth.
func (p *pacer) quantum(n int) int {
	if p == nil {
		return n
	}
	return min(n, max(1024, min(64<<10, int(p.rate/20))))
}

// pause waits for d unless stop is closed first.
func pause(d time.Duration, stop <-chan struct{}) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-stop:
	}
}
