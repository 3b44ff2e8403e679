package scratch

import (
	"fmt"
	"sync"

	"weir/internal/unit"
	"weir/storage"
)

// A Room limits the bytes that the copies of a process may take of a disk. Its methods may be
// called by any goroutine. A nil Room has no bound.
type Room struct {
	mu          sync.Mutex
	limit, used int64
}

// NewRoom returns a Room of so many bytes, nil for 0, which is no bound.
func NewRoom(bytes int64) *Room {
	if bytes <= 0 {
		return nil
	}
	return &Room{limit: bytes}
}

// Limit changes the bound. Copies that are there stay, and no more are taken until they fit.
func (r *Room) Limit(bytes int64) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limit = bytes
}

// Take reserves so many bytes for the copy of a file. It returns an error that wraps storage.ErrScratch if they do
// not fit. The caller gives them back.
func (r *Room) Take(bytes int64) error {
	if r == nil || bytes <= 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.used+bytes > r.limit {
		return fmt.Errorf("%w: the copy needs %s, and others have %s of the quota of %s", storage.ErrScratch, unit.Bytes(float64(bytes)),
			unit.Bytes(float64(r.used)), unit.Bytes(float64(r.limit)))
	}
	r.used += bytes
	return nil
}

// Give releases bytes that Take reserved.
func (r *Room) Give(bytes int64) {
	if r == nil || bytes <= 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used -= bytes
}
