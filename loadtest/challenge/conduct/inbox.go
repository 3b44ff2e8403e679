package conduct

import (
	"sync"
	"time"

	"weir/loadtest/challenge/inject"
)

// An inbox keeps the news of other goroutines until the session takes them.
type inbox struct {
	mu      sync.Mutex
	reports []inject.Report
	checked []verdict
}

// A verdict is the result of the verification of a copy.
type verdict struct {
	id       int64
	verified bool
	err      error
	at       time.Time
}

func (b *inbox) add(r inject.Report) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reports = append(b.reports, r)
}

func (b *inbox) verified(v verdict) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.checked = append(b.checked, v)
}

// take returns the news since the last call.
func (b *inbox) take() ([]inject.Report, []verdict) {
	b.mu.Lock()
	defer b.mu.Unlock()
	reports, checked := b.reports, b.checked
	b.reports, b.checked = nil, nil
	return reports, checked
}
