package queue

import (
	"sync"
	"time"
)

// paceSpan is over how long a request's rate is taken.
const paceSpan = 10 * time.Second

// Paces are how many bytes requests have moved in the last seconds. They are in
// memory only.
type paces struct {
	mu  sync.Mutex
	all map[int64][]pace
}

// A pace is what was moved by a moment.
type pace struct {
	at    time.Time
	bytes int64
}

func (p *paces) add(request, bytes int64, now time.Time) {
	if bytes <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all == nil {
		p.all = map[int64][]pace{}
	}
	of := recent(p.all[request], now)
	if n := len(of); n > 0 && now.Sub(of[n-1].at) < paceSpan/20 {
		of[n-1].bytes += bytes
	} else {
		of = append(of, pace{now, bytes})
	}
	p.all[request] = of
}

// rate is in bytes per second.
func (p *paces) rate(request int64, now time.Time) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := recent(p.all[request], now)
	if len(of) == 0 {
		delete(p.all, request)
		return 0
	}
	p.all[request] = of
	var sum int64
	for _, one := range of {
		sum += one.bytes
	}
	return float64(sum) / paceSpan.Seconds()
}

// forget drops a request that has ended.
func (p *paces) forget(request int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, request)
}

func recent(of []pace, now time.Time) []pace {
	for len(of) > 0 && now.Sub(of[0].at) > paceSpan {
		of = of[1:]
	}
	return of
}
